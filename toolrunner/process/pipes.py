"""The three streams of one process as one thing: start them, tell them about a stop, finish them, close them."""

from collections.abc import Callable
from typing import final

import anyio
import anyio.abc

from toolrunner.process.keeping.messages import DRAIN_BOUND
from toolrunner.process.output import Capture
from toolrunner.process.plan import Stdin, WindowSize
from toolrunner.process.request import Request
from toolrunner.process.streams import Feed, Reader
from toolrunner.process.terminal import set_size


@final
class Pipes:
    """Owns the host's ends. `readers` are those of stdout and stderr, in this order."""

    def __init__(self, request: Request, ends: tuple[int, int | None, int | None]) -> None:
        plan = request.plan
        stdout, stderr, stdin = ends
        self._terminal = stdout if plan.tty is not None else None
        self.readers = [
            Reader(
                name, fd, Capture(name, plan.output_limit, plan.spill_dir, plan.spill_limit), request.on_output, request.sink,
                terminal=plan.tty is not None,
            )
            for name, fd in (("stdout", stdout), ("stderr", stderr))
        ]  # fmt: skip
        data = plan.stdin if isinstance(plan.stdin, bytes) else b""
        stays = plan.stdin is Stdin.OPEN
        self._feed = Feed(stdin, data, stays=stays, terminal=plan.types_input) if stdin is not None else None

    @property
    def at_eof(self) -> bool:
        """Whether both output streams were read to their end: nobody holds them any more."""
        return all(reader.eof for reader in self.readers)

    def start(self, tasks: anyio.abc.TaskGroup, at_eof: Callable[[], None]) -> None:
        """Begin, or go on after a cancellation. `at_eof` is called once both output streams are at their end."""

        def ended() -> None:
            if self.at_eof:
                at_eof()

        for reader in self.readers:
            tasks.start_soon(reader.run, ended)
        if self._feed is not None:
            tasks.start_soon(self._feed.run)

    def stopping(self) -> None:
        """The ladder begins: close stdin, and let no sink hold the call."""
        self.close_stdin()
        self.release_sinks()

    def release_sinks(self) -> None:
        """A stop was asked for. Synchronous."""
        for reader in self.readers:
            reader.release_sink()

    def close_stdin(self) -> None:
        """No more input."""
        if self._feed is not None:
            self._feed.close()

    async def write(self, data: bytes) -> int:
        """Write to stdin; see `Prepared.write`."""
        return await self._feed.write(data) if self._feed is not None else 0

    def end_input(self) -> None:
        """No more input, said the way the tool's input says it."""
        if self._feed is not None:
            self._feed.end_input()

    def resize(self, size: WindowSize) -> None:
        """Change the terminal's size; nothing without a terminal, or after its end."""
        if self._terminal is not None and self.readers[0].fd >= 0:
            set_size(self._terminal, size)

    def finish(self) -> None:
        """Everyone who could write is gone (or listed): what is in the pipes is all there will be."""
        self.close_stdin()
        for reader in self.readers:
            reader.finish_by(anyio.current_time() + DRAIN_BOUND)

    def forget(self) -> None:
        """In a forked child of the host: close the copies; a tool must not wait for a stdin that only the child holds."""
        for reader in self.readers:
            reader.close()
        if self._feed is not None:
            self._feed.forget()

    def close(self) -> None:
        """Close what is open. Idempotent."""
        self.close_stdin()
        for reader in self.readers:
            reader.close()
