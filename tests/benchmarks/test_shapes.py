"""Shapes: everybody of ours against every baseline, in rows for programs and in one line per shape for people."""

import anyio
import pytest

from benchmarks.benchmark import Field, Order
from benchmarks.contenders import stoppers
from benchmarks.suite import shapes
from benchmarks.victims.shapes import FOURTEEN
from toolrunner.facts import Containment

pytestmark = pytest.mark.processes

BOUND = 60.0


@pytest.mark.parametrize("field", Field)
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the loop of the baselines
async def test_each_containment_meets_each_baseline(field: Field, monkeypatch: pytest.MonkeyPatch, anyio_backend: str) -> None:
    monkeypatch.setattr(shapes, "FOURTEEN", FOURTEEN[:1])
    with anyio.fail_after(BOUND):
        kinds, why = await shapes.containments()
        report = await shapes.run(Order(1, field=field))
    ours = [f"toolrunner {kind}" for kind in kinds]
    others: list[str] = [one.name for one in stoppers()] if field is Field.EVERYBODY else []
    against: list[str | None] = [*others] or [None]
    assert (Containment.CGROUP in kinds) == (why == "")
    assert [[series.name for series in panel] for panel in report.panels.values()] == [ours + others]
    assert [(row.subject, row.baseline) for row in report.rows] == [(own, other) for own in ours for other in against]
    assert [row.left for row in report.rows if "best_effort" not in row.subject] == [0] * (len(kinds) - 1) * max(1, len(others))
