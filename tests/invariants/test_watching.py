"""Watched folders: what a call changed there is told, whichever of its attempts did it, and nobody watches for ever."""

from pathlib import Path

import pytest
from invariants.checking import what_stays_behind
from invariants.sweeping import sweep
from invariants.world import World

from toolrunner import Runner, ToolContext, tool
from toolrunner.facts import EffectState, Evidence
from toolrunner.results import Outcome
from toolrunner.testing import Script, ScriptedTool
from toolrunner.tools.options import RetryPolicy

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("second", ["changes nothing", "changes it again", "removes it"])
async def test_a_change_of_the_first_attempt_is_told_after_the_second(tmp_path: Path, second: str) -> None:
    file = tmp_path / "made"

    @tool(idempotent=True, retry=RetryPolicy(2, 0, 0), watch=tmp_path)
    async def write(ctx: ToolContext[None]) -> str:
        """Write, then fail once."""
        if ctx.attempt == 1:
            file.write_text("first")
            raise OSError("once")
        if second == "changes it again":
            file.write_text("second time")
        if second == "removes it":
            file.unlink()
        return "done"

    async with Runner([write]) as runner:
        result = await runner.run("write")
    assert result.outcome is Outcome.SUCCEEDED
    assert result.attempts == 2
    assert result.files_changed == (str(file),)
    assert (result.effects.state, result.effects.evidence) == (EffectState.COMPLETED, Evidence.OBSERVED)


async def test_a_watched_call_aborted_anywhere_leaves_no_watch(tmp_path: Path) -> None:
    watched = ScriptedTool("watched", Script(changes=["a"]), watch=tmp_path)
    async with World([watched]) as world:
        assert await sweep(world, lambda signal: world.runner.run("watched", signal=signal)) > 3


async def test_a_folder_that_is_not_there_refuses_the_call_and_leaves_no_watch(tmp_path: Path) -> None:
    watched = ScriptedTool("watched", Script(), watch=tmp_path / "nowhere")
    async with World([watched]) as world:
        result = await world.runner.run("watched")
        assert result.outcome is Outcome.REJECTED
        assert list(what_stays_behind(world)) == []
