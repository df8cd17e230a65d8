"""The architecture as rules over the source text (DESIGN, Layout and layers). Pure: reads a tree of modules, returns complaints.

Everything is read with `ast`, so an import counts wherever it stands: at the top, under TYPE_CHECKING, in a function.
"""

import ast
import functools
import importlib.util
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

PACKAGE = "toolrunner"
# A module imports only from rows above its own. Row 0 alone is ordered inside: a name may import those left of it.
ROWS: tuple[tuple[str, ...], ...] = (
    ("alone", "starting", "errors", "facts", "markers", "wire", "calls", "results", "records", "config"),
    ("loops",),
    ("abort", "memory", "tasks"),
    ("effects", "process", "observe", "policy", "history"),
    ("sandbox", "journal"),
    ("tools",),
    ("pipeline",),
    ("registry", "scheduler", "recovery"),
    ("runner",),
    ("agent", "control"),
    ("adapters", "testing"),
    ("cli",),
)
# Above every row, imported by none: the front door, and `python -m toolrunner`.
TOP = frozenset({"", "__init__", "__main__"})
# These stay usable without an event loop and without any process: a viewer of a journal imports nothing else.
PURE = (*ROWS[0], "history")
OUT_OF_REACH = ("anyio", f"{PACKAGE}.process")
# Imported inside a function because the core must import without them. Each belongs to an extra of pyproject.toml.
OPTIONAL_EXTRAS = frozenset({"trio", "uvloop"})
MAX_MODULE_LINES = 300
MAX_FUNCTION_LINES = 50  # docstring not counted
FORBIDDEN_WORDS = frozenset({"manager", "handler", "util", "utility", "helper"})

type_of_function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name: `target` is the most exact module it can mean, `line` where it stands."""

    target: str
    line: int
    in_function: bool


@dataclass(frozen=True, slots=True)
class Module:
    """One file of the package, under its dotted name."""

    name: str
    path: Path
    tree: ast.Module
    lines: int
    imports: tuple[Import, ...]

    @property
    def unit(self) -> str:
        return unit_of(self.name)


Tree = dict[str, Module]
Rule = Callable[[Tree], Iterator[str]]


def package() -> Path:
    """Where the package really is: the checkout, or site-packages when the tests run against the wheel. Nothing is imported."""
    spec = importlib.util.find_spec(PACKAGE)
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(next(iter(spec.submodule_search_locations)))


def unit_of(name: str) -> str:
    """Return the name directly below the package, which is what a row lists: `toolrunner.facts.content` -> `facts`."""
    return name.split(".")[1] if "." in name else ""


@functools.cache
def load(root: Path) -> Tree:
    """Parse every module below `root`, the folder of the package. Once: nobody edits a package while it is tested."""
    names = {path: _dotted(path.relative_to(root)) for path in sorted(root.rglob("*.py"))}
    known = frozenset(names.values())
    return {name: _parse(path, name, known) for path, name in names.items()}


def _dotted(path: Path) -> str:
    parts = [PACKAGE, *path.with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _parse(path: Path, name: str, known: frozenset[str]) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text, str(path))
    folder = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return Module(name, path, tree, len(text.splitlines()), tuple(_imports(tree, folder, known)))


def _imports(tree: ast.Module, folder: str, known: frozenset[str]) -> Iterator[Import]:
    inner = {id(node) for function in _functions(tree) for node in ast.walk(function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, id(node) in inner)
        elif isinstance(node, ast.ImportFrom):
            for target in _targets(node, folder, known):
                yield Import(target, node.lineno, id(node) in inner)


def _targets(node: ast.ImportFrom, folder: str, known: frozenset[str]) -> Iterator[str]:
    """`from a import b` means the module a.b when there is one, else the module a."""
    parents = folder.split(".")
    base = ".".join(parents[: len(parents) - node.level + 1]) if node.level else ""
    source = ".".join(part for part in (base, node.module) if part)
    for alias in node.names:
        exact = f"{source}.{alias.name}"
        # A unit that is still to be written counts as one, or a wrong import of it would pass until the day it is.
        yield exact if exact in known or (source == PACKAGE and alias.name in _units()) else source


def _units() -> frozenset[str]:
    return frozenset(unit for row in ROWS for unit in row)


def _functions(tree: ast.Module) -> list[type_of_function]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _is_ours(name: str) -> bool:
    return name == PACKAGE or name.startswith(f"{PACKAGE}.")


def _row(unit: str) -> int | None:
    return next((number for number, row in enumerate(ROWS) if unit in row), None)


def may_import(source: str, target: str) -> bool:
    """Whether the unit `source` may import the unit `target`, by the rows."""
    if source == target or source in TOP:
        return True
    if target in TOP:
        return False
    low, high = _row(source), _row(target)
    if low is None or high is None:
        return False
    if low == high == 0:
        return target in takewhile(lambda name: name != source, ROWS[0])
    return high < low


def every_module_has_a_row(tree: Tree) -> Iterator[str]:
    for module in tree.values():
        if module.unit not in TOP and _row(module.unit) is None:
            yield f"{module.name}: {module.unit!r} is in no row of the design"


def imports_go_up_only(tree: Tree) -> Iterator[str]:
    for module in tree.values():
        for found in module.imports:
            if _is_ours(found.target) and not may_import(module.unit, unit_of(found.target)):
                yield f"{module.name}:{found.line} imports {found.target}, which is not in a row above"


def no_import_hides_in_a_function(tree: Tree) -> Iterator[str]:
    for module in tree.values():
        for found in module.imports:
            if found.in_function and found.target.split(".")[0] not in OPTIONAL_EXTRAS:
                yield f"{module.name}:{found.line} imports {found.target} inside a function"


def no_module_is_in_a_cycle(tree: Tree) -> Iterator[str]:
    graph = {name: {found.target for found in module.imports if found.target in tree} - {name} for name, module in tree.items()}
    reach = {name: _closure(name, graph) for name in graph}
    for name in graph:
        circle = sorted(other for other in reach[name] if name in reach[other])
        if circle and name == min(circle):
            yield f"cycle: {' <-> '.join(circle)}"


def _closure(start: str, graph: dict[str, set[str]]) -> set[str]:
    """Everything that can be reached from `start` in one step or more; `start` itself only by way of a circle."""
    found = set[str]()
    todo = list(graph[start])
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo.extend(graph.get(name, ()))
    return found


def the_pure_part_reaches_no_event_loop(tree: Tree) -> Iterator[str]:
    """Importing a module also runs the packages it lies in, the front door excepted, which nobody can go round."""
    graph = {name: {found.target for found in module.imports} | (set(_packages(name)) - {name}) for name, module in tree.items()}
    for name, targets in list(graph.items()):
        graph[name] = targets | {package for target in targets if _is_ours(target) for package in _packages(target)}
    for name, module in tree.items():
        if module.unit in PURE:
            for target in sorted(_closure(name, graph)):
                if any(target == closed or target.startswith(f"{closed}.") for closed in OUT_OF_REACH):
                    yield f"{name} reaches {target}"


def _packages(name: str) -> Iterator[str]:
    parts = name.split(".")
    for length in range(2, len(parts)):
        yield ".".join(parts[:length])


def no_module_is_too_long(tree: Tree) -> Iterator[str]:
    for module in tree.values():
        if module.lines > MAX_MODULE_LINES:
            yield f"{module.name} has {module.lines} lines, more than {MAX_MODULE_LINES}"


def no_function_is_too_long(tree: Tree) -> Iterator[str]:
    for module in tree.values():
        for function in _functions(module.tree):
            if (length := _length(function)) > MAX_FUNCTION_LINES:
                yield f"{module.name}:{function.lineno} {function.name} has {length} lines, more than {MAX_FUNCTION_LINES}"


def _length(function: type_of_function) -> int:
    first = function.body[0]
    documented = ast.get_docstring(function, clean=False) is not None
    docstring = (first.end_lineno or first.lineno) - first.lineno + 1 if documented else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - docstring


def no_name_says_nothing(tree: Tree) -> Iterator[str]:
    for module in tree.values():
        named = [
            node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        for name in (module.name.rpartition(".")[2], *(node.name for node in named)):
            if bad := FORBIDDEN_WORDS & {word.rstrip("s") for word in _words(name)}:
                yield f"{module.name}: the name {name!r} says {', '.join(bad)}; say what it does"


def _words(name: str) -> list[str]:
    """`SignalHandlers` and `signal_handlers` -> signal, handlers. (`utilities` counts as utility.)"""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)
    return [word.lower().replace("utilities", "utility") for word in words]


def no_annotation_is_postponed(tree: Tree) -> Iterator[str]:
    """Pydantic and the tool decorator read annotations at run time."""
    for module in tree.values():
        if any(found.target.startswith("__future__") for found in module.imports):
            yield f"{module.name} imports from __future__"


RULES: tuple[Rule, ...] = (
    every_module_has_a_row,
    imports_go_up_only,
    no_import_hides_in_a_function,
    no_module_is_in_a_cycle,
    the_pure_part_reaches_no_event_loop,
    no_module_is_too_long,
    no_function_is_too_long,
    no_name_says_nothing,
    no_annotation_is_postponed,
)
