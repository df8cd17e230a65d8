"""Rows 6 to 8: wait for everything the body needs, wrap it, and reach the moment of action with all checks holding at once.

`act` takes a Permit, the batch's place in its pool; locks, threads, processes and the tool's own limit are taken here, for single
calls and batches alike. Whatever happens, all of it is given back when the body is over, or here if none was started.
"""

from typing import Any, Protocol, final

import anyio

from toolrunner.abort import AbortSignal
from toolrunner.pipeline.approve import approve
from toolrunner.pipeline.bodies import AsyncBody, Body, ThreadBody
from toolrunner.pipeline.command_body import command_body, refused
from toolrunner.pipeline.context import BodyServices, body_arguments
from toolrunner.pipeline.durable import journal_problem
from toolrunner.pipeline.environment import environment_of, grant_key
from toolrunner.pipeline.finish import provisional
from toolrunner.pipeline.isolation.body import isolated_body
from toolrunner.pipeline.keys import take_key
from toolrunner.pipeline.leases import Needs, Place, WouldDeadlock
from toolrunner.pipeline.live import LiveBody
from toolrunner.pipeline.reconcile import refuse_if_in_doubt
from toolrunner.pipeline.retry import attempts
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.shells.body import shell_body
from toolrunner.pipeline.state import ActiveCall
from toolrunner.pipeline.subjects import containing
from toolrunner.pipeline.watching import begin_watch, drop_watch
from toolrunner.pipeline.wrap import run_wrapped
from toolrunner.process import SpawnRefused
from toolrunner.records import CallDispatched
from toolrunner.results import Code, Error, ErrorKind, Outcome
from toolrunner.tasks import wait_in_own_task, wait_through
from toolrunner.tools import BodyKind


class Permit(Protocol):
    """A call's place in its batch. It may be taken again after it was given back."""

    async def take(self) -> None:
        """Wait for the place; returns without one when the batch is aborted, which the next check finds."""

    def release(self) -> None:
        """Give the place back; calling it again does nothing."""


@final
class FreePermit:
    """The Permit of a call that belongs to no batch."""

    async def take(self) -> None:
        """There is nothing to wait for."""

    def release(self) -> None:
        """There is nothing to give back."""


async def act(state: ActiveCall, services: Services, permit: Permit) -> None:
    """Rows 6 to 9 of a prepared call. Returns when its body is over, was published early, or will never be entered."""
    if state.refuse_if_aborted():
        return
    action = _Action(state, services, permit)
    try:
        if await take_key(state, services) and await action.acquire():
            # Read in the same stretch as in `run_wrapped`: wrappers may come and go.
            action.is_wrapped = bool(services.hooks.wrappers)
            await run_wrapped(state, services, action.dispatch, lambda: provisional(state))
            if not state.started:
                state.refuse_if_aborted()
    finally:
        action.give_back_unless_live()


async def _process_body(state: ActiveCall, services: Services) -> Body:
    """A process at its gate. Raises SpawnRefused."""
    if state.command is not None:
        return await command_body(state, services)
    return await (shell_body(state, services) if state.line is not None else isolated_body(state, services))


_NOTHING = Needs()


class _Action:
    """What one call holds on its way from row 6 to the end of its body."""

    def __init__(self, state: ActiveCall, services: Services, permit: Permit) -> None:
        self._state = state
        self._services = services
        self._permit = permit
        self.is_wrapped = False
        """Its body is waited for in a wrapper's task, which may have scopes around that wait, and not in the call's own."""

    async def acquire(self) -> bool:
        """Row 6: wait for slot and locks, then check again *after the wait*. False = the call will not go on."""
        state = self._state
        parent = state.parent.lease if state.parent is not None else None
        try:
            state.lease = await self._services.leases.ask(self._needs(), state.signal, parent, state)
        except WouldDeadlock as error:
            state.refuse(Outcome.REJECTED, Code.SPAWN_REFUSED, Error(ErrorKind.LIMIT, str(error)))
            return False
        if state.lease is None:
            state.refuse_if_aborted()
            return False
        if state.refuse_if_aborted() or await refuse_if_in_doubt(state, self._services):
            return False
        return not state.refuse_if_aborted() and not self._environment_gone()

    def _needs(self) -> Needs:
        state, limits = self._state, self._services.limits
        assert state.registration is not None
        tool = state.registration.tool
        places = []
        if tool.max_concurrency is not None:
            places.append(Place(f"tool:{tool.name}", tool.max_concurrency))
        if not state.in_process:
            places.append(Place("processes", limits.max_processes))
        elif tool.kind is BodyKind.SYNC:
            places.append(Place("threads", limits.max_threads))
        return Needs(state.resources, tuple(places)) if places or state.resources else _NOTHING

    async def dispatch(self, signal: AbortSignal) -> None:
        """Rows 8 and 9, with the tool's retries: `signal` is everything that may stop the body."""
        state = self._state
        assert state.registration is not None
        policy = state.registration.tool.retry
        if policy is None:
            await self._attempt(signal)
            return
        async for attempt in attempts(state, policy, signal):
            with attempt:
                await self._attempt(signal)

    async def _attempt(self, signal: AbortSignal) -> None:
        state, services = self._state, self._services
        body = await self._make_ready(signal)
        if body is None:
            return
        committed = False
        try:
            committed = await self._commit_dispatch(body)
        finally:
            # Also when the wait for the journal is cancelled (by a wrapper with a clock of its own): a process waits at its gate.
            if not committed:
                with anyio.CancelScope(shield=True):
                    await body.discard()
        if not committed:
            return
        await LiveBody(state, services, body, signal, self._still_allowed, self.give_back).run(
            wait_through if self.is_wrapped else wait_in_own_task
        )
        if state.started or not state.grant_is_stale:
            return
        await self._approve_again(signal)

    async def _approve_again(self, signal: AbortSignal) -> None:
        """The grant expired, or its surroundings changed, while the call waited: back to row 4, once, holding nothing."""
        state = self._state
        state.grant_is_stale = False
        if state.approved_again:
            state.refuse(
                Outcome.DENIED, Code.GRANT_EXPIRED, Error(ErrorKind.APPROVER, "the approval expired before the call could start")
            )
            return
        state.approved_again = True
        self.give_back()
        if await approve(state, self._services):
            state.refuse(Outcome.DENIED, Code.GRANT_EXPIRED, Error(ErrorKind.APPROVER, "other arguments were allowed too late"))
        if state.refusal is not None:
            return
        await self._permit.take()
        if await self.acquire():
            await self._attempt(signal)

    async def _make_ready(self, signal: AbortSignal) -> Body | None:
        """The body of one attempt, with everything that can be done before the moment of action."""
        state, services = self._state, self._services
        assert state.registration is not None
        if self._stopped(signal) or not await begin_watch(state, services) or self._stopped(signal):
            return None
        if state.in_process:

            def arguments() -> dict[str, Any]:
                return body_arguments(state, BodyServices(state, services))

            if state.registration.tool.kind is BodyKind.SYNC:
                return ThreadBody(state, arguments, services.threads)
            return AsyncBody(state, arguments)
        try:
            return await _process_body(state, services)
        except SpawnRefused as error:
            refused(state, error.error)
            return None

    async def _commit_dispatch(self, body: Body) -> bool:
        """Make `call/dispatched` durable, together with all that was recorded before it."""
        state, services = self._state, self._services
        pending = services.emit(
            CallDispatched(
                run_id=state.run_id,
                name=state.name,
                arguments=state.arguments,
                attempt=state.attempts + 1,
                process=body.identity,
                reconciles=state.registration is not None and state.registration.tool.reconciler is not None,
            )
        )
        problem = await journal_problem(state, services, pending)
        if problem is not None:
            state.refuse(Outcome.REJECTED, Code.ENVIRONMENT_GONE, Error(ErrorKind.SETUP, f"the journal: {problem}"))
        return problem is None

    def _still_allowed(self, signal: AbortSignal) -> bool:
        """Row 8, the moment of action: grant, call and environment hold together, and nobody asked to stop.

        Sync, and called in the same stretch without an await as the body's first step. The read of the latch here is the
        linearisation point: an abort after it finds a started call.
        """
        state, services = self._state, self._services
        if self._stopped(signal) or self._environment_gone():
            return False
        if services.catalogue.find(state.name) is not state.registration:
            text = f"{state.name!r} was registered anew after this call was decided on"
            state.refuse(Outcome.REJECTED, Code.TOOL_CHANGED, Error(ErrorKind.TOOL_CHANGED, text))
            return False
        if state.grant is not None:
            assert state.registration is not None
            # Looked up anew: a program put earlier into PATH after the approval is not the one that was approved.
            state.environment = environment_of(state.command, containing(state, services))
            if not services.grants.holds(state.grant, grant_key(state.registration, state.arguments, state.environment)):
                state.grant_is_stale = True
                return False
        state.begin()
        return True

    def _stopped(self, signal: AbortSignal) -> bool:
        state = self._state
        if state.refuse_if_aborted():
            return True
        reason = signal.reason
        if reason is None:
            return False
        state.refuse_because(reason)
        return True

    def _environment_gone(self) -> bool:
        gone = self._state.environment.gone()
        if gone is None:
            return False
        if self._state.environment.cwd_identity is None:
            self._state.refuse(
                Outcome.REJECTED, Code.SPAWN_REFUSED, Error(ErrorKind.SETUP, gone.replace("is gone", "is no directory"))
            )
        else:
            self._state.refuse(Outcome.REJECTED, Code.ENVIRONMENT_GONE, Error(ErrorKind.SETUP, gone))
        return True

    def give_back(self) -> None:
        """Everything the call holds; called by whoever sees the body's end."""
        if self._state.lease is not None:
            self._state.lease.release()
        self._permit.release()

    def give_back_unless_live(self) -> None:
        """At the end of `act`: a body that still runs keeps what it holds."""
        if not self._state.lives:
            drop_watch(self._state)
            self.give_back()
