"""Content as text, and content within a number of characters. Pure; knows nothing of calls."""

import json
from collections.abc import Sequence

from toolrunner.facts import Content, File, Image, Json, Text


def plain_text(content: Sequence[Content]) -> str:
    """Content as one text; what is no text is named, not shown."""
    return "\n".join(_plain(part) for part in content)


def _plain(part: Content) -> str:
    match part:
        case Text(text=text):
            return text
        case Json(json=value):
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        case Image(media_type=media_type):
            return f"[image {media_type}]"
        case File(name=name, media_type=media_type):
            return f"[file {name} {media_type}]"


def cut(text: str, limit: int) -> str:
    """The head and tail of `text` within `limit` characters, saying how much is left out; "" where not even that has room."""
    if len(text) <= limit:
        return text
    # The number that is shown has at most as many digits as the length, so the mark is never longer than reckoned with.
    room = limit - len(_mark(len(text)))
    if room < 0:
        return ""
    half = room // 2
    return text[:half] + _mark(len(text) - 2 * half) + (text[-half:] if half else "")


def _mark(count: int) -> str:
    return f"\n[... {count} characters left out ...]\n"


def bounded(content: Sequence[Content], limit: int) -> tuple[Content, ...]:
    """The content with at most `limit` characters of text and JSON, a line break after each part counted.

    Long parts share what short ones leave: a short error output survives a long output. Images and files are no text; they stay.
    """
    texts = [None if isinstance(part, Image | File) else _plain(part) for part in content]
    lengths = [len(text) for text in texts if text is not None]
    share = _share(lengths, limit - len(lengths))
    return tuple(kept for part, text in zip(content, texts, strict=True) if (kept := _within(part, text, share)) is not None)


def _within(part: Content, text: str | None, share: int) -> Content | None:
    if text is None or len(text) <= share:
        return part
    # (An empty part still costs its line break; `share` is negative where not even those have room.)
    shown = cut(text, share)
    return Text(shown) if shown else None


def _share(lengths: Sequence[int], room: int) -> int:
    """How long one part may be, so that all together fit into `room`: those that are shorter leave the rest to the others."""
    if room < 0:
        return -1
    share = room
    for left, length in zip(range(len(lengths), 0, -1), sorted(lengths), strict=True):
        share = room // left
        if length > share:
            return share
        room -= length
    return max(share, max(lengths, default=0))
