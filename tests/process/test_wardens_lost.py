"""A warden that dies before any keeper of it has answered: killed, it is replaced; one that ends by itself cannot run here."""

import os
import signal
import time

import anyio
import pytest
from process.shapes import BOUND, run

from toolrunner.facts import Containment
from toolrunner.process import LaunchPlan, SpawnRefused, Supervisor, wardens
from toolrunner.process import access as access_module
from toolrunner.process.link import Link
from toolrunner.process.standing import Standing, standing

pytestmark = pytest.mark.anyio


@pytest.fixture
def first_is_killed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Kills the first warden that is made, at once; the list has them all."""
    made: list[int] = []

    def link(python: str, fixed: tuple[bytes, ...]) -> Link:
        one = Link(python, fixed)
        made.append(one.pid)
        if len(made) == 1:
            os.kill(one.pid, signal.SIGKILL)
        return one

    monkeypatch.setattr(wardens, "Link", link)
    return made


async def test_a_warden_that_is_killed_at_its_start_does_not_cost_later_calls_their_containment(
    first_is_killed: list[int],
) -> None:
    supervisor = Supervisor()
    try:
        for _ in range(2):
            end = (await run(supervisor, ("echo", "ran"))).end
            assert end.facts.stdout == "ran\n"
            assert end.facts.containment is Containment.KEEPER
        assert len(first_is_killed) == 2
    finally:
        await supervisor.aclose()


async def test_a_host_that_never_stays_what_it_is_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def other() -> Standing:
        now = standing()
        return Standing((*now.fixed, str(time.monotonic_ns()).encode()), now.umask)

    monkeypatch.setattr(access_module, "standing", other)
    supervisor = Supervisor(containment=Containment.KEEPER)
    try:
        with anyio.fail_after(BOUND), pytest.raises(SpawnRefused, match=r"what this host process is .* changed while"):
            await supervisor.prepare(LaunchPlan(("true",)))
    finally:
        await supervisor.aclose()
