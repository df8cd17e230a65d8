"""What the tests of one call's life share: gates instead of sleeps, and what must be true of every result of a kind."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from stillness import all_blocked

from toolrunner import AbortController, BatchResult, MemoryJournal, Runner, ToolCall, ToolResult
from toolrunner.facts import EffectState, Evidence, StopPhase
from toolrunner.results import Code, Ended, Outcome, plain_text, result_from_json, result_to_json
from toolrunner.testing import Gate

BOUND = 60.0  # for what takes milliseconds; nobody but a hang waits it out

Facts = tuple[Outcome, Code | None, bool, Ended | None]

SUCCEEDED: Facts = (Outcome.SUCCEEDED, None, True, Ended.RETURNED)
BEFORE_DISPATCH: Facts = (Outcome.ABORTED, Code.ABORTED_BEFORE_DISPATCH, False, None)
STOPPED: Facts = (Outcome.ABORTED, Code.ABORTED, True, Ended.STOPPED)
FINISHED_FIRST: Facts = (Outcome.ABORTED, Code.ABORTED, True, Ended.RETURNED)
TIMED_OUT: Facts = (Outcome.TIMED_OUT, Code.TIMED_OUT, True, Ended.STOPPED)
RAISED: Facts = (Outcome.FAILED, Code.TOOL_ERROR, True, Ended.RAISED)
DENIED: Facts = (Outcome.DENIED, Code.DENIED, False, None)
PRE_HOOK_FAILED: Facts = (Outcome.REJECTED, Code.HOOK_ERROR, False, None)
HOOK_FAILED_AFTER: Facts = (Outcome.FAILED, Code.HOOK_ERROR, True, Ended.RETURNED)
WRAPPER_FAILED_BEFORE: Facts = (Outcome.FAILED, Code.HOOK_ERROR, False, None)


class Coded(Exception):
    """An error with a code of its own."""

    kind = "quota"


@asynccontextmanager
async def open_runner(tools: Any, **settings: Any) -> AsyncIterator[Runner]:
    """A runner whose whole life, its end included, is bounded; every result it settled survives being written and read."""
    journal = settings.setdefault("journal", MemoryJournal())
    with anyio.fail_after(BOUND):
        async with Runner(tools, **settings) as runner:
            yield runner
        assert runner._services is not None
        assert runner._services.root.live == ()
        assert runner._services.leases.held == 0
    if isinstance(journal, MemoryJournal):
        for record in journal:
            if record.type == "call/settled":
                check_round_trip(record.result)


async def stopped_at(runner: Runner, gate: Gate, call: ToolCall, text: str = "enough") -> ToolResult:
    """Make the call, abort it once `gate` is reached, then open the gate."""
    stop = AbortController()
    batch = runner.start_batch([call], signal=stop.signal)
    await gate.reached()
    assert stop.abort(text)
    # Whatever hears of the abort has heard of it before the gate opens.
    await all_blocked()
    gate.open()
    return (await batch.results())[0]


def facts(result: ToolResult) -> Facts:
    return (result.outcome, result.code, result.started, result.ended)


def effects(result: ToolResult) -> tuple[EffectState, Evidence | None]:
    return (result.effects.state, result.effects.evidence)


def stop_of(result: ToolResult) -> tuple[str, str, StopPhase]:
    assert result.stop is not None
    return (result.stop.source, result.stop.reason, result.stop.phase)


def text(result: ToolResult) -> str:
    return plain_text(result.content_for_model())


def check_never_started(result: ToolResult, expected: Facts = BEFORE_DISPATCH) -> None:
    """Nothing was entered, and every part of the result says so."""
    assert facts(result) == expected
    assert effects(result) == (EffectState.NONE, Evidence.NOT_STARTED)
    assert (result.attempts, result.process, result.still_running) == (0, None, ())
    assert result.is_error
    assert "not started" in text(result)


def check_stopped_early(result: ToolResult, reason: str = "enough", source: str = "caller") -> None:
    """An abort closed the way before the moment of action."""
    check_never_started(result)
    assert stop_of(result) == (source, reason, StopPhase.BEFORE_DISPATCH)
    assert result.stop is not None
    assert (result.stop.delivered_at, result.stop.ended_at, result.stop.signals) == (None, None, ())
    assert result.retry == "safe"


def check_round_trip(result: ToolResult) -> None:
    line = result_to_json(result)
    assert "\n" not in line
    line.encode()
    assert result_from_json(line) == result


def types_of(records: Iterable[Any]) -> list[str]:
    return [record.type for record in records]


def only(results: BatchResult | Sequence[ToolResult]) -> ToolResult:
    [result] = results
    return result
