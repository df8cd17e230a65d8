"""One command line in a living shell: its text as the shell reads it, its output, its status.

The status comes on a descriptor of its own, after a word that the line does not know. Where the output ends is told by a token
that is made after the line has ended and that the shell then writes to both streams. So nothing that a line prints is taken for
either.
"""

import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import final

import anyio

from toolrunner.process.output import Capture
from toolrunner.process.plan import DEFAULT_SPILL_LIMIT
from toolrunner.process.report import Listing

STATUS, STDOUT, STDERR = 4, 5, 6
"""Descriptors of the shell's own: where it tells the status, and where its streams went at first (`exec >file` moves 1 and 2).

They are single digits because POSIX shells need not know others; they are closed in everything that a line runs.
"""

_CLOSED = f"{STATUS}>&- {STDOUT}>&- {STDERR}>&-"


def script(text: str, word: str) -> bytes:
    r"""A line as the shell is to read it; it then tells the status after `word`.

    `\command` goes round an alias and keeps a syntax error from ending a POSIX shell (special built-ins do); stdin is the script
    itself, so the line gets another.
    """
    quoted = "'" + text.replace("'", "'\\''") + "'"
    status = (
        f"{{ \\command printf '{word} %s\\n' \"$?\" >&{STATUS}; }} 2>/dev/null"  # in a group, so that `set -x` does not show it
    )
    # The empty line: after an unterminated quote in an eval, bash takes no `{` in the very next one.
    return f"\\command eval {quoted} </dev/null {_CLOSED}\n\n{status}\n".encode()


def closing(token: str, *, reap: bool) -> bytes:
    """What the shell is to write when a line is over. `reap`: first let it notice whom we killed, or it tells later."""
    noticed = f"{{ \\command wait; }} 2>/dev/null {_CLOSED}\n" if reap else ""
    told = "; ".join(f"\\command printf %s {token} >&{fd}" for fd in (STDOUT, STDERR))
    return f"{noticed}{{ {told}; }} 2>/dev/null\n".encode()


@final
class Stream:
    """One output stream of the line. Keeps what comes before the token."""

    def __init__(self, capture: Capture, show: Callable[[str, bytes], object]) -> None:
        self.capture = capture
        self.over = False
        self._show = show
        self._token = b""
        self._held = b""

    def until(self, token: bytes) -> None:
        """The line has ended: the stream is over once this has come."""
        self._token = token

    def feed(self, data: bytes) -> None:
        """Bytes that came."""
        if self.over:
            return
        data = self._held + data
        self._held = b""
        if self._token:
            head, found, _ = data.partition(self._token)
            if found:
                self.over = True
                data = head
            else:
                keep = _begun(data, self._token)
                data, self._held = data[: len(data) - keep], data[len(data) - keep :]
        self._keep(data)

    def finish(self) -> None:
        """No token will come."""
        held, self._held = self._held, b""
        self._keep(held)
        self.over = True
        self.capture.close()

    def _keep(self, data: bytes) -> None:
        if data:
            self.capture.add(data)
            self._show(self.capture.name, data)


def _begun(data: bytes, token: bytes) -> int:
    """How many bytes at the end may be the beginning of the token."""
    return next((size for size in range(min(len(token) - 1, len(data)), 0, -1) if data.endswith(token[:size])), 0)


@final
class Line:
    """State of one line; written by its shell. `done` is set once nothing of it will change any more."""

    def __init__(self, text: str, output_limit: int, spill_dir: Path | None, show: Callable[[str, bytes], object]) -> None:
        self._word = secrets.token_hex(16)
        self.script = script(text, self._word)
        self.streams = {
            name: Stream(Capture(name, output_limit, spill_dir, DEFAULT_SPILL_LIMIT), show) for name in ("stdout", "stderr")
        }
        self.status: int | None = None
        self.leftovers: Listing = []
        self.left: Listing = []
        self.done = anyio.Event()
        self._token = secrets.token_hex(16)

    def told(self, heard: bytes) -> int | None:
        """The status in what came on the status descriptor, if it is there. Whatever else came is not the shell's."""
        found = re.search(rb"%b (\d{1,3})\n" % self._word.encode(), heard)
        return int(found[1]) if found is not None else None

    def ended(self, status: int, leftovers: Listing, left: Listing) -> bytes:
        """The line is over and its company was ended; what the shell is to read now."""
        self.status, self.leftovers, self.left = status, leftovers, left
        for stream in self.streams.values():
            stream.until(self._token.encode())
        return closing(self._token, reap=bool(leftovers) and not left)

    def feed(self, name: str, data: bytes) -> None:
        """Output of the shell."""
        self.streams[name].feed(data)
        if all(stream.over for stream in self.streams.values()):
            self.finish()

    def finish(self) -> None:
        """All that will come has come. Idempotent."""
        for stream in self.streams.values():
            stream.finish()
        self.done.set()
