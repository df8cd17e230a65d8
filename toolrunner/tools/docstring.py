"""Docstrings: what a tool is for, and what each of its parameters means. Google, NumPy and reST forms.

No state. Our own, because what a tool needs of a docstring is two things (its text, its parameters), and a library for all
of it would be a core dependency for that; a form that is not understood costs a description, never a tool.
"""

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

_PARAMETERS = frozenset({"args", "arguments", "params", "parameters", "other parameters", "keyword args", "keyword arguments"})
_RETURNS = frozenset({"returns", "return"})
_OTHERS = frozenset(
    "yields yield receives raises raise except exceptions warns warnings warning note notes example examples references "
    "see also todo attributes methods".replace("see also", "see_also").split()
) | {"see also"}
_HEADERS = _PARAMETERS | _RETURNS | _OTHERS

_GOOGLE_HEADER = re.compile(r"(?P<name>[A-Za-z][A-Za-z ]*):\s*")
_GOOGLE_ITEM = re.compile(r"(?P<names>\*{0,2}\w+)\s*(?:\((?:[^()]|\([^()]*\))*\))?\s*:(?:\s+(?P<text>.*))?")
_NUMPY_RULE = re.compile(r"-{3,}\s*")
_NUMPY_ITEM = re.compile(r"(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_REST_FIELD = re.compile(r":(?P<what>\w+)(?P<words>(?:\s+[^:]+)?):(?:\s+(?P<text>.*))?")
_REST_PARAMETERS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})


@final
@dataclass(frozen=True, slots=True)
class Docstring:
    """`description` = the text before the sections, and what is returned; `parameters` = a sentence for each that has one."""

    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Section:
    """A part of a docstring. `name` is "" for the text before the first section, else one of `_HEADERS` or a reST field."""

    name: str
    lines: list[str]
    argument: str = ""
    numpy: bool = False


def read_docstring(doc: str | None) -> Docstring:
    """What `doc` says. Never raises: text in no known form is description."""
    text = doc or ""
    if _GOOGLE_HEADER.fullmatch(text.partition("\n")[0]):
        text = f"\n{text}"  # or cleandoc takes the section's indent for that of the docstring
    sections = list(_sections(inspect.cleandoc(text).splitlines()))
    description = [_text(section.lines) for section in sections if not section.name]
    description += [f"Returns: {said}" for section in sections if section.name in _RETURNS and (said := _text(section.lines))]
    parameters: dict[str, str] = {}
    for section in sections:
        if section.argument:
            parameters.setdefault(section.argument, _joined(section.lines))
        elif section.name in _PARAMETERS:
            parameters.update(_items(section.lines, _NUMPY_ITEM if section.numpy else _GOOGLE_ITEM))
    return Docstring("\n\n".join(filter(None, description)), {name: text for name, text in parameters.items() if text})


def _sections(lines: Sequence[str]) -> Iterator[_Section]:
    current = _Section("", [])
    skip = False
    for line, following in zip(lines, [*lines, ""][1:], strict=True):
        if skip:
            skip = False
            continue
        opened = _opened(line, following)
        # A Google section is its indented lines; text at the margin after it is description again.
        left = current.name and not current.numpy and line.strip() and not line[0].isspace()
        if opened is None and not left:
            current.lines.append(line)
            continue
        yield current
        current = opened or _Section("", [line])
        skip = current.numpy
    yield current


def _opened(line: str, following: str) -> _Section | None:
    """The section that `line` begins, or None."""
    word = line.strip().lower()
    if word in _HEADERS and _NUMPY_RULE.fullmatch(following):
        return _Section(word, [], numpy=True)
    google = _GOOGLE_HEADER.fullmatch(line)
    if google and google["name"].lower() in _HEADERS:
        return _Section(google["name"].lower(), [])
    rest = _REST_FIELD.fullmatch(line)
    if rest is None:
        return None
    words = rest["words"].split()
    named = words[-1].lstrip("*") if rest["what"] in _REST_PARAMETERS and words else ""
    return _Section(rest["what"], [rest["text"] or ""], argument=named)


def _items(lines: Sequence[str], form: re.Pattern[str]) -> dict[str, str]:
    """Entries at the section's own indent; deeper lines continue the entry above them."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    margin = min((_indent(line) for line in lines if line.strip()), default=0)
    for line in lines:
        item = form.fullmatch(line.strip()) if _indent(line) == margin else None
        if item is None:
            current.append(line)
            continue
        current = [item.groupdict().get("text") or ""]
        for name in item["names"].split(","):
            found[name.strip().lstrip("*")] = current
    return {name: _joined(said) for name, said in found.items()}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip()) if line.strip() else -1


def _text(lines: Sequence[str]) -> str:
    return textwrap.dedent("\n".join(lines)).strip()


def _joined(lines: Sequence[str]) -> str:
    return " ".join(" ".join(lines).split())
