"""Time limits and graces of months: poll(2) counts milliseconds in an int, which ends after 24.8 days."""

import pytest
from process.shapes import part, run, run_until

from toolrunner.process import EndCause, Supervisor

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("seconds", [2**31 / 1000, 1e12, 1e300])
async def test_a_time_limit_longer_than_poll_can_wait_is_only_a_long_time_limit(supervisor: Supervisor, seconds: float) -> None:
    outcome = await run(supervisor, "sleep 0.1; echo here", timeout=seconds)
    assert (outcome.end.cause, outcome.end.facts.exit_code, outcome.out) == (EndCause.EXITED, 0, "here\n")


@pytest.mark.parametrize("seconds", [2**31 / 1000, 1e300])
async def test_a_grace_longer_than_poll_can_wait_is_only_a_long_grace(supervisor: Supervisor, seconds: float) -> None:
    script = "trap 'sleep 0.2; exit 3' TERM; echo part; while :; do sleep 0.05; done"
    outcome = await run_until(supervisor, script, part, kill_after=seconds)
    assert (outcome.end.cause, outcome.end.facts.exit_code, outcome.end.signals) == (EndCause.STOPPED, 3, ("SIGTERM",))
