"""The front of supervised processes: prepares them, owns them until they are over, ends its warden with the last of them.

State: `_live` (processes that are not over), `_unreaped` (what SIGKILL has not ended yet). One supervisor belongs to one event
loop. It runs no task of its own: whoever awaits `Prepared.wait` does the reading, and `aclose` finishes what nobody awaited.
"""

import os
import sys
import weakref
from dataclasses import replace
from pathlib import Path
from typing import final

import anyio

from toolrunner.errors import ConfigError, RunnerClosed
from toolrunner.facts import Containment, StillRunning
from toolrunner.process.access import Access, send
from toolrunner.process.best_effort import LooseProcess
from toolrunner.process.cgroups import CgroupLimits, NoCgroup, Room, open_room
from toolrunner.process.ending import SpawnErrorKind, SpawnRefused
from toolrunner.process.identity import identity_of, is_alive
from toolrunner.process.kept import KeptProcess, LostAtGate, Unfit
from toolrunner.process.link import Link
from toolrunner.process.plan import LaunchPlan
from toolrunner.process.prepared import Observer, Prepared, Sink
from toolrunner.process.probe import Abilities, processes_at_once
from toolrunner.process.report import Listing, still_running
from toolrunner.process.request import Request
from toolrunner.process.standing import Standing

ATTEMPTS = 3
"""Launches of one plan: a warden or idle keeper that dies just then has run nothing, so once more is safe."""

WISHED = "it was asked for"
"""Why a call has no keeper when that is no failure."""


class Changed(Exception):
    """This host is no more what the warden was told that it is. Nothing ran."""


@final
class Supervisor:
    """Starts processes and owns them until they are proven to be gone. Shares the one warden of this host process.

    `python` is the interpreter for the warden; by default the one below this one's virtual environment. `containment` None
    takes the best this host can do; KEEPER refuses where keepers do not work; BEST_EFFORT uses none.

    CGROUP gives each call a cgroup of its own, besides its keeper, in the folder `cgroup` (a cgroup v2 folder that this user may
    write and that is above or beside this process's own; None: this process's own). Naming a folder or `limits` asks for it.
    `limits` hold for each call. What cannot be had is refused when the first process is prepared. A command that is allowed to
    write to cgroups can leave its own, as a command of the same user can attack its keeper.

    Raises:
        ConfigError: a cgroup together with another containment.
    """

    def __init__(
        self,
        *,
        python: str | None = None,
        containment: Containment | None = None,
        cgroup: str | Path | None = None,
        limits: CgroupLimits | None = None,
    ) -> None:
        if cgroup is not None or limits is not None:
            if containment not in (None, Containment.CGROUP):
                raise ConfigError("containment", containment, "cgroup, because a cgroup or limits are given")
            containment = Containment.CGROUP
        self._cgroup, self._limits = None if cgroup is None else Path(cgroup).absolute(), limits or CgroupLimits()
        self._calls_room: Room | None = None
        self._access = Access(python or getattr(sys, "_base_executable", None) or sys.executable or None)
        self._wanted = containment
        self._live: set[KeptProcess | LooseProcess] = set()
        self._unreaped: Listing = []
        self._pid = os.getpid()
        self._no_keepers: str | None = None  # why, once that is known
        self._closed = False
        _SUPERVISORS.add(self)

    async def prepare(
        self, plan: LaunchPlan, *, dirfd: int | None = None, on_output: Observer | None = None, sink: Sink | None = None
    ) -> Prepared:
        """Make the process and hold it at its gate.

        `dirfd` is the working directory, already open, and wins over `plan.cwd`; it stays the caller's.

        Raises:
            SpawnRefused: nothing was released, and why.
            RunnerClosed: after `aclose`, or in a forked child.
        """
        self._check_open()
        if os.name != "posix":
            raise SpawnRefused(SpawnErrorKind.SETUP, "process tools need a POSIX system")
        request = Request(plan, dirfd, on_output, sink)
        process: KeptProcess | LooseProcess | None = await self._prepare_kept(request)
        if process is None and plan.wrapping is not None:  # nobody could tell a stop from the wrapper's own end
            text = f"a sandbox needs a supervising process, and there is none: {self._no_keepers or WISHED}"
            raise SpawnRefused(SpawnErrorKind.SANDBOX, text)
        process = process or LooseProcess(request, self._no_keepers or WISHED, self._over)
        self._live.add(process)
        return process

    async def abilities(self) -> Abilities:
        """Try what this host can do; starts the warden if there is none yet.

        Raises:
            RunnerClosed: after `aclose`, or in a forked child.
        """
        self._check_open()
        reasons: list[str] = []
        fit = False
        if self._wanted is not Containment.BEST_EFFORT:
            try:
                self._access.look()
                facts = await self._access.find()[1].facts()
                fit, why = facts or (False, "the supervising process gave no answer")
            except (SpawnRefused, Unfit) as exc:
                why = str(exc)
            reasons += [why] if why else []
        containment = Containment.KEEPER if fit else Containment.BEST_EFFORT
        if fit and self._wanted is Containment.CGROUP:
            try:
                self._find_room()
                containment = Containment.CGROUP
            except SpawnRefused as exc:
                reasons.append(str(exc))
        return Abilities(containment, self._access.python, tuple(reasons), processes_at_once())

    def unreaped(self) -> tuple[StillRunning, ...]:
        """Processes of ended calls that SIGKILL had not ended then and that still run. The warden reaps them when they go."""
        self._unreaped = [entry for entry in self._unreaped if is_alive(identity_of(entry[0], entry[2]))]
        return still_running(self._unreaped)

    def stop_all(self, *, grace: float | None = None) -> None:
        """Ask for the ladder of every process that is owned, as `Prepared.stop` does for one. Sync; for a host that insists."""
        for process in list(self._live):
            process.stop(grace=grace)

    async def aclose(self) -> None:
        """Stop and await every process that is still owned; end the warden if this was its last user. Idempotent."""
        if self._closed or self._pid != os.getpid():
            return
        self._closed = True
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                for process in list(self._live):
                    tasks.start_soon(process.abandon)
            for link in self._access.leave():
                await link.end()
            if self._calls_room is not None:
                self._calls_room.close()

    def forget(self) -> None:
        """In a forked child: close the copies of our descriptors. The calls are the parent's."""
        for process in self._live:
            process.forget()
        if self._calls_room is not None:
            self._calls_room.close()

    def _check_open(self) -> None:
        if self._pid != os.getpid():
            raise RunnerClosed("it was inherited by a forked process")
        if self._closed:
            raise RunnerClosed("its supervisor is closed")

    def _over(self, process: KeptProcess | LooseProcess) -> None:
        self._live.discard(process)
        self._unreaped += process.unreaped

    async def _prepare_kept(self, request: Request) -> KeptProcess | None:
        """A process held by a keeper; None when there can be no keepers here and best_effort will do. Raises SpawnRefused."""
        if self._wanted is Containment.BEST_EFFORT:
            return None
        if self._no_keepers is None:
            try:
                return await self._with_keeper(request)
            except Unfit as exc:
                self._no_keepers = str(exc)
        if self._wanted is not None:
            text = f"containment {self._wanted} was asked for, and keepers do not work here: {self._no_keepers}"
            raise SpawnRefused(SpawnErrorKind.SETUP, text)
        return None

    async def _with_keeper(self, request: Request) -> KeptProcess:
        """Raises SpawnRefused, or Unfit when there can be no keepers here."""
        why = ""
        for _ in range(ATTEMPTS):
            self._check_open()
            now, link = self._access.find()
            try:
                return await self._at_gate(self._with_cgroup(request), now, link)
            except Changed:
                why = "what this host process is (user, groups, umask, namespaces) changed"
                continue
            except LostAtGate:
                why = "the supervising process died"
                await link.settle()
            if not link.proved and not link.alive() and not link.was_killed:
                raise Unfit(f"the supervising process does not run under {self._access.python!r}")
        raise SpawnRefused(SpawnErrorKind.SETUP, f"{why} while this one was being prepared, {ATTEMPTS} times in a row")

    async def _at_gate(self, request: Request, now: Standing, link: Link) -> KeptProcess:
        """Raises SpawnRefused, Unfit, LostAtGate or Changed; then nothing of it is left."""
        try:
            ends = await send(link, request, now.umask)
        except BaseException:
            if request.cgroup is not None:
                request.cgroup.remove()
            raise
        process = KeptProcess(request, ends, link, self._over)
        try:
            if self._access.look() != now:  # only now, because the child sets itself up meanwhile
                raise Changed  # noqa: TRY301 - given up below like any other
            await process.reach_gate()
            self._check_open()  # it may have been closed meanwhile
        except BaseException:
            process.dispose()  # its keeper, if there is one, reads EOF: the gate stays shut
            raise
        return process

    def _with_cgroup(self, request: Request) -> Request:
        """The request with a new cgroup, if calls are to have one. Raises SpawnRefused."""
        if self._wanted is not Containment.CGROUP:
            return request
        room = self._find_room()
        try:
            return replace(request, cgroup=room.make(), enforced=room.enforced)
        except NoCgroup as exc:
            raise self._no_cgroup(exc) from exc

    def _find_room(self) -> Room:
        """Where cgroups are made. Raises SpawnRefused."""
        if self._calls_room is None:
            try:
                self._calls_room = open_room(self._cgroup, self._limits)
            except NoCgroup as exc:
                raise self._no_cgroup(exc) from exc
        return self._calls_room

    @staticmethod
    def _no_cgroup(why: NoCgroup) -> SpawnRefused:
        return SpawnRefused(SpawnErrorKind.SETUP, f"containment cgroup was asked for, and it cannot be had: {why}")


_SUPERVISORS: "weakref.WeakSet[Supervisor]" = weakref.WeakSet()


def _forget_all() -> None:
    for supervisor in list(_SUPERVISORS):
        supervisor.forget()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_forget_all)
