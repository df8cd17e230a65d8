"""A person at a plain terminal, or a file of lines: what was typed, single keys while something runs, and words as they come.

State: the terminal's modes while keys are listened for, put back whatever happens. Between turns the terminal is as it always is:
whole lines, edited by the system, Ctrl-C a signal.
"""

import contextlib
import os
import select
import termios
import tty
from collections.abc import AsyncGenerator, Callable
from typing import Any, final

import anyio

from toolrunner.cli.printable import printable
from toolrunner.cli.sink import Pause, Writer

__all__ = ["Talk", "spoken"]

STDIN = 0
CHUNK = 65_536

ESCAPE = b"\x1b"
"""The Esc key comes alone; what other keys send begins with it and comes in one piece (console_codes(4))."""


def spoken(text: str) -> str:
    """A model's words for a terminal: line ends and tabs are its own, everything else that is not seen is written out."""
    return "".join(one if one in "\n\t" else printable(one) for one in text)


@final
class Talk:
    """Standard input and output as a conversation."""

    def __init__(self, stdout: Writer, pause: Pause) -> None:
        self._stdout, self._pause = stdout, pause
        self.is_terminal = os.isatty(STDIN)
        self._typed = b""
        self._before: list[Any] | None = None
        """The terminal's own modes, while keys are listened for."""

    def say(self, text: str) -> None:
        """Words of the model, as they come."""
        self._stdout.say(spoken(text).encode(errors="replace"))

    async def line(self, prompt: str) -> str | None:
        """The next line; None: there will be no more. `prompt` is for a terminal.

        No thread reads here: the interpreter would wait for it at the end, and a pipe may stay open and say nothing for ever.
        """
        if self.is_terminal:
            await self._stdout.write(prompt.encode())
        while b"\n" not in self._typed:
            with contextlib.suppress(PermissionError):  # a file: it never blocks, and epoll_ctl(2) refuses it
                await anyio.wait_readable(STDIN)
            try:
                data = os.read(STDIN, CHUNK)
            except OSError:  # hung up
                return None
            if not data:
                rest, self._typed = self._typed, b""
                return rest.decode(errors="replace") if rest and not self.is_terminal else None
            self._typed += data
        line, _, self._typed = self._typed.partition(b"\n")
        if self.is_terminal:
            self._stdout.at_line_start = True
        return line.decode(errors="replace")

    @contextlib.asynccontextmanager
    async def keys(self, pressed: Callable[[], object]) -> AsyncGenerator[None]:
        """While the block lasts `pressed` is called at Esc; other keys are swallowed. Not at a terminal: nothing."""
        if not self.is_terminal:
            yield
            return
        self._before = termios.tcgetattr(STDIN)
        tty.setcbreak(STDIN, termios.TCSADRAIN)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._listen, pressed)
                yield
                tasks.cancel_scope.cancel()
        finally:
            self.restore()

    def restore(self) -> None:
        """Put the terminal's modes back. Any number of times, also right before we leave at once."""
        before, self._before = self._before, None
        if before is not None:
            with contextlib.suppress(termios.error):  # it is gone, and its modes with it
                # Now: with the screen stopped (Ctrl-S), waiting for what is still to be shown would have no end.
                termios.tcsetattr(STDIN, termios.TCSANOW, before)

    async def _listen(self, pressed: Callable[[], object]) -> None:
        while True:
            await self._pause.over()
            await anyio.wait_readable(STDIN)
            # It is the answer to a question, or was: who asked may have read it first, and a read would hold the loop then.
            if self._pause.is_on or not select.select([STDIN], [], [], 0)[0]:
                continue
            try:
                data = os.read(STDIN, CHUNK)
            except OSError:
                return
            if not data:
                return
            if data == ESCAPE:
                pressed()
