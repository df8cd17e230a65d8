"""The host's end of the channel to one worker: what the worker says is done here, in the name of its call.

State: the socket, what is still to be sent, the effects whose end was not told, and the answer. Changed on the runner's loop
only, by the conversation's own task and by the sync methods of its body.
"""

import socket
from collections.abc import Awaitable, Callable
from typing import final

import anyio
import anyio.abc
import anyio.lowlevel
from pydantic import ValidationError

from toolrunner.effects import Declared
from toolrunner.facts import EffectStage
from toolrunner.facts.frozen import FreezeError
from toolrunner.pipeline.context import BodyServices
from toolrunner.pipeline.foreign import text_of, type_name
from toolrunner.pipeline.isolation.messages import (
    FRAME_LIMIT,
    FROM_WORKER,
    LENGTH,
    Answer,
    BadFrame,
    ChildCall,
    ChildResult,
    EffectEnd,
    EffectPlan,
    FollowUp,
    Frames,
    FromHost,
    FromWorker,
    Planned,
    Say,
    Step,
    frame,
)
from toolrunner.pipeline.state import ActiveCall

CHUNK = 1 << 16

KEPT_LIMIT = 64 << 20
"""Bytes of messages that leave something in the result or the ledger: a worker must not fill the host's memory with them."""

LAST_READS = 1 + (FRAME_LIMIT + LENGTH.size) // CHUNK
"""Reads after the worker's end: a whole answer may be on its way. More comes only from a survivor that has the channel too."""


class Breach(Exception):
    """The worker sent what no worker of ours sends; the text says what."""


@final
class Conversation:
    """One channel. `ended` is called once the worker has said its last word: an answer, what nobody understands, or nothing."""

    def __init__(self, state: ActiveCall, services: BodyServices, sock: socket.socket, ended: Callable[[], object]) -> None:
        self.answer: Answer | None = None
        self.breach: str | None = None
        self._state = state
        self._services = services
        self._sock = sock
        self._ended = ended
        self._out = bytearray()
        self._more_out = anyio.Event()
        self._frames = Frames()
        self._kept = 0
        self._effects: dict[str, tuple[str, bool]] = {}
        """By the worker's name: the ledger's name, and whether the worker was let into the block."""
        self._scope = anyio.CancelScope()
        self._tasks: anyio.abc.TaskGroup | None = None

    def send(self, message: FromHost) -> None:
        """Send a message, now or when there is room. Raises BadFrame for what cannot be sent."""
        data = frame(message)
        if not self._out:
            data = data[self._push(data) :]
        if data:
            self._out += data
            self._more_out.set()

    def _push(self, data: bytes | bytearray) -> int:
        """How many bytes were taken. A worker that is gone takes everything."""
        try:
            return self._sock.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            return len(data)

    async def run(self) -> None:
        """Listen until the answer, the end, or `close`."""
        with self._scope:
            async with anyio.create_task_group() as self._tasks:
                self._tasks.start_soon(self._write)
                try:
                    await self._listen()
                except Breach as breach:
                    self.breach = str(breach)
                self._ended()

    async def _write(self) -> None:
        while True:
            while self._out:
                await anyio.wait_writable(self._sock)
                del self._out[: self._push(self._out)]
            self._more_out = anyio.Event()
            await self._more_out.wait()

    async def _listen(self) -> None:
        while self.answer is None:
            await anyio.wait_readable(self._sock)
            if not self._take_some():
                return
            await anyio.lowlevel.checkpoint()  # a worker that talks without a pause must not keep the loop for itself

    def _take_some(self) -> bool:
        """Read once. False at the end of the stream, or when there is nothing more to read now. Raises Breach."""
        try:
            data = self._sock.recv(CHUNK)
        except OSError as error:
            return isinstance(error, BlockingIOError) and self._tasks is not None
        if not data:
            return False
        try:
            for body in self._frames.feed(data):
                if self.answer is None:
                    self._take(FROM_WORKER.validate_json(body), len(body))
        except (BadFrame, ValidationError, FreezeError) as error:
            raise Breach(f"{type_name(error)}: {text_of(error)}") from error
        return True

    def _take(self, message: FromWorker, size: int) -> None:
        match message:
            case Say():
                self._services.output(message.text)
            case Step():
                self._services.progress(message.message, message.done, message.total)
            case Answer():
                self.answer = message
            case _:
                self._kept += size
                if self._kept > KEPT_LIMIT:
                    raise Breach(f"it told of more than {KEPT_LIMIT:,} bytes of effects, follow-ups and calls")
                self._keep(message)

    def _keep(self, message: EffectPlan | EffectEnd | FollowUp | ChildCall) -> None:
        match message:
            case FollowUp():
                self._services.follow_up(message.value)
            case EffectPlan():
                self._plan(message)
            case EffectEnd():
                self._close_effect(message)
            case ChildCall() if self._tasks is not None:
                self._tasks.start_soon(self._call, message)

    # Effects: the worker enters the block only when the plan is durable here.

    def _plan(self, message: EffectPlan) -> None:
        if self._tasks is None or message.effect in self._effects:
            return  # its worker is gone before it was let into the block
        try:
            effect, durable = self._state.ledger.plan(Declared(message.kind, message.target))
        except Exception as error:  # noqa: BLE001 - the journal's own; the act must not be begun
            self.send(Planned(message.effect, f"it could not be recorded: {text_of(error)}"))
            return
        self._effects[message.effect] = (effect, False)
        if durable is None:
            self._let_in(message.effect)
        else:
            self._tasks.start_soon(self._when_durable, message.effect, durable)

    def _close_effect(self, message: EffectEnd) -> None:
        known = self._effects.pop(message.effect, None)
        if known is not None:
            self._state.ledger.close(known[0], message.stage, receipt=message.receipt, error=message.error)
        elif message.stage is not EffectStage.NOT_APPLIED:  # (that is the echo of a plan that could not be recorded)
            raise Breach(f"it told the end of an effect that it had not planned: {message.effect}")

    async def _when_durable(self, name: str, durable: Awaitable[None]) -> None:
        try:
            await durable
        except Exception as error:  # noqa: BLE001 - the journal's own; the act must not be begun
            known = self._effects.pop(name, None)
            if known is not None:
                self._state.ledger.withdraw(known[0], error)
            self.send(Planned(name, f"it could not be recorded: {text_of(error)}"))
        else:
            self._let_in(name)

    def _let_in(self, name: str) -> None:
        if name in self._effects:  # its body may have been stopped meanwhile
            self._effects[name] = (self._effects[name][0], True)
            self.send(Planned(name))

    # Child calls: made here, since policy, locks and the journal are here.

    async def _call(self, message: ChildCall) -> None:
        try:
            result = await self._services.run(message.name, message.arguments)
            answer = ChildResult(message.number, result)
            frame(answer)
        except Exception as error:  # noqa: BLE001 - told to the body, whose call it was
            answer = ChildResult(message.number, error=f"{type_name(error)}: {text_of(error)}")
        self.send(answer)

    # The end.

    def stop(self) -> None:
        """End the task of `run`."""
        self._scope.cancel()

    def close(self) -> None:
        """The worker is over and `run` has ended: read what it had still sent, and close. Idempotent."""
        self._tasks = None
        if self._sock.fileno() < 0:
            return
        try:
            for _ in range(LAST_READS):
                if self.answer is not None or self.breach is not None or not self._take_some():
                    break
        except Breach as breach:
            self.breach = str(breach)
        self._sock.close()
        self._out.clear()
        for effect, entered in self._effects.values():
            if entered:
                self._state.ledger.close(effect, EffectStage.UNKNOWN, error="the worker ended before it told how the act ended")
            else:
                self._state.ledger.close(effect, EffectStage.NOT_APPLIED, error="not begun: the worker ended first")
        self._effects.clear()
