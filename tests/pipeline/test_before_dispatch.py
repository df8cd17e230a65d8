"""Aborts before a call's moment of action, wherever they find it: the body is never entered, and the result proves it."""

from pathlib import Path
from typing import Any

import pytest
from pipeline.bench import (
    BEFORE_DISPATCH,
    DENIED,
    PRE_HOOK_FAILED,
    Coded,
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
from pipeline.entering import WRITE, CountedMapping, entered, write
from stillness import all_blocked

from toolrunner import AbortController, Decision, MemoryJournal, Reply, ToolCall, ToolResult, shell, tool
from toolrunner.facts import NoteKind, StopPhase, Text
from toolrunner.results import ErrorKind, Outcome
from toolrunner.testing import Gate

pytestmark = pytest.mark.anyio


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
