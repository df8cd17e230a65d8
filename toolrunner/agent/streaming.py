"""One request to a model, from the moment it leaves to the record of what came back. How a stream can end is the table `Ending`.

State: one `Exchange`. The record is durable before anybody is told that the stream is over; both come before the step's end.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, final

import anyio

from toolrunner.abort import AbortSignal
from toolrunner.agent.frames import Frame, StreamChunk, StreamEnded, StreamStarted
from toolrunner.agent.model import Model, ModelError, ModelRequest
from toolrunner.agent.session import Session
from toolrunner.errors import JournalError
from toolrunner.history import Draft, StreamAssembler, UnfinishedBlock
from toolrunner.history.chunks import BlockKind, BlockStart, Chunk, Delta, Stop
from toolrunner.records import AssistantAttempt, AssistantMessage, Block

__all__ = ["Ending", "Exchange", "Received", "Route", "Shows"]

_logger = logging.getLogger("toolrunner")


class Ending(StrEnum):
    """How a stream ended."""

    WHOLE = "whole"
    """The model's own end: `assistant/message`."""
    INTERRUPTED = "interrupted"
    """Stopped, with something that was read: `assistant/message`, marked. A stop on the last chunk counts."""
    NOTHING = "nothing"
    """Stopped before anything could be seen: `assistant/attempt`."""
    FAILED = "failed"
    """The provider failed, or broke it off: `assistant/attempt`, before anybody is asked what to do."""
    THROWN = "thrown"
    """Something of ours or the host's raised: `assistant/attempt`, and the error goes on."""


_CAUSES: dict[Ending, Literal["cancelled", "error", "thrown"]] = {
    Ending.NOTHING: "cancelled",
    Ending.FAILED: "error",
    Ending.THROWN: "thrown",
}


@final
@dataclass(frozen=True, slots=True)
class Route:
    """Whose request it is, and where it goes."""

    turn_id: str
    step: int
    provider: str
    model: str
    sent_seq: int


@final
@dataclass(frozen=True, slots=True)
class Received:
    """What came back. `blocks` are those of the record, none of an attempt; `error` is that of FAILED and THROWN."""

    ending: Ending
    blocks: tuple[Block, ...] = ()
    stop: Stop | None = None
    error: BaseException | None = None
    truncated: tuple[str, ...] = ()
    """Names of calls that the token limit cut; none of them is run."""


@final
class Shows:
    """Shows frames to whoever looks, numbered. State: the observers and the last number."""

    def __init__(self) -> None:
        self._observers: tuple[Callable[[Frame], object], ...] = ()
        self._revision = 0

    def observe(self, observer: Callable[[Frame], object]) -> Callable[[], None]:
        """Hear of every frame. Sync, must not block; what it raises is logged and dropped."""
        self._observers = (*self._observers, observer)

        def stop() -> None:
            self._observers = tuple(one for one in self._observers if one is not observer)

        return stop

    def next_revision(self) -> int:
        """The number of the next frame."""
        self._revision += 1
        return self._revision

    def show(self, frame: Frame) -> None:
        """Show one."""
        for observer in self._observers:
            try:
                observer(frame)
            except Exception:
                _logger.exception("an observer of a stream raised")


@final
class Exchange:
    """One request and its reply."""

    def __init__(self, session: Session, route: Route, signal: AbortSignal, shows: Shows) -> None:
        self._session, self._route, self._signal, self._shows = session, route, signal, shows
        self._assembler = StreamAssembler()
        self._began = time.monotonic()
        self._index = 0
        self._texts: dict[int, bool] = {}
        """Blocks by their index, and whether they are text: only that may be sent again after a kill."""
        self._said: list[str] = []

    async def run(self, model: Model, request: ModelRequest) -> Received:
        """Send it, read it, record it. Raises JournalError (with what had happened in it) when it cannot be recorded."""
        route = self._route
        self._shows.show(StreamStarted(route.turn_id, route.step, self._shows.next_revision()))
        reply = await self._read(model, request)
        committed: StreamEnded | None = None
        try:
            committed = await self._commit(reply)
        finally:
            ended = committed or StreamEnded(route.turn_id, route.step, self._shows.next_revision(), None)
            self._shows.show(ended)
        return reply

    async def _read(self, model: Model, request: ModelRequest) -> Received:
        error: BaseException | None = None
        try:
            async with self._signal.scope():
                await self._take_all(model, request)
        except ModelError as failure:
            error = failure
        except anyio.get_cancelled_exc_class() as failure:  # the loop is torn down; the record is written all the same
            return self._thrown(failure)
        except BaseException as failure:  # noqa: BLE001 - raised on by the turn, once what came is recorded
            return self._thrown(failure)
        if self._signal.aborted:
            return self._stopped()
        return self._failed(error) if error is not None else self._over()

    async def _take_all(self, model: Model, request: ModelRequest) -> None:
        if self._signal.aborted:
            return
        async with model.stream(request) as chunks:
            async for chunk in chunks:
                if self._signal.aborted:  # what comes after the stop was never shown
                    return
                self._push(chunk)

    def _push(self, chunk: Chunk) -> None:
        at = time.monotonic() - self._began
        self._assembler.push(chunk, at)
        self._note_text(chunk)
        route = self._route
        self._shows.show(StreamChunk(route.turn_id, route.step, self._shows.next_revision(), self._index, at, chunk))
        self._index += 1

    def _note_text(self, chunk: Chunk) -> None:
        if isinstance(chunk, BlockStart):
            self._texts.setdefault(chunk.index, chunk.kind is BlockKind.TEXT)
        elif isinstance(chunk, Delta) and self._texts.get(chunk.index):
            self._said.append(chunk.text)
            self._session.draft(self._draft)

    def _draft(self) -> Draft:
        """Called in the draft's own thread, while more may be said: a join takes what the list holds at that moment."""
        return Draft(self._route.turn_id, self._route.sent_seq).with_text("".join(self._said))

    # How it ended.

    def _over(self) -> Received:
        stop = self._assembler.stop
        if stop in (None, Stop.ERROR, Stop.ABORTED):
            told = "the provider broke the response off" if stop is not None else "the response ended before its end"
            return self._failed(ModelError(told, retryable=True))
        try:
            blocks = self._assembler.blocks()
        except UnfinishedBlock as error:
            return self._failed(error)
        cut = tuple(call.name for call in self._assembler.truncated_calls())
        return Received(Ending.WHOLE, blocks, stop, truncated=cut)

    def _stopped(self) -> Received:
        blocks = self._assembler.interrupted_blocks(calls=self._session.cut_calls == "answer")
        return Received(Ending.INTERRUPTED if blocks else Ending.NOTHING, blocks, self._assembler.stop)

    def _failed(self, error: BaseException) -> Received:
        return Received(Ending.FAILED, stop=self._assembler.stop, error=error)

    def _thrown(self, error: BaseException) -> Received:
        return Received(Ending.THROWN, stop=self._assembler.stop, error=error)

    # What is recorded.

    async def _commit(self, reply: Received) -> StreamEnded:
        record = self._message(reply) if reply.ending in (Ending.WHOLE, Ending.INTERRUPTED) else self._attempt(reply)
        route = self._route
        try:
            seq = self._session.append(record)
            if reply.ending is not Ending.THROWN:  # then the task may be on its way out, and nothing is done on the record
                await self._session.durable()
        except JournalError as error:
            if reply.error is None:
                raise
            raise BaseExceptionGroup("a request failed, and its record could not be written", [error, reply.error]) from error
        return StreamEnded(route.turn_id, route.step, self._shows.next_revision(), (record.type, seq))

    def _message(self, reply: Received) -> AssistantMessage:
        route, came = self._route, self._assembler
        interrupted = reply.ending is Ending.INTERRUPTED
        return AssistantMessage(
            run_id=route.turn_id,
            step=route.step,
            provider=route.provider,
            model=route.model,
            blocks=reply.blocks,
            interrupted=interrupted,
            stop=reply.stop,
            stream=came.stream(),
            usage=dict(came.usage),
            replay=came.replay(interrupted=interrupted, calls=self._session.cut_calls == "answer"),
        )

    def _attempt(self, reply: Received) -> AssistantAttempt:
        route, came = self._route, self._assembler
        aborted = reply.ending is Ending.FAILED and reply.stop is Stop.ABORTED
        return AssistantAttempt(
            run_id=route.turn_id,
            step=route.step,
            provider=route.provider,
            model=route.model,
            cause="aborted" if aborted else _CAUSES[reply.ending],
            text=str(reply.error) if reply.error is not None else "",
            stream=came.stream(),
            usage=dict(came.usage),
        )
