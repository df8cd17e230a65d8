"""Calls that wait for a person: they hold up nobody else, and what is approved is what runs, or nothing."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from batches.stage import Stage, assert_never_entered, ids, of_type, opened, step, text
from stillness import quiet

from toolrunner import AbortController, ApprovalRequest, Command, Decision, Policy, Runner, ToolCall, command_tool, tool
from toolrunner.abort import AbortSignal
from toolrunner.records import Record

pytestmark = pytest.mark.anyio

ASKING = Policy.of(ask=["careful", "there"], default="allow")


class Elsewhere:
    """An approver whose answers come through `decide`. The questions so far, in order."""

    concurrent = True

    def __init__(self) -> None:
        self.asked: list[ApprovalRequest] = []
        self.was_asked = anyio.Event()

    async def decide(self, request: ApprovalRequest, signal: AbortSignal) -> Decision | None:
        self.asked.append(request)
        self.was_asked.set()
        return None


def careful(stage: Stage, **options: Any) -> Any:
    @tool(name="careful", **options)
    async def asked_for(name: str) -> str:
        return await stage.play(name)

    return asked_for


@pytest.mark.case("E6")
@pytest.mark.parametrize("parallel", [True, False], ids=["parallel", "exclusive"])
async def test_a_pending_question_holds_up_neither_an_earlier_commit_nor_a_later_start(parallel: bool) -> None:
    stage, approver, records = Stage(), Elsewhere(), list[Record]()
    async with opened(stage.tools, careful(stage, parallel_safe=parallel), policy=ASKING, approver=approver) as runner:
        calls = [step("a"), ToolCall("careful", {"name": "b"}, call_id="b"), step("c")]
        batch = runner.start_batch(calls, on_event=records.append)
        await stage.started("a")
        stage.end("a")
        await approver.was_asked.wait()
        await stage.started("c")
        await quiet()
        assert "b" not in stage.entered
        # The first one is committed; the third has started although the second is still with a person.
        assert [record.run_id for record in of_type(records, "call/settled")] == [batch.run_ids[0]]
        (request,) = batch.pending_approvals
        assert (request.tool, request.call_id) == ("careful", "b")
        stage.end("c")
        await quiet()
        assert batch.decide(request.approval_id, Decision.allow())
        stage.end("b")
        results = await batch
        assert batch.pending_approvals == ()
        assert batch.decide(request.approval_id, Decision.allow()) is False
    assert ids(results) == ["a", "b", "c"]
    assert [result.outcome for result in results] == ["succeeded"] * 3
    assert [record.run_id for record in of_type(records, "call/settled")] == list(batch.run_ids)


async def test_an_exclusive_call_whose_approval_came_late_still_has_the_batch_to_itself() -> None:
    stage, approver = Stage(), Elsewhere()
    async with opened(stage.tools, careful(stage, parallel_safe=False), policy=ASKING, approver=approver) as runner:
        batch = runner.start_batch([ToolCall("careful", {"name": "x"}), step("a"), step("b")])
        await approver.was_asked.wait()
        await stage.started("a", "b")
        assert runner.decide(approver.asked[0].approval_id, Decision.allow())
        await quiet()
        assert stage.entered == ["a", "b"]
        stage.end("a")
        await quiet()
        assert stage.entered == ["a", "b"]
        stage.end("b", "x")
        await batch
    assert stage.log == ["+a", "+b", "-a", "-b", "+x", "-x"]


@pytest.mark.case("E22")
@pytest.mark.parametrize("size", [1, 2, 10])
async def test_an_approval_that_comes_after_all_later_calls_have_ended_is_no_deadlock(size: int) -> None:
    stage, approver = Stage(), Elsewhere()
    names = [f"n{number}" for number in range(2 * size)]
    stage.end("first", *names)
    tools = (stage.tools, careful(stage, parallel_safe=True))
    async with opened(*tools, policy=ASKING, approver=approver, max_parallel=size) as runner:
        batch = runner.start_batch([ToolCall("careful", {"name": "first"}, call_id="first"), *map(step, names)])
        await approver.was_asked.wait()
        await quiet()
        assert [line for line in stage.log if line[0] == "-"] == [f"-{name}" for name in names]
        assert batch.decide(approver.asked[0].approval_id, Decision.allow())
        assert ids(await batch) == ["first", *names]
    assert stage.entered == [*names, "first"]


async def test_an_abort_while_a_question_is_pending_closes_it_and_a_late_answer_starts_nothing() -> None:
    stage, approver, controller = Stage(), Elsewhere(), AbortController()
    async with opened(stage.tools, careful(stage), policy=ASKING, approver=approver) as runner:
        batch = runner.start_batch([ToolCall("careful", {"name": "a"}), step("b")], signal=controller.signal)
        await approver.was_asked.wait()
        await stage.started("b")
        controller.abort()
        a, b = await batch
        assert batch.decide(approver.asked[0].approval_id, Decision.allow()) is False
        assert runner.pending_approvals == ()
    assert stage.entered == ["b"]
    assert_never_entered(a)
    assert b.started


@pytest.mark.case("E8")
@pytest.mark.parametrize("change", ["replaced", "taken out", "taken out and put back"])
async def test_a_tool_that_changed_after_its_approval_does_not_run(change: str) -> None:
    stage, approver = Stage(), Elsewhere()
    old, new = careful(stage), careful(stage, description="another one")
    async with opened(policy=ASKING, approver=approver) as runner:
        take_out = runner.register(old)
        batch = runner.start_batch([ToolCall("careful", {"name": "a"})])
        await approver.was_asked.wait()
        match change:
            case "replaced":
                runner.replace(new)
            case "taken out":
                take_out()
            case _:
                take_out()
                runner.register(old)
        assert batch.decide(approver.asked[0].approval_id, Decision.allow())
        (result,) = await batch
    assert stage.entered == []
    assert (result.outcome, result.code, result.started, result.ended) == ("rejected", "TOOL_CHANGED", False, None)
    assert (result.effects.state, result.effects.evidence, result.retry) == ("none", "not_started", "fix_first")
    assert text(result).startswith("The tool was replaced after it was approved")
    assert text(result).endswith(" It was not started, so it had no effects.")


@pytest.mark.case("E9")
@pytest.mark.parametrize("change", ["gone", "another folder", "a file"])
async def test_a_working_directory_that_vanished_after_the_approval_lets_nothing_run(change: str, tmp_path: Path) -> None:
    approver = Elsewhere()
    folder, proof = tmp_path / "work", tmp_path / "proof"
    folder.mkdir()

    @command_tool
    def there(line: str) -> Command:
        return Command(("/bin/sh", "-c", line), cwd=folder)

    async with opened(there, policy=ASKING, approver=approver) as runner:
        batch = runner.start_batch([ToolCall("there", {"line": f"touch {proof}"})])
        await approver.was_asked.wait()
        folder.rename(tmp_path / "moved")
        if change == "another folder":
            folder.mkdir()
        elif change == "a file":
            folder.touch()
        assert batch.decide(approver.asked[0].approval_id, Decision.allow())
        (result,) = await batch
    assert not proof.exists()
    assert (result.outcome, result.code, result.started, result.process) == ("rejected", "ENVIRONMENT_GONE", False, None)
    assert (result.effects.state, result.effects.evidence) == ("none", "not_started")
    assert result.error is not None
    assert str(folder) in result.error.message
    assert "It was not started, so it had no effects." in text(result)


@pytest.mark.case("E10")
@pytest.mark.virtual_time
async def test_an_approval_that_takes_too_long_is_denied_in_words_of_its_own() -> None:
    stage, approver = Stage(), Elsewhere()
    async with opened(careful(stage), policy=ASKING, approver=approver, approval_timeout=0.05) as runner:
        (result,) = await runner.run_batch([ToolCall("careful", {"name": "a"})])
        assert runner.decide(approver.asked[0].approval_id, Decision.allow()) is False
        await quiet()
    assert stage.entered == []
    assert (result.outcome, result.code, result.started, result.retry) == ("denied", "DENIED", False, "no")
    assert result.error is not None
    assert (result.error.kind, result.error.message) == (
        "approval_timeout",
        "Nobody answered within 0.05 s, so the call was denied.",
    )
    assert "Nobody answered within 0.05 s" in text(result)
    assert result.stop is None


async def test_an_approver_that_stops_denies_its_call_and_aborts_the_batch() -> None:
    stage, approver = Stage(), Elsewhere()
    async with opened(stage.tools, careful(stage, parallel_safe=True), policy=ASKING, approver=approver) as runner:
        batch = runner.start_batch([step("a"), ToolCall("careful", {"name": "b"}), step("c")])
        await approver.was_asked.wait()
        await stage.started("a", "c")
        assert batch.decide(approver.asked[0].approval_id, Decision.stop("stop all this"))
        a, b, c = results = await batch
    assert (a.outcome, a.ended, c.outcome, c.ended) == ("aborted", "stopped", "aborted", "stopped")
    assert (b.outcome, b.code) == ("denied", "DENIED")
    assert "stop all this" in text(b)
    assert results.stopped is not None
    assert results.stopped.source == "approver"


async def test_one_question_at_a_time_is_put_to_an_approver_that_is_not_concurrent() -> None:
    stage, asked, gates = Stage(), list[str](), {"a": anyio.Event(), "b": anyio.Event()}

    class OneAtATime:
        async def decide(self, request: ApprovalRequest, signal: AbortSignal) -> Decision:
            name = str(request.call_id)
            asked.append(name)
            await gates[name].wait()
            return Decision.allow()

    stage.end("a", "b")
    async with opened(careful(stage, parallel_safe=True), policy=ASKING, approver=OneAtATime()) as runner:
        batch = runner.start_batch([ToolCall("careful", {"name": name}, call_id=name) for name in "ab"])
        await quiet()
        assert asked == ["a"]
        gates["a"].set()
        await stage.started("a")
        await quiet()
        assert asked == ["a", "b"]
        gates["b"].set()
        assert ids(await batch) == ["a", "b"]


async def test_pending_approvals_are_each_batchs_own_and_the_runners_all() -> None:
    stage, approver = Stage(), Elsewhere()
    stage.end("a", "b")
    async with opened(careful(stage), policy=ASKING, approver=approver) as runner:
        one = runner.start_batch([ToolCall("careful", {"name": "a"}, call_id="a")])
        two = runner.start_batch([ToolCall("careful", {"name": "b"}, call_id="b")])
        await quiet()
        assert [request.call_id for request in one.pending_approvals] == ["a"]
        assert [request.call_id for request in two.pending_approvals] == ["b"]
        assert {request.call_id for request in runner.pending_approvals} == {"a", "b"}
        for request in runner.pending_approvals:
            assert runner.decide(request.approval_id, Decision.allow())
        await one
        await two
        assert runner.pending_approvals == ()


async def test_closing_the_runner_closes_its_questions() -> None:
    stage, approver = Stage(), Elsewhere()
    runner = Runner([careful(stage)], policy=ASKING, approver=approver)
    with anyio.fail_after(60):
        await runner.__aenter__()
        batch = runner.start_batch([ToolCall("careful", {"name": "a"})])
        await approver.was_asked.wait()
        await runner.aclose()
        (result,) = await batch
    assert_never_entered(result)
    assert result.stop is not None
    assert result.stop.source == "shutdown"
    assert runner.decide(approver.asked[0].approval_id, Decision.allow()) is False
