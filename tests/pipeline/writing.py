"""A tool that writes, says so and hands something on, and what must be true of a result that kept all of it."""

from typing import Any

from pipeline.bench import FINISHED_FIRST, effects, facts, stop_of, text

from toolrunner import ToolCall, ToolContext, ToolResult, tool
from toolrunner.facts import EffectStage, EffectState, Evidence, StopPhase

COMPLETED = (EffectState.COMPLETED, Evidence.REPORTED)


@tool
async def write(ctx: ToolContext[Any], path: str) -> str:
    """Write a file, say so, and hand something on."""
    async with ctx.effect("file", path) as effect:
        effect.receipt = "sha 1"
    ctx.follow_up({"from": "body"})
    return f"wrote {path}"


WRITE = ToolCall("write", {"path": "a"}, call_id="c1")


def check_write_is_kept(result: ToolResult) -> None:
    assert result.value == "wrote a"
    assert effects(result) == COMPLETED
    [record] = result.effects.records
    assert (record.kind, record.target, record.stage, record.receipt) == ("file", "a", EffectStage.APPLIED, "sha 1")
    assert "Its change was made: a" in text(result)
    assert "not started" not in text(result)


def check_finished_first(result: ToolResult, reason: str = "enough") -> None:
    assert facts(result) == FINISHED_FIRST
    assert stop_of(result) == ("caller", reason, StopPhase.FINISHING)
    assert result.stop is not None
    assert result.stop.delivered_at is None
    assert "The call finished before it could be stopped." in text(result)
    assert (result.is_error, result.error, result.retry) == (False, None, "no")
    check_write_is_kept(result)
