"""Puts a streamed response together: a whole message, or what was delivered of one that was stopped. Pure: time is handed in.

State: a `StreamAssembler`, of one response; whoever reads the stream pushes into it and nobody else. It forgives what providers
and reconnects do (blocks begun twice, deltas after an end) and never guesses: a call that is not whole is no call.
"""

from dataclasses import dataclass, field
from typing import Any, final

from pydantic import JsonValue

from toolrunner.errors import ToolrunnerError
from toolrunner.history.chunks import BlockEnd, BlockKind, BlockStart, Chunk, Delta, Finish, SealDelta, Stop, Usage, packed
from toolrunner.records import Block, CallBlock, ReasoningBlock, RedactedBlock, TextBlock, UnknownBlock
from toolrunner.wire.reading import loaded

__all__ = ["StreamAssembler", "TruncatedCall", "UnfinishedBlock"]


class UnfinishedBlock(ToolrunnerError):
    """A response ended with a block open that nobody here can complete: an object of the provider's own."""

    def __init__(self, index: int, item: JsonValue) -> None:
        kind = item.get("type") if isinstance(item, dict) else None
        super().__init__(f"block {index} ({kind or 'of an unknown kind'}) was never finished")
        self.index = index


@final
@dataclass(frozen=True, slots=True)
class TruncatedCall:
    """A call that the token limit cut: never run, and an error of its own for whoever asked."""

    name: str
    call_id: str | None
    arguments: str


@final
@dataclass(slots=True)
class _Part:
    """One block in the making."""

    start: BlockStart
    text: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)
    end: BlockEnd | None = None

    def add(self, chunk: Delta | SealDelta | BlockEnd) -> None:
        match chunk:
            case Delta():
                self.text.append(chunk.text)
            case SealDelta():
                self.signature.append(chunk.signature)
            case BlockEnd():
                self.end = chunk

    @property
    def said(self) -> str:
        return self.end.text if self.end is not None and self.end.text is not None else "".join(self.text)

    @property
    def seal(self) -> str | None:
        """The signature, which a block has only when it is complete: half of one is refused for ever."""
        if self.end is None:
            return None
        return self.end.signature or "".join(self.signature) or None

    @property
    def meta(self) -> dict[str, JsonValue]:
        return {**self.start.provider_meta, **(self.end.provider_meta if self.end is not None else {})}

    @property
    def item(self) -> JsonValue:
        return self.end.item if self.end is not None and self.end.item is not None else self.start.item


@final
@dataclass(slots=True)
class StreamAssembler:
    """Takes the chunks of one response in order."""

    usage: dict[str, JsonValue] = field(default_factory=dict)
    stop: Stop | None = None
    """Why the response ended; None: it has not, or was cut."""
    _parts: dict[int, _Part] = field(default_factory=dict)
    _replay: tuple[JsonValue, ...] | None = None
    _stream: list[tuple[float, Chunk]] = field(default_factory=list)

    def push(self, chunk: Chunk, at: float) -> None:
        """Take the next chunk. `at`: seconds since the request was sent, on the caller's monotonic clock."""
        self._stream.append((at, chunk))
        match chunk:
            case BlockStart():
                self._parts.setdefault(chunk.index, _Part(chunk))
            case Usage():
                self.usage |= dict(chunk.counts)
            case Finish():
                self.stop, self._replay = chunk.stop, chunk.replay
            case _:
                part = self._parts.get(chunk.index)
                if part is not None and part.end is None:
                    part.add(chunk)

    def stream(self) -> list[JsonValue]:
        """The exact timed stream so far, half calls included, for the record of the message or attempt."""
        return packed(self._stream)

    def blocks(self) -> tuple[Block, ...]:
        """The blocks of a response that came to its end.

        At the token limit calls are left out, whole ones too: which of them the model still meant to make nobody knows.
        `truncated_calls` lists them.

        Raises:
            UnfinishedBlock: a block of an unknown kind is still open.
        """
        kept = self._kept_parts()
        for part in kept:
            if part.start.kind is BlockKind.UNKNOWN and part.end is None:
                raise UnfinishedBlock(part.start.index, part.item)
        return tuple(_block(part, closed=True) for part in kept)

    def interrupted_blocks(self, *, calls: bool = False) -> tuple[Block, ...]:
        """What was delivered of a response that was stopped, in stream order: every text and thought that can be seen.

        Calls were never dispatched, so there is no result to tell, and they are left out; with `calls` those stay whose block had
        ended (a session that answers them). Half calls, empty blocks and unknown blocks that are open never stay.
        """
        return tuple(
            _block(part, closed=part.end is not None) for part in self._parts.values() if _is_delivered(part, calls=calls)
        )

    def replay(self, *, interrupted: bool = False, calls: bool = False) -> tuple[JsonValue, ...] | None:
        """What the provider wants back, one entry for each block that is kept; None where it does not fit the blocks."""
        parts = list(self._parts.values())
        if self._replay is None or len(self._replay) != len(parts):
            return None
        kept = [part for part in parts if _is_delivered(part, calls=calls)] if interrupted else self._kept_parts()
        return tuple(entry for entry, part in zip(self._replay, parts, strict=True) if any(part is one for one in kept))

    def truncated_calls(self) -> tuple[TruncatedCall, ...]:
        """Calls that the token limit cut: open, or not the JSON of an object. [] at every other end."""
        if self.stop is not Stop.MAX_TOKENS:
            return ()
        return tuple(
            TruncatedCall(part.start.name, part.start.call_id, part.said)
            for part in self._parts.values()
            if part.start.kind is BlockKind.CALL and (part.end is None or not _is_whole(part))
        )

    def _kept_parts(self) -> list[_Part]:
        parts = list(self._parts.values())
        if self.stop is not Stop.MAX_TOKENS:
            return parts
        return [part for part in parts if part.start.kind is not BlockKind.CALL]


def _is_whole(part: _Part) -> bool:
    return isinstance(loaded(part.said or "{}"), dict)


def _is_delivered(part: _Part, *, calls: bool) -> bool:
    match part.start.kind:
        case BlockKind.TEXT | BlockKind.REASONING:
            return bool(part.said.strip()) or (part.start.kind is BlockKind.REASONING and _is_sealed(part))
        case BlockKind.REDACTED | BlockKind.UNKNOWN:
            return part.end is not None
        case BlockKind.CALL:
            return calls and part.end is not None
    raise AssertionError(part.start.kind)


def _is_sealed(part: _Part) -> bool:
    return part.end is not None and bool(part.seal or part.end.encrypted)


def _block(part: _Part, *, closed: bool) -> Block:
    start = part.start
    match start.kind:
        case BlockKind.TEXT:
            return TextBlock(part.said, closed, start.item_id, part.seal)
        case BlockKind.REASONING:
            encrypted = part.end.encrypted if part.end is not None else None
            return ReasoningBlock(part.said, closed, part.seal, encrypted, start.item_id, part.meta)
        case BlockKind.REDACTED:
            item = part.item
            return RedactedBlock(item if isinstance(item, str) else part.said, closed)
        case BlockKind.CALL:
            return CallBlock(start.name, part.said, start.call_id, start.call_kind, closed, part.meta)
        case BlockKind.UNKNOWN:
            item = part.item
            own: dict[str, Any] = item if isinstance(item, dict) else {"type": "unknown", "value": item}
            return UnknownBlock(own, closed)
    raise AssertionError(start.kind)
