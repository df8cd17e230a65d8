"""Recorder: an observer that keeps every record and answers questions about their order.

State: the records, appended by the runner, in the order in which they became true.
"""

from collections.abc import Callable, Iterator
from typing import Any, final

from toolrunner.records import Record


@final
class Recorder:
    """`recorder = Recorder(); runner.on_record(recorder)`, or `run_batch(..., on_event=recorder)`.

    `watch` is called with each record at the very moment at which it is made: what must be true just then can be looked at.
    """

    def __init__(self, watch: Callable[[Record], object] | None = None) -> None:
        self._watch = watch
        self.records: list[Record] = []
        self.errors: list[BaseException] = []
        """What `watch` raised. (A runner logs and drops what observers raise, so it would be lost otherwise.)"""

    def __call__(self, record: Record, /) -> None:
        self.records.append(record)
        if self._watch is not None:
            try:
                self._watch(record)
            except BaseException as error:  # noqa: BLE001 - kept for the test, which looks at `errors`
                self.errors.append(error)

    def __iter__(self) -> Iterator[Record]:
        return iter(tuple(self.records))

    def of(self, *types: str, run_id: str | None = None) -> list[Any]:
        """The records of these types (all, if none is named), of one call or of all, in order."""
        return [one for one in self.records if (not types or one.type in types) and run_id in (None, one.run_id)]

    def types(self, run_id: str | None = None) -> list[str]:
        """The types of the records, in order; transient ones are left out, because they may be dropped."""
        return [one.type for one in self.records if run_id in (None, one.run_id) and not one.transient]

    def assert_in_order(self, *types: str, run_id: str | None = None) -> None:
        """These types came, in this order; others may stand between them."""
        came = self.types(run_id)
        rest = iter(came)
        for position, wanted in enumerate(types):
            if wanted not in rest:
                raise AssertionError(f"expected {types}; {wanted!r} (number {position + 1}) is not in its place: {came}")

    def assert_once(self, kind: str, run_id: str) -> None:
        """This type came exactly once for this call."""
        times = self.types(run_id).count(kind)
        if times != 1:
            raise AssertionError(f"expected one {kind!r} for {run_id}, got {times}: {self.types(run_id)}")
