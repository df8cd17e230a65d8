"""The worker: one process, one body, one answer. What bodies are in the host they are here too; only their runner is far away.

State: the process itself. The body runs as `AsyncBody` or `ThreadBody`, so a stop reaches it as it would in the host.
"""

import importlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO, final

import anyio

from toolrunner.calls import ToolCall
from toolrunner.errors import ToolError
from toolrunner.facts.texts import well_formed
from toolrunner.loops import loop_caller, poster
from toolrunner.pipeline.bodies import AsyncBody, Body, ThreadBody
from toolrunner.pipeline.context import body_arguments
from toolrunner.pipeline.ends import BodyEnd
from toolrunner.pipeline.foreign import error_fact
from toolrunner.pipeline.isolation.channel import Channel, ChannelLost
from toolrunner.pipeline.isolation.inside import Hosted, NoDeps
from toolrunner.pipeline.isolation.messages import FROM_HOST, Answer, BadFrame, ChildResult, Planned, Start
from toolrunner.pipeline.isolation.orders import Orders
from toolrunner.pipeline.state import ActiveCall
from toolrunner.pipeline.threads import WorkerThreads
from toolrunner.results import Code, Ended, Error, ErrorKind
from toolrunner.tasks import OwnedTask, TaskRoot
from toolrunner.tools import AnyTool, BodyKind, Registration, Tool, tool

NO_ANSWER = 70
"""Exit status of a worker that could not tell its host how the body ended (EX_SOFTWARE of sysexits.h)."""


def main(fd: int, first: bytes) -> None:
    """The whole life of a worker. `first` is the host's `Start`."""
    channel = Channel(fd)
    start = FROM_HOST.validate_json(first)
    assert isinstance(start, Start)
    pid = os.getpid()
    for stream in (sys.stdout, sys.stderr):  # both are pipes: what is printed is to be seen while it happens
        stream.reconfigure(line_buffering=True, encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    worker = Worker(channel, Orders(channel, start.over_at), start)
    try:
        worker.run()
    except BaseException as error:  # noqa: BLE001 - the body's own, or what it did to this process
        if os.getpid() == pid:
            worker.tell_broken(error)
    if os.getpid() != pid or not worker.answered:
        _leave(NO_ANSWER, "toolrunner: this process could not tell the host how the tool ended")


def _leave(status: int, text: str = "") -> None:
    stream: TextIO
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # the tool may have closed or replaced it
            stream.flush()
    with suppress(OSError):
        os.write(2, text.encode() + b"\n" if text else b"")
    os._exit(status)


@final
class Worker:
    """One call in this process."""

    def __init__(self, channel: Channel, orders: Orders, start: Start) -> None:
        self._channel = channel
        self._orders = orders
        self._start = start
        self.answered = False

    def run(self) -> None:
        """Import the tool, run its body, answer."""
        try:
            loaded = load(self._start)
        except BaseException as error:  # noqa: BLE001 - the module's own code
            self.tell_broken(error, f"the worker process could not import {self._start.module}.{self._start.qualname}: ")
            return
        anyio.run(self._live, loaded, backend=self._start.backend)

    def tell_broken(self, error: BaseException, before: str = "") -> None:
        """Something went wrong around the body: that is the answer, if there was none."""
        fact = error_fact(error)
        self._tell(BodyEnd(Ended.RAISED, error=Error(fact.kind, before + fact.message), code=Code.TOOL_ERROR))

    async def _live(self, loaded: AnyTool) -> None:
        root, hosted = TaskRoot(), self._connect()
        state = self._state(loaded, hosted)
        threads = WorkerThreads()
        body = _body(state, hosted, threads)

        async def enter() -> None:
            unsubscribe = state.body_signal.on_abort(body.deliver)
            try:
                end = await body.run(lambda: _begin(state), task[0])
            finally:
                unsubscribe()
            assert end is not None
            self._tell(end)

        task: list[OwnedTask] = []
        task.append(root.spawn(enter, f"body {state.name}"))
        await task[0].done.wait()
        threads.close()

    def _connect(self) -> Hosted:
        post = poster()
        hosted = Hosted(self._start.run_id, self._channel.send, loop_caller(post))

        def on_loop(fn: Callable[[], object]) -> None:
            with suppress(RuntimeError, OSError):  # the loop is over, or the tool closed it, and with it everybody who waits
                post(fn)

        def answer(message: Planned | ChildResult) -> None:
            on_loop(lambda: hosted.take(message))

        self._orders.connect(answer, lambda why: on_loop(lambda: hosted.close(why)))
        return hosted

    def _state(self, loaded: AnyTool, hosted: Hosted) -> ActiveCall:
        start, signal = self._start, self._orders.controller.signal
        state = ActiveCall(
            call=ToolCall(
                start.name, start.arguments, call_id=start.call_id, kind=start.kind, idempotency_key=start.idempotency_key,
                meta=start.meta,
            ),
            run_id=start.run_id,
            deps=NoDeps(),
            ledger=hosted.ledger,
            signal=signal,
            stop_batch=lambda _: None,
        )  # fmt: skip
        state.registration = Registration(loaded, "worker")
        state.arguments = start.arguments
        state.attempts = start.attempt - 1
        state.kwargs = loaded.parse(start.arguments)
        state.body_signal = signal.immediate()
        state.shown_signal = type(signal).any(state.body_signal)
        return state

    def _tell(self, end: BodyEnd) -> None:
        """The answer, once. What cannot be sent is told as an error that can."""
        if self.answered:
            return
        answer = _answer(end, told=self._orders.controller.signal.aborted)
        try:
            try:
                self._channel.send(answer)
            except BadFrame as bad:
                error = Error(ErrorKind.INVALID_OUTPUT, f"what it returned cannot be sent to the host: {bad}")
                invalid = BodyEnd(Ended.RETURNED, error=error, code=Code.INVALID_OUTPUT, saw_abort=end.saw_abort)
                self._channel.send(_answer(invalid, told=answer.told))
        except ChannelLost as lost:
            # A fork that came back from the body ends here, before it touches the loop that it shares with the worker.
            _leave(NO_ANSWER, f"toolrunner: how the tool ended could not be told: {lost}")
        self.answered = True
        self._orders.silence()


def load(start: Start) -> AnyTool:
    """The tool as this process imports it. Raises ToolError when it is not the one that was registered."""
    found: Any = getattr(importlib.import_module(start.module), start.qualname)
    fn = found.fn if isinstance(found, Tool) else found
    declared: Any = start.annotations
    loaded: AnyTool = tool(fn, name=start.name, **declared)
    if loaded.version != start.version:
        raise ToolError("its source is another one than when it was registered", kind="tool_changed")
    return loaded


def _begin(state: ActiveCall) -> bool:
    state.begin()
    return True


def _body(state: ActiveCall, hosted: Hosted, threads: WorkerThreads) -> Body:
    assert state.registration is not None

    def arguments() -> dict[str, Any]:
        return body_arguments(state, hosted)

    if state.registration.tool.kind is BodyKind.SYNC:
        return ThreadBody(state, arguments, threads)
    return AsyncBody(state, arguments)


def _answer(end: BodyEnd, *, told: bool) -> Answer:
    reply = end.reply
    error = end.error
    if error is not None:
        error = Error(well_formed(error.kind), well_formed(error.message))
    return Answer(
        ended=end.ended,  # type: ignore[arg-type]  # a body that is over here is never lost
        value=reply.value,
        content=tuple(reply.content),
        follow_up=tuple(reply.follow_up),
        reply_error=reply.error,
        error=error,
        code=end.code,  # type: ignore[arg-type]  # one of the two that bodies have
        saw_abort=end.saw_abort,
        told=told,
    )
