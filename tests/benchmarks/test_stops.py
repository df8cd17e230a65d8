"""One measured stop: survivors are found whatever they hide behind, claims are held against them, and nothing stays behind."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest

from benchmarks.baselines.killpg import Killpg
from benchmarks.ours import Toolrunner
from benchmarks.stopping import Running, stop_once
from benchmarks.victims.scene import Scene, seen
from benchmarks.victims.shapes import FOURTEEN, ONE, TREE, Argv, Shape

pytestmark = [pytest.mark.processes]

BY_NAME = {shape.name: shape for shape in FOURTEEN}
BOUND = 60.0


@pytest.fixture
def anyio_backend() -> str:
    """The baselines are asyncio's."""
    return "asyncio"


class Liar:
    """Starts with asyncio, stops nothing, and says that nothing is left."""

    name = "liar"

    @asynccontextmanager
    async def start(self, commands: Sequence[Argv]) -> AsyncIterator[Running]:
        async with Killpg().start(commands):
            yield self

    async def stop(self) -> bool:
        return True


@pytest.mark.anyio
@pytest.mark.parametrize("shape", [ONE, BY_NAME["a"], BY_NAME["d"], BY_NAME["g"]], ids=lambda shape: shape.name)
async def test_whoever_survives_is_counted_and_a_claim_against_it_is_a_lie(shape: Shape) -> None:
    with anyio.fail_after(BOUND):
        trial = await stop_once(Liar(), shape)
    assert trial.left == shape.lifelines + shape.hidden
    assert trial.lied


@pytest.mark.anyio
@pytest.mark.parametrize("name, left", [("a", 0), ("b", 1), ("c", 1), ("d", 1), ("f", 0), ("h", 0), ("h2", 1)], ids=str)
async def test_killpg_leaves_what_is_outside_its_group(name: str, left: int) -> None:
    with anyio.fail_after(BOUND):
        trial = await stop_once(Killpg(), BY_NAME[name])
    assert (trial.left, trial.lied) == (left, False)


@pytest.mark.anyio
@pytest.mark.parametrize("shape", [ONE, TREE, *(BY_NAME[name] for name in ("d", "e4", "h2"))], ids=lambda shape: shape.name)
async def test_keepers_leave_nobody(shape: Shape) -> None:
    with anyio.fail_after(BOUND):
        async with Toolrunner(grace=0.1).running() as ours:
            trial = await stop_once(ours, shape)
    assert (trial.left, trial.lied, trial.hung) == (0, False, False)


def test_a_scene_that_nobody_played_is_dead_and_was_never_entered() -> None:
    with Scene(TREE) as scene:
        assert scene.alive(0.1) == 0
        assert not scene.was_entered()


@pytest.mark.anyio
async def test_moving_targets_are_ended_by_their_scene() -> None:
    with anyio.fail_after(BOUND):
        async with Killpg().start((scene := Scene(BY_NAME["e4"])).commands):
            await scene.born()
            assert scene.alive() == 9
            scene.close()
    assert seen(scene.token) == []
