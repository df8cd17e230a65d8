"""Calls that are refused for what they are: unreadable arguments, denials, unknown tools; the body is never entered."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pipeline.bench import DENIED, PRE_HOOK_FAILED, check_never_started, open_runner, types_of
from pipeline.entering import WRITE, CountedMapping, entered, write

from toolrunner import AbortController, Decision, ToolCall, ToolError, cancel, tool
from toolrunner.errors import DuplicateTool
from toolrunner.results import Code, ErrorKind, Outcome

pytestmark = pytest.mark.anyio


def not_started(code: Code, outcome: Outcome = Outcome.REJECTED) -> Any:
    return (outcome, code, False, None)


def unreadable() -> Mapping[str, Any]:
    class Hostile(CountedMapping):
        def __getitem__(self, key: str) -> str:
            raise RuntimeError("no")

    return Hostile()


@pytest.mark.case("T16")
@pytest.mark.parametrize(
    "arguments",
    [
        {"path": object()},
        {"path": float("nan")},
        {1: "a"},
        {"path": Path("a")},
        {"path": "\udc80"},
        [],
        None,
        5,
        "[1]",
        "{",
        '{"path": NaN}',
        "1" * 10_000,
        {"path": 10**5_000},
        "[" * 100_000,
        unreadable(),
    ],
    ids=lambda value: str(type(value).__name__),
)
async def test_arguments_that_cannot_be_frozen_are_rejected_for_that_also_when_aborted(arguments: Any) -> None:
    seen: list[Any] = []
    async with open_runner([write]) as runner:
        runner.on_record(seen.append)
        stop = AbortController()
        stop.abort("enough")
        for signal in (None, stop.signal):
            seen.clear()
            result = await runner.run(ToolCall("write", arguments), signal=signal)
            check_never_started(result, not_started(Code.INVALID_ARGUMENTS))
            assert result.error is not None
            assert result.error.kind == ErrorKind.INVALID_ARGUMENTS
            assert result.retry == "fix_first"
            assert types_of(seen) == ["call/recorded", "call/settled"]
            assert entered == []


@pytest.mark.case("T16")
async def test_arguments_that_cannot_be_read_leave_the_rest_of_their_batch_alone() -> None:
    async with open_runner([write]) as runner:
        batch = await runner.run_batch([WRITE, ToolCall("write", unreadable()), ToolCall("write", {"path": "c"})])
    assert [result.code for result in batch] == [None, Code.INVALID_ARGUMENTS, None]
    assert entered == ["a", "c"]


@pytest.mark.case("T17")
@pytest.mark.parametrize("by", ["hook", "guard", "cancel"])
async def test_a_denial_means_that_no_wrapper_is_entered(by: str) -> None:
    wrapped: list[str] = []
    async with open_runner([write]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            wrapped.append(call.name)
            return await go_on(call)

        async def pre(call: ToolCall, signal: Any) -> Any:
            return {"hook": Decision.deny("no"), "cancel": cancel("no"), "guard": None}[by]

        runner.use(wrap)
        runner.pre_execute(pre)
        runner.guard(lambda call: "no" if by == "guard" else None)
        result = await runner.run(WRITE)
    check_never_started(result, DENIED)
    assert result.error is not None
    assert result.error.message == "no"
    assert (wrapped, entered) == ([], [])


@pytest.mark.case("T24")
async def test_a_tool_nobody_registered_is_rejected_and_no_hook_is_asked() -> None:
    asked: list[str] = []
    async with open_runner([write]) as runner:

        async def pre(call: ToolCall, signal: Any) -> None:
            asked.append(call.name)

        runner.pre_execute(pre)
        result = await runner.run("wrte", {"path": "a"})
    check_never_started(result, not_started(Code.UNKNOWN_TOOL))
    assert result.error is not None
    assert result.error.message == "'wrte' is not registered; did you mean 'write'?"
    assert (result.name, result.arguments, asked, entered) == ("wrte", {"path": "a"}, [], [])


@pytest.mark.case("T26")
async def test_a_second_tool_of_a_name_is_refused_and_the_first_can_be_taken_out() -> None:
    @tool(name="write")
    async def other(path: str) -> str:
        """Write elsewhere."""
        return "other"

    with pytest.raises(DuplicateTool):
        async with open_runner([write, other]):
            raise AssertionError("entered")
    async with open_runner([]) as runner:
        unregister = runner.register(write)
        with pytest.raises(DuplicateTool):
            runner.register(other)
        assert (await runner.run(WRITE)).value == "wrote a"
        assert unregister()
        assert (await runner.run(WRITE)).code is Code.UNKNOWN_TOOL
        assert not unregister()
        runner.register(other)
        assert (await runner.run(WRITE)).value == "other"
        assert not unregister()


async def test_a_guard_that_raises_fails_closed() -> None:
    async with open_runner([write]) as runner:

        def guard(call: ToolCall) -> None:
            raise ToolError("no budget", kind="budget")

        unregister = runner.guard(guard)
        result = await runner.run(WRITE)
        check_never_started(result, PRE_HOOK_FAILED)
        assert result.error is not None
        assert result.error.kind == "budget"
        assert entered == []
        unregister()
        assert (await runner.run(WRITE)).outcome is Outcome.SUCCEEDED
