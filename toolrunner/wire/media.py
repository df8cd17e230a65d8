"""Renders what a tool said: text where text is meant, a provider's own part where it takes the medium, else a placeholder. Pure.

Placeholders are fixed texts that claim no more than that something was left out; they carry no instruction.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import final

from toolrunner.facts import Content, File, Image, Json, Text
from toolrunner.wire.values import Item

NO_OUTPUT = "(no output)"
"""Stands for content that is empty or blank: Anthropic refuses blank text, and a model reads an empty result as a lost one."""

PDF = "application/pdf"
WEB_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What both Anthropic and OpenAI take."""

_TEXTUAL = frozenset({"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml"})
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9.+_-]{0,60}/[a-z0-9][a-z0-9.+_-]{0,90}")

Native = Callable[[Image | File], Item | str | None]
"""A provider's own part for a medium, or a text to stand there instead, or None when it takes no such medium at that place."""


def media_type(item: Image | File) -> str:
    """Return the bare media type: no parameters, lower case, the common misnomer of JPEG put right."""
    bare = item.media_type.split(";")[0].strip().lower()
    return "image/jpeg" if bare == "image/jpg" else bare


def json_text(value: object) -> str:
    """Return a JSON value as compact text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def data_url(item: Image | File) -> str:
    return f"data:{media_type(item)};base64,{item.data}"


def _bytes(item: Image | File) -> bytes | None:
    try:
        return base64.b64decode(item.data, validate=True)
    except (binascii.Error, ValueError):
        return None


def _file_text(item: File) -> str | None:
    """Return a text file as text headed by its name; None when it is not one."""
    kind = media_type(item)
    if not (kind.startswith("text/") or kind in _TEXTUAL):
        return None
    content = _bytes(item)
    try:
        return None if content is None else f"[file {json_text(item.name)}]\n{content.decode()}"
    except UnicodeDecodeError:
        return None


def _text(item: Content) -> str | None:
    match item:
        case Text():
            return item.text
        case Json():
            return json_text(item.json)
        case File():
            return _file_text(item)
        case Image():
            return None


def placeholder(item: Image | File, why: str) -> str:
    kind = media_type(item)
    return f"[{item.type} ({kind if _MEDIA_TYPE.fullmatch(kind) else 'unknown type'}): {why}]"


NOT_TAKEN = "left out, not accepted here"
NOT_DATA = "left out, its data is not plain base64"
EMPTY = "left out, it is empty"


def _medium(item: Image | File, native: Native) -> Item | str:
    # A request that holds bad or empty media data is refused, and with it every later turn of that conversation.
    data = _bytes(item)
    if data is None:
        return placeholder(item, NOT_DATA)
    if not data:
        return placeholder(item, EMPTY)
    return native(item) or placeholder(item, NOT_TAKEN)


def _sendable(text: str) -> str:
    """Replace lone surrogates, which output that is no UTF-8 leaves behind: no client can encode a request that holds one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


def rendered(content: Sequence[Content], native: Native) -> list[Item | str]:
    """Render each item in order as a non-blank text or as the provider's part; at least one."""
    parts: list[Item | str] = []
    for item in content:
        text = _text(item)
        if text is not None:
            parts += [_sendable(text)] if text.strip() else []
        elif isinstance(item, Image | File):
            parts.append(_medium(item, native))
    return parts or [NO_OUTPUT]


@final
@dataclass(slots=True)
class Attachments:
    """Media that cannot stand where they were said and follow apart. Filled while the results are rendered, then read."""

    native: Native
    place: str = "after the results"
    parts: list[Item] = field(default_factory=list)

    def take(self, item: Image | File) -> str | None:
        """Take a medium out of its result; the text that stands in its place counts it, so that the two can be matched."""
        part = self.native(item)
        if not isinstance(part, dict):
            return None
        self.parts.append(part)
        return placeholder(item, f"attachment {len(self.parts)} {self.place}")


def as_text(content: Sequence[Content], attachments: Attachments | None = None) -> str:
    """Render content as one text; media go to `attachments` where there are any, else become placeholders."""
    native = attachments.take if attachments else _no_media
    return "\n".join(part for part in rendered(content, native) if isinstance(part, str))


def _no_media(_: Image | File) -> None:
    return None


def sole_json(content: Sequence[Content]) -> object:
    """Return the value when the content is one JSON value and nothing else, for APIs that take structure; else None."""
    match list(content):
        case [Json(json=value)]:
            try:
                json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
            except ValueError:  # NaN, or a lone surrogate: as text it can be sent all the same
                return None
            return value
        case _:
            return None
