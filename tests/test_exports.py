"""The front door shows what the design says, each name documented, defined once and offered in one place."""

import ast
import functools
import importlib
import inspect
import pkgutil
from collections import Counter
from pathlib import Path
from types import ModuleType

import layers
import pytest
from layers import package

# The design's top-level names.
DOCUMENTED = (
    "AbortController",
    "AbortError",
    "AbortSignal",
    "ApprovalRequest",
    "Approver",
    "BatchResult",
    "Command",
    "Decision",
    "MemoryJournal",
    "Policy",
    "Reply",
    "Runner",
    "SqliteJournal",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "ToolrunnerError",
    "Toolset",
    "ask",
    "block",
    "cancel",
    "command_tool",
    "replace",
    "shell",
    "tool",
)
# Everything a user is sent to. A name of the front door is offered by no other of these.
PUBLIC_PLACES = ("toolrunner", "toolrunner.testing", "toolrunner.adapters")

has_front_door = pytest.mark.skipif(not (package() / "__init__.py").exists(), reason="the front door is not written yet")


def front_door() -> ModuleType:
    return importlib.import_module(layers.PACKAGE)


@functools.cache
def definitions(root: Path) -> Counter[str]:
    """How often each class or function is defined at the top of a module, over the whole package."""
    found = Counter[str]()
    for module in layers.load(root).values():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found[node.name] += not _is_overload(node)
    return found


def _is_overload(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(mark).endswith("overload") for mark in node.decorator_list)


@has_front_door
def test_the_front_door_offers_the_documented_names_in_order() -> None:
    assert list(front_door().__all__) == sorted(DOCUMENTED)


@has_front_door
def test_nothing_else_looks_public_at_the_front_door() -> None:
    loose = [name for name, value in vars(front_door()).items() if not name.startswith("_") and not inspect.ismodule(value)]
    assert sorted(loose) == sorted(DOCUMENTED)


@has_front_door
@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_public_name_is_documented(name: str) -> None:
    value = getattr(front_door(), name)
    own = inspect.getdoc(value) if not inspect.isclass(value) else value.__dict__.get("__doc__")
    assert own, f"{name} has no docstring of its own"
    assert not own.startswith(f"{name}("), f"{name} has only the docstring that dataclass made"


@has_front_door
@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_public_method_of_a_public_class_is_documented(name: str) -> None:
    value = getattr(front_door(), name)
    if inspect.isclass(value):
        methods = {key: method for key, method in vars(value).items() if not key.startswith("_") and _is_code(method)}
        assert [key for key, method in methods.items() if not inspect.getdoc(method)] == []


def _is_code(value: object) -> bool:
    return inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod)


@has_front_door
@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_public_name_is_defined_once(name: str) -> None:
    assert definitions(package())[name] == 1


@has_front_door
def test_no_name_is_offered_in_two_public_places() -> None:
    places = [importlib.import_module(place) for place in PUBLIC_PLACES if _exists(place)]
    offered = Counter(name for place in places for name in getattr(place, "__all__", ()))
    assert [name for name, times in offered.items() if times > 1] == []


def _exists(place: str) -> bool:
    unit = place.partition(".")[2]
    return not unit or unit in {found.name for found in pkgutil.iter_modules([str(package())])}


def test_definitions_are_counted_once_each_over_all_modules(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class Runner: ...\n@overload\ndef tool(x): ...\ndef tool(x): ...\nRunner = 1")
    (tmp_path / "b.py").write_text("class Runner: ...\ndef f():\n    class Inner: ...")
    assert definitions(tmp_path) == {"Runner": 2, "tool": 1, "f": 1}
