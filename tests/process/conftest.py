"""Supervisors for the tests: `supervisor` in every kind of containment, `keeper` and `best_effort` in one."""

import os
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from toolrunner.facts import Containment
from toolrunner.process import Supervisor
from toolrunner.process.cgroups import describe_own, own_cgroup
from toolrunner.process.wardens import WARDENS


@pytest.fixture(autouse=True)
def no_losses_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests kill wardens; what the one before lost must not count for the next."""
    monkeypatch.setattr(WARDENS, "_losses", deque())


@pytest.fixture
def folder() -> Iterator[Path]:
    """A cgroup of the test's own."""
    usable, why = describe_own()
    if not usable:
        pytest.skip(f"no cgroup to write to here: {why}")
    made = own_cgroup() / f"toolrunner-test-{os.getpid()}"
    made.mkdir()
    yield made
    left = [path.name for path in made.iterdir() if path.is_dir()]
    for name in left:
        with suppress(OSError):
            (made / name / "cgroup.kill").write_text("1")
            (made / name).rmdir()
    made.rmdir()
    assert left == [], "cgroups left behind by this test"


@pytest.fixture(params=[Containment.KEEPER, Containment.CGROUP, Containment.BEST_EFFORT], ids=str)
def contain(request: pytest.FixtureRequest) -> partial[Supervisor]:
    """Makes a supervisor of one kind."""
    folder = {"cgroup": request.getfixturevalue("folder")} if request.param is Containment.CGROUP else {}
    return partial(Supervisor, containment=request.param, **folder)


@pytest.fixture
async def supervisor(contain: partial[Supervisor], anyio_backend: object) -> AsyncIterator[Supervisor]:
    made = contain()
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
