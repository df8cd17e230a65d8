"""Supervisors for the tests: `supervisor` in both kinds of containment, `keeper` and `best_effort` in one."""

from collections import deque
from collections.abc import AsyncIterator

import pytest

from toolrunner.facts import Containment
from toolrunner.process import Supervisor
from toolrunner.process.wardens import WARDENS


@pytest.fixture(autouse=True)
def no_losses_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests kill wardens; what the one before lost must not count for the next."""
    monkeypatch.setattr(WARDENS, "_losses", deque())


@pytest.fixture(params=[Containment.KEEPER, Containment.BEST_EFFORT], ids=str)
async def supervisor(request: pytest.FixtureRequest, anyio_backend: object) -> AsyncIterator[Supervisor]:
    made = Supervisor(containment=request.param)
    yield made
    await made.aclose()


@pytest.fixture
async def keeper(anyio_backend: object) -> AsyncIterator[Supervisor]:
    made = Supervisor(containment=Containment.KEEPER)
    yield made
    await made.aclose()


@pytest.fixture
async def best_effort(anyio_backend: object) -> AsyncIterator[Supervisor]:
    made = Supervisor(containment=Containment.BEST_EFFORT)
    yield made
    await made.aclose()
