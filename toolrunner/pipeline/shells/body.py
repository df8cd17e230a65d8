"""The Body of one attempt in a living shell: its moment of action is the write of its line, or the release of a new shell."""

from dataclasses import replace
from typing import final

from toolrunner.facts import Containment, Drained, Note, NoteKind, Process, ProcessIdentity
from toolrunner.pipeline.bodies import Body, Gate, torn_down
from toolrunner.pipeline.context import BodyServices
from toolrunner.pipeline.ends import BodyEnd
from toolrunner.pipeline.exits import exit_failure, exit_value, output_content
from toolrunner.pipeline.released import never_ran, note_stop
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.shells.line import Line
from toolrunner.pipeline.shells.shell import Shell
from toolrunner.pipeline.state import ActiveCall
from toolrunner.process import EndCause, ProcessEnd
from toolrunner.process.report import still_running
from toolrunner.results import Code, Ended, Error, ErrorKind
from toolrunner.tasks import OwnedTask, wait_through
from toolrunner.tools import Reply, ShellLine

LIVES_ON = "kill_tree: the shell lives on; what the call left was looked for below its keeper, and that none is left is no proof"


async def shell_body(state: ActiveCall, services: Services) -> "ShellBody":
    """The tool's shell, living or at its gate. Raises SpawnRefused."""
    assert state.line is not None
    assert state.registration is not None
    grace = state.registration.tool.kill_after
    shell = await services.shells.ready(state.line.shell, services.limits.kill_after if grace is None else grace)
    return ShellBody(state, services, state.line, shell)


@final
class ShellBody(Body):
    """One line in one shell."""

    def __init__(self, state: ActiveCall, services: Services, wanted: ShellLine, shell: Shell) -> None:
        self._state = state
        self._services = services
        self._wanted = wanted
        self._shell = shell
        self._told = False
        self._line = Line(
            wanted.text, wanted.shell.output_limit, services.limits.spill_dir, BodyServices(state, services).process_output
        )

    @property
    def identity(self) -> ProcessIdentity | None:
        return self._shell.identity

    async def run(self, gate: Gate, task: OwnedTask) -> BodyEnd | None:  # noqa: ARG002 - the ladder ends it, no cancel
        if not gate():
            await self.discard()
            return None
        # The moment of action: nothing between the gate's yes and the line.
        new = self._shell.begin(self._line)
        restarted = self._services.shells.keep(self._wanted.shell, self._shell) if new else None
        await wait_through(self._line.done, self._torn_down)
        if self._told:
            await wait_through(self._shell.over)  # its stop is under way, and what that finds is the call's
        end = self._shell.end
        if end is not None:
            note_stop(self._state, end, timed_out=False)
            if never_ran(self._state, end):
                return None
        if restarted is not None:
            self._state.notes.append(Note(NoteKind.SHELL_RESTARTED, restarted))
        return self._end(end)

    def deliver(self) -> None:
        # A line that is over has only its output to be read, for a bounded time; the shell is the next call's.
        if self._line.status is None:
            self._told = True
            self._shell.stop()

    async def discard(self) -> None:
        await self._services.shells.drop(self._wanted.shell, self._shell)

    def _torn_down(self) -> None:
        torn_down(self._state)
        self._told = True
        self._shell.stop(grace=0)

    def _end(self, end: ProcessEnd | None) -> BodyEnd:
        facts = self._facts(end)
        ended, code, error = self._how(end, facts)
        return BodyEnd(
            ended,
            Reply(exit_value(facts), output_content(facts)),
            error,
            code,
            saw_abort=self._told,
            process=facts,
            still_running=end.still_running if end is not None else still_running(self._line.left) or None,
            missing=end.missing if end is not None else (LIVES_ON,),
        )

    def _how(self, end: ProcessEnd | None, facts: Process) -> tuple[Ended, Code | None, Error | None]:
        if self._line.status is None and end is not None and end.cause is EndCause.KEEPER_LOST:
            return Ended.LOST, Code.KEEPER_LOST, Error(ErrorKind.KEEPER_LOST, "the supervisor of the shell was lost")
        if self._told and end is not None and end.signals:
            return Ended.STOPPED, None, None
        if self._line.status is None and end is not None and end.signals:
            return Ended.LOST, Code.LOST, Error(ErrorKind.EXCEPTION, "the shell was ended before it told how the command ended")
        return Ended.RETURNED, *exit_failure(facts, (0,))

    def _facts(self, end: ProcessEnd | None) -> Process:
        """The shell's facts as far as they are the line's."""
        line, identity = self._line, self._shell.identity
        stdout, stderr = (line.streams[name].capture for name in ("stdout", "stderr"))
        kept = Containment.KEEPER if self._shell.kept else Containment.BEST_EFFORT
        facts = end.facts if end is not None else Process(identity.pid if identity is not None else None, kept)
        if line.status is not None and not self._told:
            facts = replace(facts, exit_code=line.status, signal=None)
        return replace(
            facts,
            stdout=stdout.text(),
            stderr=stderr.text(),
            stdout_bytes=stdout.total,
            stderr_bytes=stderr.total,
            truncated=stdout.truncated or stderr.truncated,
            spill=tuple(one.spill for one in (stdout, stderr) if one.spill is not None),
            drained=facts.drained if end is not None else Drained.EOF,
            leftovers=(*still_running(line.leftovers), *facts.leftovers),
            unreaped=facts.unreaped if end is not None else still_running(line.left),
        )
