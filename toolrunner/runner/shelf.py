"""Shelf: where calls are found again by run_id, while they run and for a while after.

State: run_id -> call, in order of acceptance; changed by `put`. Bounded by count and age, so a runner may live for weeks.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import final

from toolrunner.errors import NotSettled, UnknownRun
from toolrunner.pipeline.state import ActiveCall
from toolrunner.results import ToolResult

KEPT_RESULTS = 1_000
"""Settled calls that are kept at the most."""

KEPT_SECONDS = 3_600.0
"""How long a settled call is kept at the most."""


@final
class Shelf:
    """The calls of one runner."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._running: dict[str, ActiveCall] = {}
        self._settled: OrderedDict[str, tuple[float, ToolResult]] = OrderedDict()
        self._clock = clock

    def put(self, state: ActiveCall) -> None:
        """Keep a call that was accepted."""
        self._running[state.run_id] = state

    def settled(self, state: ActiveCall) -> None:
        """Keep its result only, and let old ones go."""
        self._running.pop(state.run_id, None)
        assert state.result is not None
        now = self._clock()
        self._settled[state.run_id] = (now, state.result)
        while len(self._settled) > KEPT_RESULTS or next(iter(self._settled.values()))[0] < now - KEPT_SECONDS:
            self._settled.popitem(last=False)

    def result(self, run_id: str) -> ToolResult:
        """The result of a call. Raises `NotSettled` while it runs, `UnknownRun` for one that is not kept."""
        if run_id in self._running:
            raise NotSettled(run_id)
        kept = self._settled.get(run_id)
        if kept is None or kept[0] < self._clock() - KEPT_SECONDS:
            raise UnknownRun(run_id)
        return kept[1]

    async def wait(self, run_id: str) -> None:
        """Wait until a call that runs has its result; for any other there is nothing to wait for."""
        state = self._running.get(run_id)
        if state is not None:
            await state.settled.wait()

    def running(self) -> Iterator[ActiveCall]:
        """Calls that have not settled."""
        return iter(tuple(self._running.values()))
