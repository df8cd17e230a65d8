"""BatchResult: the results of one batch, in the order the model asked for them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from toolrunner.facts import StillRunning, Stop
from toolrunner.results.result import ToolResult
from toolrunner.wire import result_messages


@dataclass(frozen=True, slots=True)
class BatchResult(Sequence[ToolResult]):
    """Exactly one result per call, in model order. `stopped` is the stop of the whole batch, or None."""

    results: tuple[ToolResult, ...]
    stopped: Stop | None = None

    @overload
    def __getitem__(self, index: int) -> ToolResult: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ToolResult, ...]: ...
    def __getitem__(self, index: int | slice) -> ToolResult | tuple[ToolResult, ...]:
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[ToolResult]:
        return iter(self.results)

    @property
    def still_running(self) -> tuple[StillRunning, ...] | None:
        """Everything of this batch that still runs; None if nothing was found and one call could not prove it."""
        listed = tuple(one for result in self.results for one in result.still_running or ())
        if not listed and any(result.still_running is None for result in self.results):
            return None
        return listed

    @property
    def files_changed(self) -> tuple[str, ...] | None:
        """Paths seen to have changed, once each; None if none was seen and nobody looked after one of the calls that ran."""
        seen = tuple(dict.fromkeys(path for result in self.results for path in result.files_changed or ()))
        if not seen and any(result.started and result.files_changed is None for result in self.results):
            return None
        return seen

    def summary(self) -> str:
        """A sentence with the counts per outcome, then one line per call."""
        counts = Counter(str(result.outcome) for result in self.results)
        head = ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in counts.items()) or "nothing to do"
        total = f"{len(self.results)} call{'' if len(self.results) == 1 else 's'}"
        return "\n".join([f"{total}: {head}.", *(f"  {result.summary()}" for result in self.results)])

    def to_messages(self, provider: str) -> list[dict[str, Any]]:
        """The messages to append to the provider's history: one answer per call, in model order."""
        return result_messages(provider, [result.to_wire() for result in self.results])
