"""What we say ourselves on standard error while something runs: to a person at a terminal, and to nobody else.

State: whether a status line stands there, to be taken back before anything else is written.
"""

import os
import sys
from typing import final

from toolrunner.cli.printable import printable
from toolrunner.cli.sink import Writer

USUAL_WIDTH = 80

LONGEST = 1000
"""Characters of one message; a name or a path in it may be anything."""


@final
class Voice:
    """Speaks on `stderr`; knows `stdout` because both may be the same terminal."""

    def __init__(self, stdout: Writer, stderr: Writer) -> None:
        self._stdout, self._stderr = stdout, stderr
        self._status = False
        self.is_raw = False
        """Whether the terminal leaves the carriage where it is at a line's end."""
        self.can_update = stderr.is_terminal and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
        """Whether a line on this terminal can be written over."""

    def say(self, text: str, *, after_key: bool = False) -> None:
        """A line about what goes on. At a terminal only: elsewhere nobody is watching, and a script has the result.

        `after_key`: a key was pressed, whose echo (`^C`) stands in this line.
        """
        if self._stderr.is_terminal:
            if after_key and not self._status:
                self._stderr.at_line_start = False
            self.insist(text)

    def insist(self, text: str) -> None:
        """A line that is said wherever standard error goes."""
        said = f"{self.fresh_line()}toolrunner: {printable(text, LONGEST)}\n"
        self._stderr.say((said.replace("\n", "\r\n") if self.is_raw else said).encode())

    def status(self, text: str) -> None:
        """A line that the next one takes the place of."""
        if self.can_update:
            # One short of the width: a line that fills it could not be taken back, the cursor being on the next one.
            line = f"toolrunner: {printable(text)}"[: terminal_width(self._stderr.fd) - 1]
            self._stderr.say(f"{self.fresh_line()}{line}".encode())
            self._status = True

    def fresh_line(self) -> str:
        """What brings the terminal to the beginning of an empty line: after a status line, or a command's unfinished one."""
        if self._status:
            self._status = False
            return "\r\x1b[K"
        ragged = [one for one in (self._stdout, self._stderr) if one.is_terminal and not one.at_line_start]
        for one in ragged:
            one.at_line_start = True
        return "\n" if ragged and self._stderr.is_terminal else ""

    def clear(self) -> None:
        """Take a status line back."""
        if self._status:
            self._stderr.say(self.fresh_line().encode())


def terminal_width(fd: int) -> int:
    """Columns of the terminal behind `fd`. One that does not know (0) is taken for the usual one."""
    try:
        return max(20, os.get_terminal_size(fd).columns or USUAL_WIDTH)
    except OSError:
        return USUAL_WIDTH


def complain(text: str) -> None:
    """One line on standard error, where no event loop runs (yet)."""
    try:
        sys.stderr.write(f"toolrunner: {printable(text, LONGEST)}\n")
        sys.stderr.flush()
    except OSError:  # nobody there to read it
        pass
