"""The one function through which foreign text reaches a terminal: file names, error messages, tool names, reasons. No state.

Such text is chosen by whoever the tool talks to. Shown raw it could move the cursor, rewrite what stands above, swap the order of
what is read (bidi), or be taken for markup of ours. (A command's own output that is passed through is not touched: it is the
command speaking, as without us.)
"""

import unicodedata

from rich.text import Text

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories that are not shown as they are: control, format (bidi, zero width, tags), lone surrogates, private,
unassigned, and the two separators that some terminals take for line ends."""


def printable(text: object, limit: int | None = None) -> str:
    r"""`text` on one line, with everything that is no visible character written as `\n`, `\x1b`, `\u202e`.

    `limit` bounds its length, leaving out the middle. The result is plain text; see `shown` for rich.
    """
    safe = "".join(map(_visible, str(text)))
    if limit is None or len(safe) <= limit:
        return safe
    half = max(1, (limit - 5) // 2)
    return f"{safe[:half]} ... {safe[-half:]}"


def shown(text: object, style: str = "", limit: int | None = None) -> Text:
    """`printable` for rich: a `Text`, in which square brackets are only square brackets."""
    return Text(printable(text, limit), style=style)


def _visible(character: str) -> str:
    if character.isprintable() or unicodedata.category(character) not in _UNSEEN:
        return character
    # A byte that is no UTF-8 (surrogateescape) is shown as that byte.
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
