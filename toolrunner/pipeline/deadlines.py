"""Deadlines: a time-out is an abort signal that a timer aborts, so the first cause is found the same way for all of them.

State: one timer each, started when it is built and stopped by `cancel`.
"""

import math
from typing import final

from toolrunner.abort import AbortController, AbortSignal
from toolrunner.facts import Source
from toolrunner.loops import call_later


@final
class Deadline:
    """One running clock: `what` names it in the reason ("the time limit", "the deadline"). Needs a running loop."""

    __slots__ = ("_controller", "_take_back", "signal")

    def __init__(self, seconds: float, what: str) -> None:
        self._controller = AbortController(source=Source.TIMEOUT)
        self.signal: AbortSignal = self._controller.signal
        self._take_back = call_later(seconds, lambda: self._controller.abort(f"{what} of {seconds:g} s is over"))

    def cancel(self) -> None:
        """Stop the clock; a signal that was aborted already stays so."""
        self._take_back()


def is_duration(seconds: object) -> bool:
    """Whether a time-out has a usable value: a finite number above 0, and no bool."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        return False
    try:
        return 0 < float(seconds) < math.inf
    except OverflowError:  # a whole number that no clock can count to
        return False
