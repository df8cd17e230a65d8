"""Random schedules of ends, aborts, answers, hook failures, time-outs and host cancellations: every invariant holds in all.

On trio time is virtual, so time-outs take part; on asyncio everything is done by gates. Without CI's fixed examples, a failure
prints the schedule itself, which `play` runs again.
"""

import os
from typing import Any

import pytest
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from invariants.playing import AROUND, GATED, Schedule, play

pytestmark = pytest.mark.anyio

EXAMPLES = int(os.environ.get("SCHEDULES", "100"))


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return (request.param, {"clock": trio.testing.MockClock()} if request.param == "trio" else {})


ACTIONS = st.one_of(
    st.tuples(st.just("open"), st.integers(0, 3)),
    st.tuples(st.just("open around"), st.integers(0, 3)),
    st.tuples(st.just("abort"), st.sampled_from(["immediate", "drain"])),
    st.tuples(st.just("wrapper aborts"), st.none()),
    st.tuples(st.sampled_from(["answer", "answer again"]), st.sampled_from(["allow", "deny", "stop"])),
    st.tuples(st.just("cancel host"), st.none()),
    st.tuples(st.just("pass time"), st.sampled_from([0.5, 1.0, 2.0, 40.0])),
    st.tuples(st.just("close"), st.sampled_from([None, 0.5])),
    st.tuples(st.just("steps"), st.integers(1, 12)),
)

SCHEDULES = st.builds(
    Schedule,
    bodies=st.lists(st.sampled_from(sorted(GATED)), min_size=1, max_size=4).map(tuple),
    around=st.lists(st.sampled_from(sorted(AROUND)), max_size=2, unique=True).map(tuple),
    ask=st.booleans(),
    max_parallel=st.integers(1, 3),
    settle_timeout=st.sampled_from([None, None, 1.0]),
    timeout=st.sampled_from([None, None, 2.0]),
    deadline=st.sampled_from([None, None, 3.0]),
    detach=st.booleans(),
    actions=st.lists(ACTIONS, max_size=10).map(tuple),
)


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(schedule=SCHEDULES)
async def test_every_invariant_holds_in_any_schedule(schedule: Schedule) -> None:
    await play(schedule)
