"""Asks the person at our terminal: the approver of `run` and `batch`.

State: the terminal's modes while a question stands there, put back whatever happens. It is opened anew for each question
(/dev/tty, tty(4)), so that redirected streams are neither read nor written, and not blocking concerns nobody else. An abort
cancels the question, Ctrl-C too; the runner's desk answers it then.
"""

import os
import sys
import termios
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, final

import anyio

from toolrunner.abort import AbortSignal
from toolrunner.cli.question import Terms, Word, is_shortened, question, read_answer, whole
from toolrunner.cli.sink import Pause
from toolrunner.errors import PolicyError, ToolrunnerError
from toolrunner.policy import ApprovalRequest, Decision, Policy, remember
from toolrunner.policy.remembered import place

TERMINAL = "/dev/tty"

TRIES = 5
"""Lines that are no answer until the call is denied: somebody types at a program that is not there."""

CHUNK = 4096
"""A line of a terminal is not longer (termios(3), canonical mode)."""

LIMIT = 300.0
"""Seconds, as the runner has them, of a policy that says nothing."""

_MODES = termios.ICANON | termios.ECHO | termios.ISIG
"""Whole lines, seen while they are typed, with Ctrl-C as a signal."""


@final
class NoTerminal(ToolrunnerError):
    """There is nobody to ask, so what would be asked is denied."""

    def __init__(self, why: str) -> None:
        super().__init__(f"no terminal to ask at: {why}")


@final
class TerminalApprover:
    """Asks on /dev/tty, one question at a time. `flush` waits until what was said before is written."""

    def __init__(self, policy: Policy, pause: Pause, flush: Callable[[], Awaitable[None]]) -> None:
        limit = min(LIMIT, policy.approval_timeout or LIMIT)
        self._terms = Terms(policy.remember, limit, str(place()))
        self._pause, self._flush = pause, flush

    async def decide(self, request: ApprovalRequest, signal: AbortSignal) -> Decision | None:  # noqa: ARG002 - cancelled by the desk
        """The answer that was typed. Raises `NoTerminal`."""
        with self._pause.held():
            await self._flush()
            with _terminal() as fd:
                return await self._ask(fd, request)

    async def _ask(self, fd: int, request: ApprovalRequest) -> Decision:
        await _write(fd, question(request, self._terms))
        shortened = unseen = is_shortened(request)
        words = self._terms.words(shortened=shortened)
        # What was typed before the question stood there was no answer to it.
        termios.tcflush(fd, termios.TCIFLUSH)
        for _ in range(TRIES):
            await _write(fd, [f"  Type {', '.join(words[:-1])} or {words[-1]}: "], end="")
            typed = await _read_line(fd)
            if typed is None:
                return Decision.deny()
            answer = read_answer(typed)
            if answer is None or answer[0] not in words:
                continue
            if answer[0] is Word.SHOW:
                unseen = not await _show(fd, request)
            elif unseen and answer[0] not in (Word.NO, Word.STOP):
                await _write(fd, ["  Not all of it was shown yet."])
            else:
                return await self._decided(fd, request, *answer)
        return Decision.deny()

    async def _decided(self, fd: int, request: ApprovalRequest, word: Word, reason: str) -> Decision:
        match word:
            case Word.NO:
                return Decision.deny(reason)
            case Word.STOP:
                return Decision.stop(reason)
            case Word.ALWAYS:
                try:
                    remember(request.digest, request.tool, request.arguments)
                except (PolicyError, OSError) as error:
                    await _write(fd, [f"  Allowed in this session only; it cannot be kept: {error}"])
        return Decision.allow("once" if word is Word.YES else "session")


def approver(policy: Policy | None, pause: Pause, flush: Callable[[], Awaitable[None]]) -> TerminalApprover | None:
    """Whoever sits at our terminal; None if there is none, we are in its background, or nothing will be asked."""
    if policy is None or not policy.asks:
        return None
    try:
        with _terminal():
            return TerminalApprover(policy, pause, flush)
    except NoTerminal:
        return None


@contextmanager
def _terminal() -> Iterator[int]:
    try:
        fd = os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise NoTerminal(error.strerror or str(error)) from error
    try:
        with _modes(fd):
            yield fd
    finally:
        os.close(fd)


@contextmanager
def _modes(fd: int) -> Iterator[None]:
    try:
        if os.tcgetpgrp(fd) != os.getpgrp():  # reading would stop us (SIGTTIN), and nobody types to us
            raise NoTerminal("this program is in the background")
        before: list[Any] = termios.tcgetattr(fd)
    except (OSError, termios.error) as error:
        raise NoTerminal(str(error)) from error
    changed = list(before)
    changed[0] |= termios.ICRNL
    changed[1] |= termios.OPOST
    changed[3] |= _MODES
    termios.tcsetattr(fd, termios.TCSANOW, changed)
    try:
        yield
    finally:
        try:
            termios.tcsetattr(fd, termios.TCSANOW, before)
        except termios.error:  # it is gone, and its modes with it
            pass


async def _show(fd: int, request: ApprovalRequest) -> bool:
    lines = whole(request)
    await _write(fd, lines if lines is not None else ["  It is too large to be shown, so it can only be denied here."])
    return lines is not None


async def _write(fd: int, lines: list[str], end: str = "\n") -> None:
    """As long as it takes: a person may have stopped the screen (Ctrl-S). The question's own limit is the desk's."""
    rest = memoryview(("\n".join(lines) + end).encode(sys.stderr.encoding or "utf-8", "backslashreplace"))
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:
            await anyio.wait_writable(fd)


async def _read_line(fd: int) -> str | None:
    """One line; None at its end (Ctrl-D, or the terminal is gone)."""
    line = b""
    while not line.endswith(b"\n"):
        await anyio.wait_readable(fd)
        try:
            part = os.read(fd, CHUNK)
        except BlockingIOError:  # somebody flushed it
            continue
        except OSError:  # hung up
            return None
        if not part:
            return None
        line = (line + part)[-CHUNK:]
    return line.decode(errors="replace")
