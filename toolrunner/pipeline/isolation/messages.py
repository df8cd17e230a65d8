"""What host and worker tell each other: typed messages as JSON, each behind its length. No state but a reader's buffer.

Both ends read with the same adapters, so what is no message of the protocol is found at the edge and nowhere else.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, final

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter

from toolrunner.facts import Content, EffectStage
from toolrunner.results import Code, Ended, Error, ToolResult

FRAME_LIMIT = 32 << 20
"""Bytes of one message. A value that is larger belongs in a file; without a limit a worker could fill the host's memory."""

LENGTH = struct.Struct("!I")


class BadFrame(Exception):
    """What came is no message of this protocol; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Host to worker, first: which function, with what. `path` is the host's `sys.path`, which -I keeps out otherwise.

    `version` is the tool's: what the worker imported must be the very function that was registered. `backend` is the host's event
    loop, since a body may use what only one of them has. `over_at` is when the keeper's time limit will be over, on the monotonic
    clock that all processes share; it is told for the text of the reason only.
    """

    path: list[str]
    write_bytecode: bool
    module: str
    qualname: str
    name: str
    version: str
    annotations: Mapping[str, bool | None]
    arguments: dict[str, Any]
    run_id: str
    attempt: int
    backend: Literal["asyncio", "trio"]
    call_id: str | None = None
    kind: str = "function"
    idempotency_key: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    over_at: float | None = None
    type: Literal["start"] = "start"


@dataclass(frozen=True, slots=True)
class Abort:
    """Host to worker: the call is to stop. SIGTERM follows at once."""

    source: str
    text: str
    type: Literal["abort"] = "abort"


@dataclass(frozen=True, slots=True)
class Planned:
    """Host to worker: the plan of an effect is durable, or it could not be recorded and must not be begun."""

    effect: str
    error: str | None = None
    type: Literal["planned"] = "planned"


@dataclass(frozen=True, slots=True)
class ChildResult:
    """Host to worker: the end of a call made by `ctx.run`; `error` when it could not be made."""

    number: int
    result: ToolResult | None = None
    error: str | None = None
    type: Literal["child_result"] = "child_result"


@dataclass(frozen=True, slots=True)
class EffectPlan:
    """Worker to host: an effect is about to be made; the worker waits for `Planned`. `effect` is a name of the worker's own."""

    effect: str
    kind: str
    target: str
    type: Literal["effect_plan"] = "effect_plan"


@dataclass(frozen=True, slots=True)
class EffectEnd:
    """Worker to host: how the block of an effect was left."""

    effect: str
    stage: Literal[EffectStage.APPLIED, EffectStage.UNKNOWN, EffectStage.NOT_APPLIED]
    receipt: str | None = None
    error: str | None = None
    type: Literal["effect_end"] = "effect_end"


@dataclass(frozen=True, slots=True)
class Say:
    """Worker to host: a chunk of output."""

    text: str
    type: Literal["say"] = "say"


@dataclass(frozen=True, slots=True)
class Step:
    """Worker to host: how far the body is."""

    message: str
    done: float | None = None
    total: float | None = None
    type: Literal["step"] = "step"


@dataclass(frozen=True, slots=True)
class FollowUp:
    """Worker to host: a value for the result's `follow_up`."""

    value: JsonValue
    type: Literal["follow_up"] = "follow_up"


@dataclass(frozen=True, slots=True)
class ChildCall:
    """Worker to host: `ctx.run`. Answered by the `ChildResult` of the same number."""

    number: int
    name: str
    arguments: dict[str, Any]
    type: Literal["child_call"] = "child_call"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Worker to host, last: the body is over, and how. `told`: it had been asked to stop by then.

    `saw_abort`: it had noticed. `error` and `code` as a BodyEnd has them.
    """

    ended: Literal[Ended.RETURNED, Ended.RAISED, Ended.STOPPED]
    value: JsonValue = None
    content: tuple[Content, ...] = ()
    follow_up: tuple[JsonValue, ...] = ()
    reply_error: Error | None = None
    error: Error | None = None
    code: Literal[Code.TOOL_ERROR, Code.INVALID_OUTPUT] | None = None
    saw_abort: bool = False
    told: bool = False
    type: Literal["answer"] = "answer"


FromWorker = EffectPlan | EffectEnd | Say | Step | FollowUp | ChildCall | Answer
FromHost = Start | Abort | Planned | ChildResult

# Built at the first message: most programs that import this never have a worker.
_LATER = ConfigDict(defer_build=True)
FROM_WORKER: TypeAdapter[FromWorker] = TypeAdapter(Annotated[FromWorker, Field(discriminator="type")], config=_LATER)
FROM_HOST: TypeAdapter[FromHost] = TypeAdapter(Annotated[FromHost, Field(discriminator="type")], config=_LATER)


def frame(message: FromWorker | FromHost) -> bytes:
    """A message as it is sent. Raises BadFrame when it is longer than `FRAME_LIMIT`, or cannot be said."""
    adapter: TypeAdapter[Any] = FROM_HOST if isinstance(message, FromHost) else FROM_WORKER
    try:
        body = adapter.dump_json(message)
    except Exception as error:  # a lone surrogate, nesting deeper than the stack
        raise BadFrame(f"a message of type {message.type} cannot be sent: {error}") from error
    if len(body) > FRAME_LIMIT:
        raise BadFrame(f"a message of type {message.type} has {len(body):,} bytes; {FRAME_LIMIT:,} can be sent")
    return LENGTH.pack(len(body)) + body


@final
class Frames:
    """Cuts a stream into the bodies of its messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The bodies that are complete with `data`. Raises BadFrame for a length that no message has."""
        self._buffer += data
        while len(self._buffer) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._buffer)
            if length > FRAME_LIMIT:
                raise BadFrame(f"a message of {length:,} bytes was announced; {FRAME_LIMIT:,} can be sent")
            end = LENGTH.size + length
            if len(self._buffer) < end:
                return
            body = bytes(memoryview(self._buffer)[LENGTH.size : end])
            del self._buffer[:end]
            yield body
