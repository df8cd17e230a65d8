"""What a stream of any provider consists of, in no provider's words, and its exact timed form for the journal. Frozen; no state.

An adapter turns a provider's events into these; it never decides what is kept. `index` tells the blocks of one response apart.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import StrEnum
from typing import Any, final

from pydantic import JsonValue


class BlockKind(StrEnum):
    """What a block is, as its provider announced it."""

    TEXT = "text"
    REASONING = "reasoning"
    REDACTED = "redacted"
    CALL = "call"
    UNKNOWN = "unknown"


class Stop(StrEnum):
    """Why a response came to its end, as its provider said."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    MAX_TOKENS = "max_tokens"
    REFUSAL = "refusal"
    PAUSE = "pause"
    ERROR = "error"
    ABORTED = "aborted"
    """The provider broke it off. Without a cancel of ours that is an error, not a cancel."""


@final
@dataclass(frozen=True, slots=True)
class BlockStart:
    """A block begins. `name`, `call_id`, `call_kind` are a call's; `item` is an unknown block's object, a redacted one's data."""

    index: int
    kind: BlockKind
    name: str = ""
    call_id: str | None = None
    call_kind: str = "function"
    item_id: str | None = None
    item: JsonValue = None
    provider_meta: Mapping[str, JsonValue] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True)
class Delta:
    """More of a block: text of a text or thought, arguments of a call."""

    index: int
    text: str


@final
@dataclass(frozen=True, slots=True)
class SealDelta:
    """More of a thought's signature (or of a signed part's). It counts only when its block has ended."""

    index: int
    signature: str


@final
@dataclass(frozen=True, slots=True)
class BlockEnd:
    """A block is complete. What is given here replaces what had come in pieces; None leaves it."""

    index: int
    text: str | None = None
    signature: str | None = None
    encrypted: str | None = None
    item: JsonValue = None
    provider_meta: Mapping[str, JsonValue] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True)
class Usage:
    """What the provider counted so far; a later one adds to or replaces what an earlier one said."""

    counts: Mapping[str, JsonValue]


@final
@dataclass(frozen=True, slots=True)
class Finish:
    """The response is at its end. `replay`: what its provider wants back beside the blocks, one entry for each of them."""

    stop: Stop
    replay: tuple[JsonValue, ...] | None = None


Chunk = BlockStart | Delta | SealDelta | BlockEnd | Usage | Finish

_TAGS: dict[str, type[Any]] = {"s": BlockStart, "d": Delta, "g": SealDelta, "e": BlockEnd, "u": Usage, "f": Finish}
_TAG_OF = {kind: tag for tag, kind in _TAGS.items()}
MICROSECONDS = 1_000_000


def packed(stream: Iterable[tuple[float, Chunk]]) -> list[JsonValue]:
    """The timed stream as JSON: a row per chunk, the time since the one before in whole microseconds, trailing defaults left out.

    Most rows are deltas and cost a few bytes more than their text. Nothing is merged: who looks for the cause of a stall needs
    the times, and who looks for a fault of an adapter needs the pieces.
    """
    rows, before = list[JsonValue](), 0
    for at, chunk in stream:
        now = round(at * MICROSECONDS)
        values = [(getattr(chunk, one.name), _default(one)) for one in fields(chunk)]
        while values and values[-1][0] == values[-1][1]:
            values.pop()
        rows.append([now - before, _TAG_OF[type(chunk)], *(_plain(value) for value, _ in values)])
        before = now
    return rows


def unpacked(rows: Sequence[Any]) -> Iterator[tuple[float, Chunk]]:
    """The stream that `packed` wrote. Times are exact to a microsecond. Raises ValueError: it is no such stream."""
    at = 0
    for row in rows:
        try:
            at += row[0]
            yield at / MICROSECONDS, _chunk(row[1], row[2:])
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise ValueError(f"this is no row of a stream: {row!r}") from error


def _default(one: Field[Any]) -> Any:
    return one.default_factory() if one.default_factory is not MISSING else one.default


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def _chunk(tag: str, values: Sequence[Any]) -> Chunk:
    kind = _TAGS[tag]
    if kind is BlockStart:
        index, what, *rest = values
        return BlockStart(index, BlockKind(what), *rest)
    if kind is Finish:
        stop, *replay = values
        return Finish(Stop(stop), tuple(replay[0]) if replay else None)
    made: Chunk = kind(*values)
    return made
