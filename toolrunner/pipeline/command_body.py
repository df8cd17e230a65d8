"""Process bodies: a command behind its start gate, released at the moment of action and awaited until nothing of it is left."""

from typing import final

from toolrunner.facts import ProcessIdentity
from toolrunner.pipeline.bodies import Body, Gate
from toolrunner.pipeline.context import BodyServices
from toolrunner.pipeline.ends import BodyEnd, code_of
from toolrunner.pipeline.exits import exit_failure, exit_value, output_content
from toolrunner.pipeline.jobs import keep_or_end
from toolrunner.pipeline.plans import launch_plan
from toolrunner.pipeline.released import never_ran, note_stop, released_end
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.pipeline.transacted import Transacted
from toolrunner.process import EndCause, Job, JobOrigin, Leftovers, Observer, Prepared, ProcessEnd, SpawnError
from toolrunner.results import Code, Ended, Error, ErrorKind, Outcome
from toolrunner.sandbox import enclosed
from toolrunner.tasks import OwnedTask
from toolrunner.tools import Reply


async def command_body(state: ActiveCall, services: Services) -> "CommandBody":
    """The command at its gate. Raises SpawnRefused."""
    assert state.command is not None
    plan = launch_plan(state, services.limits)
    show: Observer = BodyServices(state, services).process_output
    job = None
    if plan.leftovers is Leftovers.KEEP:
        services.jobs.require_room()
        job = Job(JobOrigin(run_id=state.run_id, what=state.name))
        show = _both(show, job)
    inside = await enclosed(plan, state.run_id, services.sandbox, state.command.containing)
    transaction = Transacted(state, services, inside.transaction)
    with transaction.dropped_unless_prepared():
        prepared = await services.prepare_process(inside.plan, on_output=show, sink=state.command.sink)
    return CommandBody(state, services, prepared, job, transaction)


def _both(show: Observer, job: Job) -> Observer:
    """The log of what may become a job has all output from the call's beginning; observers of the call hear it until then."""

    def look(stream: str, data: bytes) -> None:
        job.log(stream, data)
        if not job.first_seen:
            show(stream, data)

    return look


@final
class CommandBody(Body):
    """One prepared process. `prepared` waits at its gate until `run`; `job` is what it becomes if it leaves somebody."""

    def __init__(
        self, state: ActiveCall, services: Services, prepared: Prepared, job: Job | None, transaction: Transacted
    ) -> None:
        self._transaction = transaction
        self._state, self._services = state, services
        self.prepared = prepared
        self._job = job

    @property
    def identity(self) -> ProcessIdentity | None:
        return self.prepared.identity

    async def run(self, gate: Gate, task: OwnedTask) -> BodyEnd | None:  # noqa: ARG002 - the ladder ends it, no cancel
        if not gate():
            await self.discard()
            return None
        # The moment of action: nothing between the gate's yes and the release.
        self.prepared.go()
        end = await released_end(self._state, self.prepared)
        if self._job is not None and end.facts.kept:
            end = await keep_or_end(self._state, self._services, self.prepared, self._job, end)
        note_stop(self._state, end, timed_out=end.cause is EndCause.TIMED_OUT)
        if never_ran(self._state, end):
            self._transaction.drop()
            return None
        return await self._transaction.settle(command_end(self._state, end))

    def deliver(self) -> None:
        self.prepared.stop()

    async def discard(self) -> None:
        await self.prepared.abandon()
        self._transaction.drop()


def refused(state: ActiveCall, error: SpawnError) -> None:
    """The process was refused before its gate."""
    state.refuse(Outcome.REJECTED, code_of(error.kind), Error(error.kind, error.message))


def command_end(state: ActiveCall, end: ProcessEnd) -> BodyEnd:
    """How the command ended, as the pipeline tells it."""
    facts = end.facts
    stopped = end.cause in (EndCause.STOPPED, EndCause.TIMED_OUT)
    ended = Ended.LOST if end.cause is EndCause.KEEPER_LOST else Ended.STOPPED if stopped else Ended.RETURNED
    assert state.command is not None
    code, error = exit_failure(facts, state.command.ok) if ended is Ended.RETURNED else (None, None)
    if ended is Ended.LOST:
        code, error = Code.KEEPER_LOST, Error(ErrorKind.KEEPER_LOST, "the supervisor of the command was lost")
    return BodyEnd(
        ended,
        Reply(exit_value(facts), output_content(facts)),
        error,
        code,
        timed_out=end.cause is EndCause.TIMED_OUT,
        saw_abort=bool(end.signals),
        process=facts,
        still_running=end.still_running,
        enforced=end.enforced,
        missing=end.missing,
        sandbox=end.sandbox,
    )
