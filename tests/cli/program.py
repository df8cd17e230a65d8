"""The command line as a program of its own: started, talked to, signalled, and always ended."""

import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, final

import toolrunner

BOUND = 30.0
"""Seconds for anything: generous, because the machine may be busy on every core; every wrong behaviour would last minutes."""

PROGRAM = (sys.executable, "-m", "toolrunner")

SH = ("--", "sh", "-c")
"""Words before a script, as the command that is run."""


def environment(**more: str) -> dict[str, str]:
    """Ours, with the package under test importable from any folder."""
    package = Path(toolrunner.__file__).parents[1]
    return {**os.environ, "PYTHONPATH": str(package), "TERM": "xterm", **more}


def toolrun(*words: str | bytes, stdin: bytes = b"", cwd: Path | None = None, env: dict[str, str] | None = None) -> "Done":
    """Run it to its end."""
    process = subprocess.run(
        [*PROGRAM, *words], input=stdin, capture_output=True, cwd=cwd, env=env or environment(), timeout=BOUND, check=False
    )
    return Done(process.returncode, process.stdout, process.stderr)


@final
class Done:
    """How it ended and what it said."""

    def __init__(self, status: int, out: bytes, err: bytes) -> None:
        self.status, self.out, self.err = status, out, err

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output as JSON Lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def result(self) -> dict[str, Any]:
        """The one line that `--json` prints."""
        (line,) = self.lines
        return line


@final
class Running:
    """The program while it runs. Use `running`."""

    def __init__(self, words: tuple[str, ...], cwd: Path | None, env: dict[str, str] | None, **more: Any) -> None:
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        more.setdefault("stdin", subprocess.DEVNULL)
        # Its own session, so that it has no terminal and a signal to it is a signal to it alone.
        self.process = subprocess.Popen([*PROGRAM, *words], cwd=cwd, env=env or environment(), start_new_session=True, **more)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def done(self) -> Done:
        """Wait for its end."""
        out, err = self.process.communicate(timeout=BOUND)
        return Done(self.process.returncode, out or b"", err or b"")

    def read_until(self, text: bytes) -> bytes:
        """Read standard output up to and including `text`."""
        assert self.process.stdout is not None
        return read_until(self.process.stdout.fileno(), text)


def read_until(fd: int, text: bytes) -> bytes:
    """Read until `text` came. Unbuffered, so that what follows is left for others."""
    seen = b""
    end = time.monotonic() + BOUND
    while text not in seen:
        if not select.select([fd], [], [], max(0.0, end - time.monotonic()))[0]:
            raise TimeoutError(f"{text!r} did not come; there was {seen!r}")
        chunk = read(fd)
        if not chunk:
            raise EOFError(f"{text!r} did not come; there was {seen!r}")
        seen += chunk
    return seen


def read(fd: int) -> bytes:
    """What is there; b"" at the end, which a terminal says with EIO."""
    try:
        return os.read(fd, 1 << 16)
    except OSError:
        return b""


@contextmanager
def running(*words: str, cwd: Path | None = None, env: dict[str, str] | None = None, **more: Any) -> Iterator[Running]:
    program = Running(words, cwd, env, **more)
    try:
        yield program
    finally:
        with suppress(ProcessLookupError):
            program.process.kill()
        program.process.wait(BOUND)
        for stream in (program.process.stdout, program.process.stderr, program.process.stdin):
            if stream is not None:
                stream.close()


@final
class Terminal:
    """The program at a terminal of its own. Use `at_terminal`."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self._master, self.process = master, process
        self._seen = b""

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def shows(self, text: str) -> str:
        """Wait until this was shown, since the last call."""
        new = read_until(self._master, text.encode())
        self._seen += new
        return new.decode(errors="replace")

    def end(self) -> tuple[int, str]:
        """Wait for its end; its status and everything that was shown."""
        end = time.monotonic() + BOUND
        while select.select([self._master], [], [], max(0.0, end - time.monotonic()))[0]:
            chunk = read(self._master)
            if not chunk:
                break
            self._seen += chunk
        return self.process.wait(BOUND), self._seen.decode(errors="replace")


def _own_terminal() -> None:
    os.setsid()
    fcntl.ioctl(2, termios.TIOCSCTTY, 0)


@contextmanager
def at_terminal(*words: str, cwd: Path | None = None, before: tuple[str, ...] = (), **more: Any) -> Iterator[Terminal]:
    """`more` may redirect streams; what is not redirected is the terminal (stderr always is). `before`: words that start it."""
    master, slave = pty.openpty()
    env = environment(**more.pop("env", {}))
    streams: dict[str, Any] = {"stdin": slave, "stdout": slave, "stderr": slave, **more}
    process: subprocess.Popen[bytes] = subprocess.Popen(
        [*before, *PROGRAM, *words],
        cwd=cwd,
        env=env,
        preexec_fn=_own_terminal,  # noqa: PLW1509 - no other thread of the tests runs here
        **streams,
    )
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait(BOUND)
        os.close(master)
