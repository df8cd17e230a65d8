"""What the user's signals ask for: the first stops everything by its ladder, the second kills now, the third leaves.

State: how many came, changed on the loop. Signals that were ignored when we started stay ignored: nohup, and shells for their
background jobs, mean that. The library installs no signal handlers; this is the program that uses it.
"""

import atexit
import os
import signal
from collections.abc import Callable
from typing import final

import anyio
import anyio.abc

from toolrunner.abort import AbortController
from toolrunner.cli.exit_codes import of_abort

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

PAUSES = (signal.SIGTSTP,)
"""What asks for a pause (Ctrl-Z)."""

LEAVE_AT = 3
"""The signal at which we leave at once, whatever is still open; keepers end what their host leaves behind."""


def _ignore(wanted: list[signal.Signals]) -> None:
    """The interpreter is closing: all threads are joined, nothing can hang any more, and it puts the default actions back."""
    for one in wanted:
        signal.signal(one, signal.SIG_IGN)


@final
class Stops:
    """`abort` is the request to stop, `hurry` the insisting. `told` is called with each of the first two.

    `refused` is called at Ctrl-Z. What runs has a session of its own, so the terminal would stop us and nothing else: the command
    would go on, with nobody to end it at its time limit's call or to take its output. So we go on too, and say so.
    """

    def __init__(self, told: Callable[[signal.Signals, bool], object], refused: Callable[[], object] = lambda: None) -> None:
        self.abort = AbortController()
        self.hurry = AbortController()
        self.first: signal.Signals | None = None
        self.is_over = False
        """Whether all results are there: then nothing is left to be stopped, and the first signal already means hurry."""
        self.status: int | None = None
        """The exit status, once it is known: a signal that comes while we are leaving cannot change it any more."""
        self.leaving: Callable[[], object] = lambda: None
        """Called right before we leave at once: what must be put back even then."""
        self._told, self._refused = told, refused
        self._count = 0

    async def listen(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Take signals until cancelled. From then on each of them ends us at once, with the status that is known."""
        wanted = [one for one in SIGNALS if signal.getsignal(one) is not signal.SIG_IGN]
        try:
            with anyio.open_signal_receiver(*wanted, *PAUSES) as received:
                task_status.started()
                async for number in received:
                    if number in PAUSES:
                        self._refused()
                    else:
                        self._take(number)
        finally:
            # An impatient Ctrl-C must not turn a told success into a traceback, or its status into another one.
            for one in wanted:
                signal.signal(one, lambda number, _: self._leave(number))
            atexit.register(_ignore, wanted)

    def _take(self, number: signal.Signals) -> None:
        self._count += 1
        if self._count >= LEAVE_AT:
            self._leave(number)
        if self._count == 1 and not self.is_over:
            self.first = number
            # Told first: the abort is seen by others in this very tick.
            self._told(number, False)
            self.abort.abort(number.name)
        else:
            self._told(number, True)
            self.hurry.abort(number.name)

    def ask(self) -> None:
        """The user asks to stop by other means than a signal; it counts as Ctrl-C."""
        self._take(signal.SIGINT)

    def _leave(self, number: int) -> None:
        self.leaving()
        os._exit(self._status(number))

    def _status(self, number: int) -> int:
        return self.status if self.status is not None else of_abort(self.first or signal.Signals(number))

    def output_failed(self, stream: str, error: OSError) -> None:
        """Nobody takes our output any more (EPIPE, a full disk): what makes it is stopped."""
        name = {"stdout": "standard output", "stderr": "standard error"}[stream]
        self.abort.abort(f"{name} cannot be written: {error.strerror or error}")
