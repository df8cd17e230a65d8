"""One living shell: a supervised process that reads its script from us, line after line.

State: the process, its descriptors and the line it works on. Changed on the runner's loop only, by the shell's own task and by
the sync methods that its bodies call. One line at a time; the lock on the tool sees to that.
"""

import os
from typing import final

import anyio
import anyio.abc

from toolrunner.facts import ProcessIdentity
from toolrunner.pipeline.shells.line import Line
from toolrunner.process import Prepared, ProcessEnd
from toolrunner.process.others import Company, end_others

TOKEN_BOUND = 2.0
"""Seconds for the shell to say that a line's output is all there. It takes a millisecond, unless the line broke the shell."""

HEARD_LIMIT = 256
"""Bytes that are kept of what came on the status descriptor: more than a status is long, whatever else was written there."""


@final
class Shell:
    """`prepared` waits at its gate until the first line. `script` and `status` are the host's ends, which the shell closes."""

    def __init__(self, prepared: Prepared, script: int, status: int, theirs: tuple[int, ...]) -> None:
        self.prepared = prepared
        self.released = False
        self.end: ProcessEnd | None = None
        self.over = anyio.Event()
        self._line: Line | None = None
        self._script, self._status, self._theirs = script, status, theirs
        self._out = bytearray()
        self._more_out = anyio.Event()
        self._heard = bytearray()
        self.kept = prepared.identity is not None  # else it is made by `go`, without a keeper
        self._company: Company | None = None

    @property
    def identity(self) -> ProcessIdentity | None:
        """Who it is; None before its release where there is no keeper."""
        return self.prepared.identity

    def begin(self, line: Line) -> bool:
        """Give it a line; the first one releases it, and then it needs `live`. Sync: the moment of action."""
        first = not self.released
        if first:
            if self.kept and self.prepared.identity is not None:
                self._company = Company(self.prepared.identity.pid, kept=True)
            self.prepared.go()
            self.released = True
            self._close_theirs()
        self._line = line
        self._write(line.script)
        return first

    def feed(self, stream: str, data: bytes) -> None:
        """Output of the process. Between two lines nobody is there to have it."""
        if self._line is not None:
            self._line.feed(stream, data)

    def stop(self, *, grace: float | None = None) -> None:
        """End it and all it started by the ladder."""
        self.prepared.stop(grace=grace)

    async def live(self) -> None:
        """Until the process is over. Whoever runs this must let it end."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._feed_script)
            tasks.start_soon(self._follow_status)
            self.end = await self._wait()
            tasks.cancel_scope.cancel()
        self._over()

    async def _wait(self) -> ProcessEnd:
        while True:
            try:
                with anyio.CancelScope(shield=True):
                    return await self.prepared.wait()
            except anyio.get_cancelled_exc_class():
                self.prepared.stop(grace=0)  # the loop is torn down, which no process must outlive

    async def abandon(self) -> None:
        """Give it up before its first line."""
        await self.prepared.abandon()
        self._close_theirs()
        self._over()

    def _over(self) -> None:
        if self._line is not None:
            self._line.finish()
        for fd in (self._script, self._status):
            if fd >= 0:
                os.close(fd)
        self._script = self._status = -1
        self.over.set()

    def _close_theirs(self) -> None:
        theirs, self._theirs = self._theirs, ()
        for fd in theirs:
            os.close(fd)

    # The script.

    def _write(self, data: bytes) -> None:
        self._out += data
        self._push()
        if self._out:
            self._more_out.set()

    def _push(self) -> None:
        try:
            del self._out[: os.write(self._script, self._out)]
        except BlockingIOError:
            pass
        except OSError:  # it reads no more; its end tells
            self._out.clear()

    async def _feed_script(self) -> None:
        while True:
            while self._out:
                await anyio.wait_writable(self._script)
                self._push()
            self._more_out = anyio.Event()
            await self._more_out.wait()

    # The status of each line.

    async def _follow_status(self) -> None:
        while True:
            await anyio.wait_readable(self._status)
            data = os.read(self._status, HEARD_LIMIT)
            if not data:
                break  # the line put another program in the shell's place (`exec`); its end is the process's
            self._heard += data
            del self._heard[:-HEARD_LIMIT]
            status = self._line.told(bytes(self._heard)) if self._line is not None else None
            if self._line is not None and status is not None:
                self._heard.clear()
                await self._end_line(self._line, status)
        if self._line is None:
            self.stop()  # nobody could give it another line

    async def _end_line(self, line: Line, status: int) -> None:
        identity = self.prepared.identity
        if self._company is None and identity is not None:
            self._company = Company(identity.pid, kept=False)
        leftovers, left = await end_others(self._company) if self._company is not None else ([], [])
        self._write(line.ended(status, leftovers, left))
        with anyio.move_on_after(TOKEN_BOUND):
            await line.done.wait()
        if not line.done.is_set():
            self.stop(grace=0)
            return
        self._line = None
