"""A bug of ours where a result is built: whoever waits is told so, each call has its one result, and nothing hangs."""

from typing import Any

import anyio
import pytest
from invariants.world import BOUND, KINDS, World, calls

from toolrunner.facts import EffectState
from toolrunner.pipeline import finish
from toolrunner.results import Code, Ended, ErrorKind, Outcome

pytestmark = pytest.mark.anyio


class OurBug(Exception):
    """What should not happen."""


@pytest.fixture
def broken_results(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: Any) -> Any:
        raise OurBug("while the result was built")

    monkeypatch.setattr(finish, "effects_of", broken)


@pytest.mark.usefixtures("broken_results")
@pytest.mark.parametrize("kind", ["writes", "reads", "sync", "stubborn", "fails after its change"])
async def test_a_result_that_cannot_be_built_hangs_nobody_and_claims_nothing(kind: str) -> None:
    async with World([KINDS[kind].made("t")]) as world:
        with anyio.fail_after(BOUND):
            batch = world.runner.start_batch(calls("t", "unknown", "t"))
            with pytest.raises(OurBug):
                await batch
            with pytest.raises(OurBug):
                await world.runner.run("t")
        results = [world.runner.result(run_id) for run_id in batch.run_ids]
        assert [len(world.recorder.of("call/settled", run_id=run_id)) for run_id in batch.run_ids] == [1, 1, 1]
        assert (results[0].outcome, results[0].code, results[0].ended) == (Outcome.FAILED, Code.LOST, Ended.LOST)
        assert results[0].effects.state is EffectState.UNKNOWN
        assert [one.started for one in results] == [bool(world.truth(run_id).entries) for run_id in batch.run_ids]
        assert {one.error.kind for one in results if one.error is not None} == {ErrorKind.INTERNAL}
        assert world.runner._services is not None
        assert world.runner._services.leases.held == 0
