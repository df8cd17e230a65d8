"""Board: which calls are under way, as a fold of the runner's records.

State: run_id -> `Line`, changed by `take`, which the runner calls on its loop with every record; a settled call is taken off.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from toolrunner import records
from toolrunner.control.lines import MOST_CALLS, cut
from toolrunner.facts import ProcessIdentity
from toolrunner.results import ToolResult


@final
@dataclass(slots=True)
class Line:
    """One call under way. `process` is its command's, once that is known."""

    run_id: str
    call_id: str | None
    name: str
    since: str
    standing: str = "accepted"
    process: ProcessIdentity | None = None

    def to_json(self) -> dict[str, Any]:
        """As it travels."""
        told: dict[str, Any] = {"run_id": self.run_id, "name": cut(self.name), "standing": self.standing, "since": self.since}
        if self.call_id is not None:
            told["call_id"] = cut(self.call_id)
        if self.process is not None:
            told |= {"pid": self.process.pid, "starttime": self.process.starttime}
        return told


def told_result(result: ToolResult) -> dict[str, Any]:
    """How a call ended, as it travels: the whole result may be megabytes, and is in the journal."""
    code = str(result.code) if result.code is not None else None
    told = {"run_id": result.run_id, "name": cut(result.name), "outcome": str(result.outcome), "code": code}
    if result.call_id is not None:
        told["call_id"] = cut(result.call_id)
    still = None if result.still_running is None else len(result.still_running)
    return {**told, "started": result.started, "still_running": still, "summary": cut(result.summary())}


_STANDINGS: dict[type, str] = {
    records.CallAsked: "waits for approval",
    records.CallAnswered: "accepted",
    records.CallDispatched: "running",
    records.CallStopRequested: "stopping",
    records.CallEnded: "ended",
}


@final
class Board:
    """One per served runner."""

    def __init__(self) -> None:
        self._lines: dict[str, Line] = {}
        self._waiting: dict[str, list[Callable[[ToolResult], object]]] = {}

    def take(self, record: records.Record) -> None:
        """Hear of a record."""
        if isinstance(record, records.CallRecorded):
            line = Line(record.run_id, record.call_id, record.name, record.at.isoformat())
            self._lines[record.run_id] = line
            return
        found = self._lines.get(record.run_id)
        if found is None:
            return
        found.standing = _STANDINGS.get(type(record), found.standing)
        if isinstance(record, records.CallDispatched):
            found.process = record.process
        elif isinstance(record, records.CallEnded) and record.result is not None:
            self._tell(record.run_id, record.result)
        elif isinstance(record, records.CallSettled):
            del self._lines[record.run_id]
            self._tell(record.run_id, record.result)

    def _tell(self, run_id: str, result: ToolResult) -> None:
        for told in self._waiting.pop(run_id, ()):
            told(result)

    def when_over(self, run_id: str, told: Callable[[ToolResult], object]) -> None:
        """Have `told` called with the result of a call that is under way, as soon as its body is over.

        Not only when it has settled: that waits for the calls before it in its batch.
        """
        self._waiting.setdefault(run_id, []).append(told)

    def run_ids(self) -> list[str]:
        """The calls under way, oldest first."""
        return list(self._lines)

    def to_json(self) -> dict[str, Any]:
        """What `list` answers of them."""
        lines = list(self._lines.values())
        return {"calls": [line.to_json() for line in lines[:MOST_CALLS]], "more_calls": max(0, len(lines) - MOST_CALLS)}
