"""Frames: what a stream shows while it comes. Of this process only; the log has all of it in one record. Frozen; no state."""

from dataclasses import dataclass
from typing import Literal, final

from toolrunner.history.chunks import Chunk

__all__ = ["Frame", "StreamChunk", "StreamEnded", "StreamStarted"]


@final
@dataclass(frozen=True, slots=True)
class StreamStarted:
    """A request has left. `revision` counts all frames of an agent, so that who missed one knows."""

    turn_id: str
    step: int
    revision: int


@final
@dataclass(frozen=True, slots=True)
class StreamChunk:
    """The chunk `index` of this stream, `at` seconds after the request left."""

    turn_id: str
    step: int
    revision: int
    index: int
    at: float
    chunk: Chunk


@final
@dataclass(frozen=True, slots=True)
class StreamEnded:
    """Nothing more comes. `committed`: the type and number of the record that holds the stream; None: it could not be written."""

    turn_id: str
    step: int
    revision: int
    committed: tuple[Literal["assistant/message", "assistant/attempt"], int] | None


Frame = StreamStarted | StreamChunk | StreamEnded
