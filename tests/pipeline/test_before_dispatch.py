"""Everything that can close a call's way to its moment of action: the body is never entered, and the result proves it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pipeline.bench import (
    BEFORE_DISPATCH,
    DENIED,
    PRE_HOOK_FAILED,
    check_never_started,
    check_stopped_early,
    facts,
    only,
    open_runner,
    stop_of,
    stopped_at,
    text,
    types_of,
)
from stillness import all_blocked

from toolrunner import (
    AbortController,
    Decision,
    MemoryJournal,
    Reply,
    ToolCall,
    ToolError,
    ToolResult,
    cancel,
    shell,
    tool,
)
from toolrunner.errors import DuplicateTool
from toolrunner.facts import NoteKind, StopPhase, Text
from toolrunner.results import Code, ErrorKind, Outcome
from toolrunner.testing import Gate

pytestmark = pytest.mark.anyio

entered: list[str] = []


@pytest.fixture(autouse=True)
def nothing_entered_yet() -> None:
    entered.clear()


@tool
async def write(path: str) -> str:
    """Write a file."""
    entered.append(path)
    return f"wrote {path}"


WRITE = ToolCall("write", {"path": "a"}, call_id="c1")


def not_started(code: Code, outcome: Outcome = Outcome.REJECTED) -> Any:
    return (outcome, code, False, None)


@pytest.mark.case("T1")
async def test_an_abort_during_a_pre_hook_means_that_the_body_is_never_entered() -> None:
    async with open_runner([write]) as runner:
        gate = Gate()

        async def look(call: ToolCall, signal: Any) -> None:
            await gate.wait()
            assert signal.aborted

        runner.pre_execute(look)
        result = await stopped_at(runner, gate, WRITE)
    check_stopped_early(result)
    assert (result.call_id, result.arguments, result.error, entered) == ("c1", {"path": "a"}, None, [])


@pytest.mark.case("T1")
async def test_a_pre_hook_that_waits_for_the_abort_itself_ends_with_it() -> None:
    async with open_runner([write]) as runner:
        gate = Gate()
        gate.open()

        async def look(call: ToolCall, signal: Any) -> None:
            await gate.wait()
            await signal.wait()

        runner.pre_execute(look)
        result = await stopped_at(runner, gate, WRITE)
    check_stopped_early(result)
    assert entered == []


@pytest.mark.case("T1")
async def test_a_pre_hook_that_only_hands_the_abort_on_has_not_failed() -> None:
    async with open_runner([write]) as runner:
        gate = Gate()

        async def look(call: ToolCall, signal: Any) -> None:
            await gate.wait()
            signal.raise_if_aborted()

        runner.pre_execute(look)
        result = await stopped_at(runner, gate, WRITE)
    check_stopped_early(result)
    assert (result.error, entered) == (None, [])


@pytest.mark.case("T2")
async def test_a_denial_after_the_abort_stands_word_for_word() -> None:
    async with open_runner([write]) as runner:
        gate = Gate()

        async def look(call: ToolCall, signal: Any) -> Decision:
            await gate.wait()
            return Decision.deny("not on a Sunday")

        runner.pre_execute(look)
        result = await stopped_at(runner, gate, WRITE)
    check_never_started(result, DENIED)
    assert result.error is not None
    assert (result.error.kind, result.error.message) == (ErrorKind.HOOK, "not on a Sunday")
    assert stop_of(result) == ("caller", "enough", StopPhase.BEFORE_DISPATCH)
    assert (result.retry, entered) == ("no", [])


class Coded(Exception):
    kind = "quota"


@pytest.mark.case("T3")
async def test_a_pre_hook_that_raises_after_the_abort_has_its_error_kept() -> None:
    async with open_runner([write]) as runner:
        gate = Gate()

        async def look(call: ToolCall, signal: Any) -> None:
            await gate.wait()
            raise Coded("no credit left")

        runner.pre_execute(look)
        result = await stopped_at(runner, gate, WRITE)
    check_never_started(result, PRE_HOOK_FAILED)
    assert result.error is not None
    assert result.error.kind == "quota"
    assert "no credit left" in result.error.message
    assert stop_of(result) == ("caller", "enough", StopPhase.BEFORE_DISPATCH)
    assert entered == []


@pytest.mark.case("T4")
async def test_a_wrapper_that_goes_on_with_its_own_signal_after_the_abort_enters_no_body() -> None:
    async with open_runner([write]) as runner:
        gate = Gate()
        own = AbortController()
        inside: list[ToolResult] = []

        async def wrap(call: ToolCall, go_on: Any) -> ToolResult:
            await gate.wait()
            inside.append(await go_on(call, signal=own.signal))
            return inside[0]

        runner.use(wrap)
        result = await stopped_at(runner, gate, WRITE)
    check_stopped_early(result)
    assert facts(only(inside)) == BEFORE_DISPATCH
    assert (own.signal.aborted, entered) == (False, [])


@pytest.mark.case("T5")
async def test_a_wrapper_that_adds_an_aborted_signal_enters_no_body() -> None:
    async with open_runner([write]) as runner:
        own = AbortController()
        own.abort("too many calls")

        async def limit(call: ToolCall, go_on: Any) -> ToolResult:
            result: ToolResult = await go_on(call, signal=own.signal)
            return result

        runner.use(limit)
        result = await runner.run(WRITE)
    check_stopped_early(result, "too many calls", "wrapper:limit")
    assert entered == []


@pytest.mark.case("T6")
async def test_a_wrapper_that_answers_after_the_abort_is_not_believed_and_what_it_added_is_kept() -> None:
    async with open_runner([write]) as runner:
        gate = Gate()

        async def cache(call: ToolCall, go_on: Any) -> Reply:
            await gate.wait()
            return Reply("from the cache", (Text("cached"),), ({"hit": 1},))

        runner.use(cache)
        result = await stopped_at(runner, gate, WRITE)
    check_stopped_early(result)
    assert (result.value, result.content, result.follow_up) == ("from the cache", (Text("cached"),), ({"hit": 1},))
    assert entered == []


class CountedMapping(Mapping[str, Any]):
    """Counts how often it is read, and reads differently each time."""

    def __init__(self) -> None:
        self.reads = 0

    def __getitem__(self, key: str) -> str:
        self.reads += 1
        return f"read {self.reads}"

    def __iter__(self) -> Iterator[str]:
        return iter(["path"])

    def __len__(self) -> int:
        return 1


@pytest.mark.case("T15")
async def test_a_call_aborted_before_it_was_made_runs_through_no_phase_and_has_one_result() -> None:
    seen: list[str] = []
    journal = MemoryJournal()
    async with open_runner([write], journal=journal) as runner:

        async def pre(call: ToolCall, signal: Any) -> None:
            seen.append("pre")

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            seen.append("wrap")
            return await go_on(call)

        async def post(call: ToolCall, result: ToolResult, signal: Any) -> None:
            seen.append("post")

        runner.pre_execute(pre)
        runner.use(wrap)
        runner.post_execute(post)
        runner.guard(lambda call: seen.append("guard"))
        stop = AbortController()
        stop.abort("enough")
        arguments = CountedMapping()
        result = await runner.run(ToolCall("write", arguments), signal=stop.signal)
    check_stopped_early(result)
    assert (seen, entered, arguments.reads) == ([], [], 1)
    assert result.arguments == {"path": "read 1"}
    assert isinstance(result.arguments, dict)
    with pytest.raises(TypeError):
        result.arguments["path"] = "other"
    with pytest.raises(AttributeError):
        result.outcome = Outcome.SUCCEEDED  # type: ignore[misc]
    assert types_of(journal) == ["call/recorded", "call/settled"]
    assert [note.kind for note in result.notes] == [NoteKind.ABORTED_AT_ENTRY]
    assert "had been asked for before the call was made" in text(result)


async def test_only_a_call_made_after_the_abort_is_said_to_have_been() -> None:
    """A queued call was made before the abort: to say otherwise would be a claim that is not true."""
    async with open_runner([write]) as runner:
        gate = Gate()

        async def look(call: ToolCall, signal: Any) -> None:
            await gate.wait()

        runner.pre_execute(look)
        stop = AbortController()
        batch = runner.start_batch([WRITE, ToolCall("write", {"path": "b"})], signal=stop.signal)
        await gate.reached()
        stop.abort("enough")
        gate.open()
        for result in await batch.results():
            check_stopped_early(result)
            assert result.notes == ()


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


@pytest.mark.case("A17")
async def test_a_call_that_is_aborted_already_starts_no_process(tmp_path: Path) -> None:
    made: list[str] = []
    async with open_runner([shell]) as runner:
        assert runner._services is not None
        assert runner._supervisor is not None
        stop = AbortController()
        stop.abort("enough")
        runner.on_record(lambda record: made.append(record.type))
        result = await runner.run("shell", {"command": f"touch {tmp_path}/made"}, signal=stop.signal)
        assert made == ["call/recorded", "call/settled"]
    check_stopped_early(result)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("phase", ["pre", "guard", "lock"])
async def test_a_body_that_was_not_entered_left_nothing_held(phase: str) -> None:
    """Wherever the abort came, the next call goes through."""

    @tool(resources=lambda arguments: ["the file"])
    async def locked(path: str) -> str:
        """Write under a lock."""
        entered.append(path)
        await gate.wait() if path == "first" else None
        return path

    async with open_runner([locked]) as runner:
        gate, stop, first_stop = Gate(), AbortController(), AbortController()

        async def pre(call: ToolCall, signal: Any) -> None:
            if phase == "pre" and call.arguments == {"path": "second"}:
                stop.abort("enough")

        def guard(call: ToolCall) -> None:
            if phase == "guard" and call.arguments == {"path": "second"}:
                stop.abort("enough")

        runner.pre_execute(pre)
        runner.guard(guard)
        first = runner.start_batch([ToolCall("locked", {"path": "first"})], signal=first_stop.signal)
        await gate.reached()
        second = runner.start_batch([ToolCall("locked", {"path": "second"})], signal=stop.signal)
        await all_blocked()
        if phase == "lock":
            stop.abort("enough")
        check_stopped_early(only(await second.results()))
        gate.open()
        assert only(await first.results()).value == "first"
        assert (await runner.run("locked", {"path": "third"})).value == "third"
    assert entered == ["first", "third"]


async def test_an_abort_in_a_guard_is_seen_before_anything_is_waited_for() -> None:
    async with open_runner([write]) as runner:
        stop = AbortController()

        def guard(call: ToolCall) -> None:
            stop.abort("from a guard")

        runner.guard(guard)
        result = await runner.run(WRITE, signal=stop.signal)
    check_stopped_early(result, "from a guard")
    assert stop_of(result)[0] == "caller"
    assert entered == []


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
