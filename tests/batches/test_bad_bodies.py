"""Bodies that raise, leave or return what they should not."""

import math
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from batches.stage import Stage, assert_claims_no_more_than_known, opened, step

from toolrunner import ToolCall, ToolError, tool

pytestmark = pytest.mark.anyio


class Hostile(Exception):
    """Raises whatever is looked at."""

    def __str__(self) -> str:
        raise RuntimeError("no text for you")

    @property
    def args(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no arguments either")


class Bye(BaseException):
    """Is no Exception."""


def group() -> BaseException:
    return ExceptionGroup("several", [ValueError("one"), ExceptionGroup("inner", [OSError("two")])])


RAISED: dict[str, tuple[Callable[[], BaseException], str]] = {
    "an error": (lambda: ValueError("mine"), "ValueError: mine"),
    "an error without a text": (ValueError, "ValueError"),
    "a ToolError": (lambda: ToolError("plain words"), "plain words"),
    "a BaseException": (lambda: Bye("bye"), "Bye: bye"),
    "a generator's exit": (lambda: GeneratorExit("gone"), "GeneratorExit"),
    "an ExceptionGroup": (group, "two"),
    "a hostile one": (Hostile, "Hostile"),
    "a StopIteration": (lambda: StopIteration(1), "StopIteration"),
    "a cancellation of its own": (lambda: anyio.get_cancelled_exc_class()("mine"), "Cancelled"),
}


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize("raised, said", RAISED.values(), ids=RAISED)
async def test_whatever_a_body_raises_is_a_failed_result(raised: Callable[[], BaseException], said: str, sync: bool) -> None:
    stage = Stage()
    stage.end("a")
    errors: list[BaseException] = []
    try:
        errors.append(raised())
    except TypeError:
        pytest.skip("trio lets nobody make a cancellation up")

    @tool(name="work")
    def work_in_thread() -> None:
        raise errors[0]

    @tool
    async def work() -> None:
        raise errors[0]

    async with opened(work_in_thread if sync else work, stage.tools) as runner:
        result, after = await runner.run_batch([ToolCall("work"), step("a")])
        assert runner._services is not None
        assert runner._services.leases.held == 0
    assert (result.outcome, result.code, result.started, result.ended) == ("failed", "TOOL_ERROR", True, "raised")
    assert result.error is not None
    assert said in result.error.message
    assert (result.effects.state, result.stop) == ("unknown", None)
    assert_claims_no_more_than_known(result)
    assert after.outcome == "succeeded"


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("grouped", [False, True], ids=["bare", "in a group"])
async def test_an_interrupt_out_of_a_body_is_recorded_drains_the_batch_and_is_raised(
    error: type[BaseException], sync: bool, grouped: bool
) -> None:
    stage = Stage()

    def quit_() -> None:
        raise BaseExceptionGroup("several", [ValueError("one"), error("from the body")]) if grouped else error("from the body")

    @tool(name="quits", parallel_safe=True)
    def quits_in_thread() -> None:
        quit_()

    @tool(parallel_safe=True)
    async def quits() -> None:
        await stage.started("a")
        quit_()

    async with opened(quits_in_thread if sync else quits, stage.tools) as runner:
        batch = runner.start_batch([step("a"), ToolCall("quits"), ToolCall("alone", {"name": "never"})])
        with pytest.raises((error, BaseExceptionGroup), match=r"from the body|several"):
            await batch
        a, quitter, never = (runner.result(run_id) for run_id in batch.run_ids)
        stage.end("more")
        assert (await runner.run(step("more"))).value == "more"
    assert (quitter.outcome, quitter.code, quitter.started, quitter.ended) == ("failed", "TOOL_ERROR", True, "raised")
    assert quitter.error is not None
    assert "from the body" in quitter.error.message
    assert (a.outcome, a.ended) == ("aborted", "stopped")
    assert a.stop is not None
    assert (a.stop.source, a.stop.reason) == ("host", error.__name__)
    assert (never.code, never.started) == ("ABORTED_BEFORE_DISPATCH", False)
    assert "never" not in stage.entered


NO_JSON: dict[str, Any] = {
    "an object": object(),
    "NaN": math.nan,
    "an open file": pytest,
    "a lone surrogate": "\ud800",
    "a function": group,
    "an int that is too long to write": 10**5000,
}


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize("value", NO_JSON.values(), ids=NO_JSON)
async def test_a_body_that_returns_what_is_no_json_ran_and_has_invalid_output(value: Any, sync: bool) -> None:
    @tool(name="work")
    def work_in_thread() -> Any:
        return value

    @tool
    async def work() -> Any:
        return value

    async with opened(work_in_thread if sync else work) as runner:
        result = await runner.run("work")
    assert (result.outcome, result.code, result.started, result.ended) == ("failed", "INVALID_OUTPUT", True, "returned")
    assert (result.value, result.retry) == (None, "check_first")
    assert result.error is not None
    assert result.error.kind == "invalid_output"
    assert_claims_no_more_than_known(result)


async def test_a_coroutine_that_nobody_awaited_is_no_answer() -> None:
    async def later() -> int:
        return 1

    @tool
    def forgot() -> Any:
        return later()

    async with opened(forgot) as runner:
        result = await runner.run("forgot")
    assert (result.outcome, result.code) == ("failed", "INVALID_OUTPUT")
