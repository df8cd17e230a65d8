"""Submission: hands calls to the rows below, and keeps shelf and hub told of them.

State: none of its own beyond what it was made with. Every call submitted here runs in a task of the runner's root.
"""

import logging
from collections.abc import Sequence
from typing import Any, final

from toolrunner.abort import AbortController, AbortSignal
from toolrunner.calls import ToolCall
from toolrunner.errors import ConfigError
from toolrunner.facts import AbortReason, Source
from toolrunner.pipeline.course import accept
from toolrunner.pipeline.finish import publish
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.policy import Answer
from toolrunner.records import Observer, Record
from toolrunner.recovery import Question, record_answer, reopened, resume
from toolrunner.registry import run_one
from toolrunner.results import ToolResult
from toolrunner.runner.batch import Batch
from toolrunner.runner.events import EventBuffer
from toolrunner.runner.hub import Hub
from toolrunner.runner.settings import Settings
from toolrunner.runner.shelf import Shelf
from toolrunner.runner.stopping import OwnStops
from toolrunner.runner.waiting import OnHostCancel, wait_as_host
from toolrunner.scheduler import BatchRun

_logger = logging.getLogger("toolrunner")


@final
class Submission:
    """One per runner, made when it is entered."""

    def __init__(
        self, services: Services, settings: Settings, shelf: Shelf, hub: Hub, stops: OwnStops, shutdown: AbortSignal
    ) -> None:
        self._services = services
        self._settings = settings
        self._shelf = shelf
        self._hub = hub
        self._stops = stops
        self._shutdown = shutdown
        self._on_host_cancel = OnHostCancel(settings.on_host_cancel)

    async def single(self, call: ToolCall, signal: AbortSignal | None, observer: Observer | None) -> ToolResult:
        """One call, in a task of its own, waited for as the host."""
        _require_call(call)
        own = AbortController()

        def stop(reason: AbortReason) -> bool:
            return own.abort(reason.text, source=reason.source)

        state = accept(
            call,
            self._services,
            self._merged(signal, own.signal),
            stop,
            deps=self._settings.deps,
            attach=lambda run_id: self._attach(run_id, observer),
        )
        self._shelf.put(state)
        failures: list[BaseException] = []

        async def live() -> None:
            try:
                await run_one(state, self._services)
            except BaseException as error:  # noqa: BLE001 - ours, or the loop's tear-down; raised in the host's task, the call is closed
                failures.append(error)
            publish(state, self._services)
            self._let_go(state)

        self._services.root.spawn(live, f"call {call.name}", context=state.context)
        settings = self._settings
        await wait_as_host(state.settled, self._on_host_cancel, lambda: stop(_HOST), settings.host_cancel_wait)
        if state.end is not None and state.end.fatal is not None:
            raise state.end.fatal
        if failures:
            raise failures[0]
        assert state.result is not None
        return state.result

    def resume(self, question: Question, answer: Answer) -> None:
        """A call of before a restart goes on with this answer, in a task of its own; nobody need wait for it."""
        own, services = AbortController(), self._services
        run_id = question.story.run_id
        signal = self._merged(own.signal, self._attach(run_id, None))
        state = reopened(
            question, services, signal, lambda reason: own.abort(reason.text, source=reason.source), self._settings.deps
        )
        record_answer(question, services, answer)
        self._shelf.put(state)

        async def live() -> None:
            try:
                await resume(state, services, question, answer)
            except Exception:  # closed truthfully; whoever waits reads it in the result
                _logger.exception("call %s broke off", run_id)
            finally:
                publish(state, services)
                self._let_go(state)

        services.root.spawn(live, f"call {state.name}", context=state.context)

    def batch(
        self,
        calls: Sequence[ToolCall],
        signal: AbortSignal | None,
        deps: Any,
        deadline: float | None,
        observer: Observer | None,
        events: EventBuffer,
    ) -> Batch:
        """Calls in order, started and not waited for. Their records go to `events` and then to `observer`."""
        for call in calls:
            _require_call(call)

        def observe(record: Record) -> None:
            events.put(record)
            if observer is not None:
                observer(record)

        run = BatchRun(
            calls,
            self._services,
            self._merged(signal),
            max_parallel=self._settings.max_parallel,
            deps=deps if deps is not None else self._settings.deps,
            deadline=deadline,
            keep=self._shelf.put,
            attach=lambda run_id: self._attach(run_id, observe if events.is_read else observer),
        )

        async def live() -> None:
            await run.run()
            for state in run.states:
                self._let_go(state)
            events.close()

        self._services.root.spawn(live, "batch")
        settings = self._settings
        return Batch(run, events, self._services.approvals, self._on_host_cancel, settings.host_cancel_wait)

    def _merged(self, *signals: AbortSignal | None) -> AbortSignal:
        return AbortSignal.any(*(signal for signal in signals if signal is not None), self._shutdown)

    def _attach(self, run_id: str, observer: Observer | None) -> AbortSignal | None:
        if observer is not None:
            self._hub.attach(run_id, observer)
        return self._stops.begin(run_id)

    def _let_go(self, state: ActiveCall) -> None:
        self._shelf.settled(state)
        self._hub.detach(state.run_id)
        self._stops.over(state.run_id)


def _require_call(call: object) -> None:
    """Refuse what is no call before any of them is taken. Raises `ConfigError`."""
    if not isinstance(call, ToolCall) or not isinstance(call.name, str):
        raise ConfigError("a call", call, "a ToolCall with the name of a tool")


_HOST = AbortReason(Source.HOST, "the task that awaited the call was cancelled")
