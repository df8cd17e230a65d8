"""The package keeps to its layers, and every rule that says so can fail."""

import subprocess
import sys
from pathlib import Path

import layers
import pytest
from layers import package

CLEAN = {
    "__init__.py": "from toolrunner.runner import Runner",
    "errors.py": "import enum",
    "facts/__init__.py": "from toolrunner.facts.content import Text",
    "facts/content.py": "from toolrunner.errors import Broken\nclass Text: ...",
    "abort.py": "import anyio\nfrom .facts import Text\n\ndef other():\n    import trio",
    "process/__init__.py": "from toolrunner.process.keeper import Keeper",
    "process/keeper.py": "import anyio\nfrom toolrunner import facts",
    "runner.py": "from toolrunner.process import Keeper\nfrom toolrunner.abort import other",
    "cli/__init__.py": "import toolrunner.runner",
}


def plant(root: Path, files: dict[str, str]) -> layers.Tree:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return layers.load(root)


@pytest.mark.parametrize("rule", layers.RULES, ids=lambda rule: rule.__name__)
def test_the_package_keeps_the_rule(rule: layers.Rule) -> None:
    assert list(rule(layers.load(package()))) == []


@pytest.mark.parametrize("rule", layers.RULES, ids=lambda rule: rule.__name__)
def test_a_clean_tree_passes_the_rule(rule: layers.Rule, tmp_path: Path) -> None:
    assert list(rule(plant(tmp_path, CLEAN))) == []


LONG_BODY = "def f():\n" + "    x = 1\n" * 50
DOCUMENTED_BODY = 'def f():\n    """One.\n' + "\n" * 60 + '    """\n' + "    x = 1\n" * 49


@pytest.mark.parametrize(
    "rule, files, complaint",
    [
        (layers.every_module_has_a_row, {"gadgets.py": ""}, "toolrunner.gadgets: 'gadgets' is in no row of the design"),
        (layers.imports_go_up_only, {"abort.py": "import toolrunner.runner"}, "abort:1 imports toolrunner.runner"),
        (layers.imports_go_up_only, {"abort.py": "from toolrunner import runner"}, "abort:1 imports toolrunner.runner"),
        (layers.imports_go_up_only, {"abort.py": "from . import process"}, "abort:1 imports toolrunner.process"),
        (layers.imports_go_up_only, {"abort.py": "from .process.keeper import Keeper"}, "imports toolrunner.process.keeper"),
        (layers.imports_go_up_only, {"process/x.py": "from ..runner import Runner"}, "process.x:1 imports toolrunner.runner"),
        (layers.imports_go_up_only, {"process/x.py": "from toolrunner import policy"}, "process.x:1 imports toolrunner.policy"),
        (layers.imports_go_up_only, {"memory.py": "import toolrunner.abort"}, "memory:1 imports toolrunner.abort"),
        (layers.imports_go_up_only, {"errors.py": "import toolrunner.facts"}, "errors:1 imports toolrunner.facts"),
        (layers.imports_go_up_only, {"facts/content.py": "import toolrunner.calls"}, "facts.content:1 imports toolrunner.calls"),
        (layers.imports_go_up_only, {"abort.py": "import toolrunner"}, "abort:1 imports toolrunner,"),
        (layers.imports_go_up_only, {"abort.py": "import toolrunner.gadgets"}, "abort:1 imports toolrunner.gadgets"),
        (layers.imports_go_up_only, {"abort.py": "if TYPE_CHECKING:\n    import toolrunner.runner"}, "abort:2 imports"),
        (layers.imports_go_up_only, {"abort.py": "def f():\n    import toolrunner.cli"}, "abort:2 imports toolrunner.cli"),
        (
            layers.no_import_hides_in_a_function,
            {"abort.py": "def f():\n    import json"},
            "abort:2 imports json inside a function",
        ),
        (
            layers.no_import_hides_in_a_function,
            {"cli/x.py": "async def f():\n    if 1:\n        from json import loads"},
            "imports json",
        ),
        (
            layers.no_module_is_in_a_cycle,
            {"process/a.py": "import toolrunner.process.b", "process/b.py": "from . import a"},
            "cycle: toolrunner.process.a <-> toolrunner.process.b",
        ),
        (
            layers.no_module_is_in_a_cycle,
            {"process/a.py": "import toolrunner.process.b", "process/b.py": "if TYPE_CHECKING:\n    from .a import A"},
            "cycle: toolrunner.process.a <-> toolrunner.process.b",
        ),
        (
            layers.no_module_is_in_a_cycle,
            {"process/keeper.py": "from toolrunner.process import x"},
            "cycle: toolrunner.process <->",
        ),
        (layers.the_pure_part_reaches_no_event_loop, {"facts/content.py": "import anyio.abc"}, "facts.content reaches anyio.abc"),
        (layers.the_pure_part_reaches_no_event_loop, {"history/x.py": "import toolrunner.abort"}, "history.x reaches anyio"),
        (
            layers.the_pure_part_reaches_no_event_loop,
            {"calls.py": "from .process import Keeper"},
            "calls reaches toolrunner.process",
        ),
        (
            layers.the_pure_part_reaches_no_event_loop,
            {"wire/__init__.py": "import anyio", "wire/a.py": "", "calls.py": "import toolrunner.wire.a"},
            "calls reaches anyio",
        ),
        (layers.no_module_is_too_long, {"abort.py": "\n" * 301}, "abort has 301 lines, more than 300"),
        (layers.no_function_is_too_long, {"abort.py": LONG_BODY}, "abort:1 f has 51 lines, more than 50"),
        (layers.no_name_says_nothing, {"process/utils.py": ""}, "'utils' says util"),
        (layers.no_name_says_nothing, {"abort.py": "class SignalHandler: ..."}, "'SignalHandler' says handler"),
        (layers.no_name_says_nothing, {"abort.py": "def run_helper_2(): ..."}, "'run_helper_2' says helper"),
        (layers.no_name_says_nothing, {"abort.py": "async def managers(): ..."}, "'managers' says manager"),
        (layers.no_annotation_is_postponed, {"abort.py": "from __future__ import annotations"}, "abort imports from __future__"),
    ],
)
def test_a_bad_tree_fails_the_rule(rule: layers.Rule, files: dict[str, str], complaint: str, tmp_path: Path) -> None:
    found = list(rule(plant(tmp_path, {**CLEAN, **files})))
    assert any(complaint in line for line in found), found


@pytest.mark.parametrize(
    "files",
    [
        {"abort.py": "\n" * 300},
        {"abort.py": DOCUMENTED_BODY},
        {"abort.py": "def handle(): ...\nclass Utilisation: ..."},
        {"config.py": "from toolrunner.errors import Broken\nimport toolrunner.records"},
        {"cli/x.py": "from toolrunner.adapters.mcp import serve"},
    ],
    ids=["300 lines", "a long docstring", "words that only look alike", "leftwards in row 0", "upwards"],
)
def test_what_is_allowed_is_not_complained_about(files: dict[str, str], tmp_path: Path) -> None:
    tree = plant(tmp_path, {**CLEAN, **files})
    assert [line for rule in layers.RULES for line in rule(tree)] == []


PURE_IMPORT = """
import importlib, pkgutil, sys, types

root = types.ModuleType("toolrunner")  # stands in for the front door, which imports everything
root.__path__ = [sys.argv[1]]
sys.modules["toolrunner"] = root
present = {found.name for found in pkgutil.iter_modules(root.__path__)}
for unit in sys.argv[2:]:
    if unit in present:
        module = importlib.import_module(f"toolrunner.{unit}")
        for inner in pkgutil.walk_packages(getattr(module, "__path__", ()), f"toolrunner.{unit}."):
            importlib.import_module(inner.name)
print(*sorted(name for name in sys.modules if name in {"anyio", "asyncio", "trio", "toolrunner.process"}))
"""


def test_the_pure_part_loads_without_an_event_loop_also_by_way_of_its_dependencies() -> None:
    argv = [sys.executable, "-c", PURE_IMPORT, str(package()), *layers.PURE]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
