"""The Body of one attempt in a worker process: prepared behind its gate, released at the moment of action, awaited to its end."""

import socket
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal, final

from toolrunner.facts import ProcessIdentity
from toolrunner.facts.frozen import FreezeError, freeze
from toolrunner.facts.texts import well_formed
from toolrunner.loops import call_later, native_loop
from toolrunner.pipeline.bodies import Body, Gate, torn_down
from toolrunner.pipeline.context import BodyServices
from toolrunner.pipeline.ends import BodyEnd
from toolrunner.pipeline.isolation.conversation import Conversation
from toolrunner.pipeline.isolation.messages import Abort, BadFrame, Start, frame
from toolrunner.pipeline.isolation.verdict import timed_out, worker_end
from toolrunner.pipeline.released import never_ran, note_stop, released_end
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.process import LaunchPlan, Prepared, SpawnErrorKind, SpawnRefused
from toolrunner.tasks import OwnedTask, wait_through

ENTRY = str(Path(__file__).parent / "__main__.py")

EXIT_BOUND = 2.0
"""Seconds for a worker to leave after its answer: enough for exit functions and log flushes. No thread holds it longer."""

REASON_LIMIT = 10_000
"""Characters of an abort's reason that the worker is told; a message that is too long to be sent must not keep the stop away."""


async def isolated_body(state: ActiveCall, services: Services) -> "IsolatedBody":
    """A worker at its gate. Raises SpawnRefused."""
    start = _start(state)
    ours, theirs = _pair()
    try:
        prepared = await services.prepare_process(
            _plan(state, services, theirs.fileno()), on_output=BodyServices(state, services).process_output
        )
    except BaseException:
        ours.close()
        theirs.close()
        raise
    return IsolatedBody(state, services, prepared, start, (ours, theirs))


@final
class IsolatedBody(Body):
    """One worker."""

    def __init__(
        self, state: ActiveCall, services: Services, prepared: Prepared, start: Start, ends: tuple[socket.socket, socket.socket]
    ) -> None:
        self._state = state
        self._services = services
        self._prepared = prepared
        self._start = start
        ours, self._theirs = ends
        self._talk = Conversation(state, BodyServices(state, services), ours, self._no_more)
        self._timers: list[Callable[[], None]] = []

    @property
    def identity(self) -> ProcessIdentity | None:
        return self._prepared.identity

    async def run(self, gate: Gate, task: OwnedTask) -> BodyEnd | None:  # noqa: ARG002 - the ladder ends it, no cancel
        if not gate():
            await self.discard()
            return None
        # Before the release, from which the keeper's clock runs: its SIGTERM must find the worker's own limit over, however long
        # this host is held up in between.
        released = time.monotonic()
        # The moment of action: nothing that could fail or wait between the gate's yes and the release.
        self._prepared.go()
        self._theirs.close()  # not before: without a keeper the process is made by `go`
        timeout = _timeout(self._state)
        self._talk.send(replace(self._start, over_at=None if timeout is None else released + timeout))
        talk = self._services.root.spawn(self._talk.run, f"worker {self._state.name}")
        end = await released_end(self._state, self._prepared)
        for take_back in self._timers:
            take_back()
        self._talk.stop()
        await wait_through(talk.done, lambda: torn_down(self._state))
        self._talk.close()
        note_stop(self._state, end, timed_out=timed_out(end, self._talk.answer))
        if never_ran(self._state, end):
            return None
        assert self._state.registration is not None
        return worker_end(self._state.registration.tool, end, self._talk.answer, self._talk.breach)

    def deliver(self) -> None:
        # The reason first: the signal that follows has none.
        reason = self._state.body_signal.reason
        if reason is not None:
            self._talk.send(Abort(well_formed(reason.source), well_formed(reason.text[:REASON_LIMIT])))
        self._prepared.stop()

    async def discard(self) -> None:
        self._theirs.close()
        self._talk.close()
        await self._prepared.abandon()

    def _no_more(self) -> None:
        """The worker's last word is said, so its process has to leave. One that is not understood has to go at once."""
        if self._talk.breach is not None:
            self._prepared.stop()
        else:
            self._timers.append(call_later(EXIT_BOUND, self._leave))

    def _leave(self) -> None:
        if self._talk.answer is None:
            # It lives without its channel, so nothing that it does can become a result any more.
            self._talk.breach = "the tool closed the worker's channel"
        self._prepared.stop()


def _pair() -> tuple[socket.socket, socket.socket]:
    try:
        ours, theirs = socket.socketpair()
    except OSError as error:
        raise SpawnRefused.from_os("the channel to the worker process", error) from error
    ours.setblocking(False)
    return ours, theirs


def _plan(state: ActiveCall, services: Services, channel: int) -> LaunchPlan:
    if not sys.executable or getattr(sys, "frozen", False):
        raise SpawnRefused(SpawnErrorKind.SETUP, "there is no Python interpreter that a worker process could be started with")
    assert state.registration is not None
    tool = state.registration.tool
    return LaunchPlan(
        argv=(sys.executable, "-I", ENTRY, str(channel)),
        kill_after=tool.kill_after if tool.kill_after is not None else services.limits.kill_after,
        timeout=_timeout(state),
        # The same number on both sides: without a keeper descriptors cannot be renumbered.
        pass_fds={channel: channel},
    )


def _timeout(state: ActiveCall) -> float | None:
    assert state.registration is not None
    return state.call.timeout if state.call.timeout is not None else state.registration.tool.timeout


def _start(state: ActiveCall) -> Start:
    """What the worker is to do. Raises SpawnRefused when that cannot be sent."""
    assert state.registration is not None
    assert isinstance(state.arguments, dict)
    tool, call = state.registration.tool, state.call
    backend: Literal["asyncio", "trio"] = "asyncio" if hasattr(native_loop(), "create_task") else "trio"
    declared = {name: value for name, value in asdict(tool.annotations).items() if value is not None}
    start = Start(
        path=[path or str(Path.cwd()) for path in sys.path if isinstance(path, str)],
        write_bytecode=not sys.dont_write_bytecode,
        module=tool.fn.__module__,
        qualname=tool.fn.__qualname__,
        name=tool.name,
        version=tool.version,
        annotations=declared,
        arguments=dict(state.arguments),
        run_id=state.run_id,
        attempt=state.attempts + 1,
        backend=backend,
        call_id=call.call_id,
        kind=call.kind,
        idempotency_key=call.idempotency_key,
        meta=_json_only(call.meta),
    )
    try:
        frame(replace(start, over_at=sys.float_info.max))  # as it will be sent
    except BadFrame as bad:
        raise SpawnRefused(SpawnErrorKind.TOO_LONG, f"what the tool needs cannot be sent to a worker process: {bad}") from bad
    return start


def _json_only(meta: Any) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in dict(meta).items():
        try:
            kept[name] = freeze(value, str(name))
        except FreezeError:
            continue
    return kept
