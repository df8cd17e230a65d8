"""Async tests run on the loops they should: asyncio in debug mode and trio, uvloop where asked for, virtual time where needed."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
import sniffio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

pytestmark = pytest.mark.anyio

seen = set[str]()


@pytest.fixture
async def fixture_with_a_task() -> AsyncIterator[anyio.Event]:
    """A fixture may hold tasks while the test runs: the guard looks after the fixture ended."""
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep_forever)
        yield anyio.Event()
        group.cancel_scope.cancel()


def loop_name() -> str:
    if sniffio.current_async_library() == "trio":
        return "trio"
    loop = asyncio.get_running_loop()
    assert loop.get_debug()
    return "uvloop" if type(loop).__module__.startswith("uvloop") else "asyncio"


async def test_a_test_runs_on_the_loop_of_its_name(request: pytest.FixtureRequest) -> None:
    assert f"[{loop_name()}]" in request.node.name
    assert loop_name() != "uvloop" or request.config.getoption("--all-loops")


@pytest.mark.uvloop
async def test_a_marked_test_runs_on_uvloop_too(request: pytest.FixtureRequest) -> None:
    assert f"[{loop_name()}]" in request.node.name
    seen.add(loop_name())


def test_all_three_were_there() -> None:
    assert seen == {"asyncio", "trio", "uvloop"}


async def test_a_fixture_may_hold_a_task(fixture_with_a_task: anyio.Event) -> None:
    assert not fixture_with_a_task.is_set()


@given(number=st.integers())
@settings(max_examples=5)
async def test_a_property_may_be_async(number: int) -> None:
    with anyio.fail_after(60):
        await anyio.lowlevel.checkpoint()
    assert number + 1 > number


class TestVirtualTime:
    """A module or class that needs it overrides the loops; its clock is fresh in every test."""

    @pytest.fixture
    def anyio_backend(self) -> tuple[str, dict[str, Any]]:
        return "trio", {"clock": MockClock(autojump_threshold=0)}

    @pytest.mark.parametrize("round_", [1, 2])
    async def test_an_hour_passes_at_once(self, round_: int) -> None:
        start = anyio.current_time()
        await anyio.sleep(3600 * round_)
        assert anyio.current_time() - start == 3600 * round_
