"""Batches that are stopped: what runs ends truthfully, what does not never starts, every call has its one result."""

import json
from typing import Any

import pytest
from batches.stage import Stage, alone, assert_never_entered, ids, leases, of_type, opened, step, stubborn, text
from stillness import quiet

from toolrunner import AbortController, MemoryJournal, ToolCall, cancel, tool
from toolrunner.abort import AbortSignal
from toolrunner.facts import NoteKind
from toolrunner.records import Record
from toolrunner.tools import Resource

pytestmark = pytest.mark.anyio


@pytest.mark.case("S15")
async def test_a_batch_that_was_aborted_before_it_began_starts_nothing() -> None:
    stage, records, controller = Stage(), list[Record](), AbortController()
    controller.abort("enough")
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([step("a"), alone("b")], signal=controller.signal, on_event=records.append)
        results = await batch
        assert leases(runner) == 0
    assert stage.log == []
    assert ids(results) == ["a", "b"]
    for result in results:
        assert_never_entered(result)
        assert result.stop is not None
        assert (result.stop.source, result.stop.reason) == ("caller", "enough")
        assert [note.kind for note in result.notes] == [NoteKind.ABORTED_AT_ENTRY]
        assert "had been asked for before the call was made" in text(result)
    assert [record.run_id for record in of_type(records, "call/recorded")] == list(batch.run_ids)
    assert [record.run_id for record in of_type(records, "call/settled")] == list(batch.run_ids)
    assert results.stopped is not None
    assert (results.stopped.source, results.stopped.reason, results.stopped.phase) == ("caller", "enough", "before_dispatch")


@pytest.mark.case("S16")
async def test_an_abort_inside_the_first_calls_hook_lets_no_body_in() -> None:
    stage, controller = Stage(), AbortController()

    async def before(call: ToolCall, _: AbortSignal) -> None:
        controller.abort("from the hook")

    async with opened(stage.tools) as runner:
        runner.pre_execute(before)
        results = await runner.run_batch([step("a"), step("b")], signal=controller.signal)
    assert stage.log == []
    for result in results:
        assert_never_entered(result)


async def test_a_hook_that_cancels_denies_its_call_and_aborts_the_batch() -> None:
    stage = Stage()

    async def before(call: ToolCall, _: AbortSignal) -> Any:
        return cancel("too dear") if call.call_id == "b" else None

    async with opened(stage.tools) as runner:
        runner.pre_execute(before)
        a, b, c = results = await runner.run_batch([step("a"), step("b"), step("c")])
        assert leases(runner) == 0
    assert (a.outcome, a.code, a.started) == ("aborted", "ABORTED", True)
    assert (b.outcome, b.code, b.started) == ("denied", "DENIED", False)
    assert "too dear" in text(b)
    assert_never_entered(c)
    assert results.stopped is not None
    assert (results.stopped.source, results.stopped.reason) == ("hook", "too dear")


@pytest.mark.case("S17")
async def test_an_abort_with_two_of_four_running_ends_these_two_truthfully_and_starts_no_other() -> None:
    stage, records, controller = Stage(), list[Record](), AbortController()
    async with opened(stage.tools, max_parallel=2) as runner:
        batch = runner.start_batch([step(n) for n in "abcd"], signal=controller.signal, on_event=records.append)
        await stage.started("a", "b")
        controller.abort("stop")
        a, b, c, d = results = await batch
        assert leases(runner) == 0
        # The runner goes on as if nothing were.
        stage.end("next")
        assert (await runner.run(step("next"))).value == "next"
    assert stage.entered == ["a", "b", "next"]
    assert ids(results) == ["a", "b", "c", "d"]
    for result in (a, b):
        assert (result.outcome, result.code, result.started, result.ended) == ("aborted", "ABORTED", True, "stopped")
        assert (result.effects.state, result.effects.evidence) == ("unknown", None)
        assert result.follow_up == (f"of {result.call_id}",)
        assert "was stopped while it ran" in text(result)
        assert "may have taken effect" in text(result)
        assert "not started" not in text(result)
    for result in (c, d):
        assert_never_entered(result)
    for kind in ("call/recorded", "call/settled"):
        assert [record.run_id for record in of_type(records, kind)] == list(batch.run_ids)
    assert results.stopped is not None
    assert results.stopped.phase == "running"


@pytest.mark.case("S18")
async def test_an_exclusive_call_behind_an_aborted_pool_never_runs_and_has_its_result() -> None:
    stage, controller = Stage(), AbortController()
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([stubborn("a"), step("b"), alone("x"), step("c")], signal=controller.signal)
        await stage.started("a", "b")
        controller.abort()
        await quiet()
        assert "x" not in stage.entered
        stage.end("a")
        a, b, x, c = await batch
    assert set(stage.entered) == {"a", "b"}
    # The stubborn one came to its own end; what it gave is kept, and it is not told as a success.
    assert (a.outcome, a.code, a.ended, a.value) == ("aborted", "ABORTED", "returned", "a")
    assert "finished before it could be stopped" in text(a)
    assert (b.outcome, b.ended) == ("aborted", "stopped")
    assert_never_entered(x)
    assert_never_entered(c)


@pytest.mark.case("E7")
async def test_an_abort_during_the_wait_for_a_lock_never_enters_and_frees_the_lock() -> None:
    stage, controller = Stage(), AbortController()

    @tool(resources=lambda _: [Resource("db")])
    async def write(name: str) -> str:
        return await stage.play(name)

    async with opened(write) as runner:
        one = runner.start_batch([ToolCall("write", {"name": "a"})])
        await stage.started("a")
        two = runner.start_batch([ToolCall("write", {"name": "b"})], signal=controller.signal)
        await quiet()
        controller.abort("not any more")
        (aborted,) = await two
        assert_never_entered(aborted)
        stage.end("a", "c")
        await one
        assert (await runner.run("write", {"name": "c"})).outcome == "succeeded"
        assert leases(runner) == 0
    assert stage.entered == ["a", "c"]


@pytest.mark.case("E7")
@pytest.mark.parametrize("mode", ["immediate", "drain"])
async def test_an_abort_during_the_wait_for_a_place_never_enters_and_frees_the_place(mode: str) -> None:
    stage, controller = Stage(), AbortController()

    @tool(parallel_safe=True, max_concurrency=1)
    async def narrow(name: str) -> str:
        return await stage.play(name)

    async with opened(narrow) as runner:
        one = runner.start_batch([ToolCall("narrow", {"name": "a"})])
        await stage.started("a")
        waiting = [ToolCall("narrow", {"name": name}) for name in "bcd"]
        two = runner.start_batch(waiting, signal=controller.signal)
        await quiet()
        controller.abort(mode=mode)
        for result in await two:
            assert_never_entered(result)
        stage.end("a", "e")
        assert (await one)[0].outcome == "succeeded"
        assert (await runner.run("narrow", {"name": "e"})).outcome == "succeeded"
        assert leases(runner) == 0
    assert stage.entered == ["a", "e"]


@pytest.mark.case("E18")
async def test_the_first_of_two_reasons_is_the_one_that_is_recorded() -> None:
    stage, controller = Stage(), AbortController()
    journal = MemoryJournal()
    async with opened(stage.tools, journal=journal) as runner:
        batch = runner.start_batch([stubborn("a"), alone("b")], signal=controller.signal)
        await stage.started("a")
        assert controller.abort("first") is True
        assert controller.abort("second") is False
        assert batch.abort("third")
        await quiet()
        stage.end("a")
        results = await batch
    for result in results:
        assert result.stop is not None
        assert (result.stop.source, result.stop.reason) == ("caller", "first")
        assert "first" in text(result)
        assert "second" not in text(result)
    assert results.stopped is not None
    assert results.stopped.reason == "first"
    requested = [record.reason for record in journal if record.type == "call/stop_requested"]
    assert requested == ["first"]
    settled = [record.result.stop.reason for record in journal if record.type == "call/settled" and record.result.stop]
    assert settled == ["first", "first"]


@pytest.mark.case("E19")
async def test_a_drain_closes_what_is_queued_and_lets_what_runs_finish_as_a_success() -> None:
    stage, controller = Stage(), AbortController()
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([step("a"), alone("b"), step("c")], signal=controller.signal)
        await stage.started("a")
        controller.abort("closing time", mode="drain")
        await quiet()
        assert stage.log == ["+a"]
        stage.end("a")
        a, b, c = results = await batch
    assert (a.outcome, a.code, a.ended, a.value, a.stop) == ("succeeded", None, "returned", "a", None)
    assert text(a) == "a"
    for result in (b, c):
        assert_never_entered(result)
        assert result.stop is not None
        assert result.stop.reason == "closing time"
    assert stage.log == ["+a", "-a"]
    assert results.stopped is not None


@pytest.mark.case("E19")
async def test_a_drain_that_becomes_an_abort_stops_what_runs_and_keeps_the_first_reason() -> None:
    stage, controller = Stage(), AbortController()
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([step("a"), alone("b")], signal=controller.signal)
        await stage.started("a")
        assert controller.abort("slowly", mode="drain")
        await quiet()
        assert controller.abort("now")
        a, b = await batch
    assert (a.outcome, a.ended) == ("aborted", "stopped")
    assert a.stop is not None
    assert a.stop.reason == "slowly"
    assert_never_entered(b)


async def test_aborting_one_batch_leaves_the_others_alone() -> None:
    stage = Stage()
    async with opened(stage.tools) as runner:
        one, two = runner.start_batch([step("a")]), runner.start_batch([step("b")])
        await stage.started("a", "b")
        assert one.abort("this one")
        assert (await one)[0].outcome == "aborted"
        stage.end("b")
        assert (await two)[0].outcome == "succeeded"


async def test_a_thousand_calls_that_are_aborted_together_give_a_thousand_results() -> None:
    stage, controller, records = Stage(), AbortController(), list[Record]()
    names = [f"n{number}" for number in range(1000)]
    async with opened(stage.tools, max_parallel=500, bound=60) as runner:
        batch = runner.start_batch([step(name) for name in names], signal=controller.signal, on_event=records.append)
        await stage.started(*names[:500])
        controller.abort("all of you")
        results = await batch
        assert leases(runner) == 0
    assert ids(results) == names
    assert [result.started for result in results] == [True] * 500 + [False] * 500
    assert {(result.outcome, result.code, result.ended) for result in results[:500]} == {("aborted", "ABORTED", "stopped")}
    for result in results[500:]:
        assert_never_entered(result)
    assert len(stage.entered) == 500
    assert [record.run_id for record in of_type(records, "call/settled")] == list(batch.run_ids)
    json.dumps(results.to_messages("anthropic"))


async def test_an_abort_after_everything_has_settled_changes_nothing() -> None:
    stage, controller = Stage(), AbortController()
    stage.end("a")
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([step("a")], signal=controller.signal)
        (before,) = await batch
        controller.abort("too late")
        await quiet()
        (after,) = results = await batch
    assert after is before
    assert (after.outcome, results.stopped) == ("succeeded", None)
