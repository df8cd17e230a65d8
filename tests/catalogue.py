"""The catalogue of cases, and which test shows which. Pure: reads tests/cases/*.toml and the source text of the tests.

Marks are read from the source and not from a running session, so that the catalogue is checked whole whatever is run. A mark
counts when pytest would act on it: on a test function or class that nothing skips or expects to fail, in a `pytest.param`, or
in a `pytestmark` of a test module.
"""

import ast
import functools
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

EXCUSES = frozenset({"skip", "xfail"})  # `skipif` and `root` say under which condition the case is shown, and that is enough


@dataclass(frozen=True, slots=True)
class Case:
    """One row: its id, what must be true in one line, where it was seen, and the part shown so far ("" = whole)."""

    id: str
    line: str
    source: str
    part: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """One use of `pytest.mark.case`. `id` is None when it is no literal, so that nobody could find it by reading."""

    id: str | None
    where: str


def read_catalogue(folder: Path) -> dict[str, Case]:
    """Read every row. An id in two files is an error, as it is in one (TOML refuses that itself)."""
    cases = dict[str, Case]()
    for path in sorted(folder.glob("*.toml")):
        for id_, row in tomllib.loads(path.read_text(encoding="utf-8")).items():
            if id_ in cases:
                raise ValueError(f"{path.name}: {id_} is in another file already")
            cases[id_] = Case(id_, **row)
    return cases


@functools.cache
def read_marks(folder: Path) -> tuple[Mark, ...]:
    return tuple(mark for path in sorted(folder.rglob("test_*.py")) for mark in _marks(path, folder))


def _marks(path: Path, folder: Path) -> Iterator[Mark]:
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    for call in _marking_calls(tree):
        for argument in call.args or [call]:
            literal = argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else None
            yield Mark(literal, f"{path.relative_to(folder)}:{call.lineno}")


def _marking_calls(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls that pytest acts on, see above."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name.lower().startswith("test") and not any(_excuses(mark) for mark in node.decorator_list):
                yield from (call for mark in node.decorator_list for call in _own(mark))
        elif isinstance(node, ast.Call) and _dotted(node.func) == "pytest.param":
            if not any(_excuses(inner) for inner in ast.walk(node)):
                yield from (call for keyword in node.keywords if keyword.arg == "marks" for call in _calls(keyword.value))
        elif isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets
        ):
            yield from _calls(node.value)


def _own(mark: ast.expr) -> Iterator[ast.Call]:
    """A decorator that is the mark itself; those inside a `parametrize` belong to its params, which are found on their own."""
    if isinstance(mark, ast.Call) and _dotted(mark.func) == "pytest.mark.case":
        yield mark


def _calls(value: ast.expr) -> Iterator[ast.Call]:
    return (node for node in ast.walk(value) if isinstance(node, ast.Call) and _dotted(node.func) == "pytest.mark.case")


def _excuses(node: ast.AST) -> bool:
    name = _dotted(node.func if isinstance(node, ast.Call) else node)
    return name.startswith("pytest.mark.") and name.rpartition(".")[2] in EXCUSES


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""
