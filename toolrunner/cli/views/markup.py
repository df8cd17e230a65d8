"""HTML that cannot be broken out of: whatever is no `Markup` is made harmless and escaped, in text and in attributes. Pure."""

from html import escape
from typing import final

from toolrunner.cli.printable import printable

_EMPTY = frozenset({"meta", "rect", "path", "line", "circle", "link", "br"})
"""Elements without an end tag here (those of SVG are closed by a slash)."""


@final
class Markup(str):
    """Text that is HTML already. Made by `element` and `lines` alone."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """`<name attributes>children</name>`. An attribute `class_` is class, `data_x` is data-x; one that is None is left out."""
    told = "".join(f' {_attribute(key)}="{_safe(str(value))}"' for key, value in attributes.items() if value is not None)
    if name in _EMPTY:
        return Markup(f"<{name}{told}/>")
    return Markup(f"<{name}{told}>{''.join(map(_safe, children))}</{name}>")


def join(*parts: str) -> Markup:
    """Parts one after the other."""
    return Markup("".join(map(_safe, parts)))


def lines(text: str, limit: int) -> Markup:
    """A text of many lines for a `pre`: its line ends are kept, everything else is as harmless as in one line."""
    kept = (
        text
        if len(text) <= limit
        else f"{text[: limit // 2]}\n[... {len(text) - limit} characters left out ...]\n{text[-limit // 2 :]}"
    )
    return Markup("\n".join(escape(printable(line)) for line in kept.split("\n")))


def _safe(text: str) -> str:
    return text if isinstance(text, Markup) else escape(printable(text))


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")
