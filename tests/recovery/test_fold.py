"""The fold of a journal that ends anywhere: one legal result for each call, and no claim that the rest of the run refutes."""

from dataclasses import replace
from typing import Any

import pytest
from recovery.runs import World, played, played_at_random

from toolrunner.facts import EffectRecord, EffectStage, EffectState, Evidence, NoteKind
from toolrunner.memory import MemoryJournal
from toolrunner.records import (
    CallDispatched,
    CallEnded,
    CallRecorded,
    CallSettled,
    EffectApplied,
    EffectPlanned,
    EffectUndone,
    EffectUnknown,
    JobEnded,
    JobStarted,
    Record,
)
from toolrunner.recovery import plan, read_stories
from toolrunner.results import Code, Ended, Outcome, ToolResult, result_from_json, result_to_json

pytestmark = pytest.mark.anyio


def fold(records: list[Record]) -> dict[str, ToolResult]:
    """The results of all calls, those that were there and those that recovery adds."""
    stories = read_stories(records)
    there = {run_id: story.settled.result for run_id, story in stories.by_run.items() if story.settled is not None}
    return there | {result.run_id: result for result in plan(stories).results}


def check(cut: list[Record], world: World) -> None:
    """Every call of `cut` has one result, and it says nothing that became untrue afterwards."""
    found = fold(cut)
    assert set(found) == {record.run_id for record in cut}
    dispatched = {record.run_id for record in cut if isinstance(record, CallDispatched)}
    for run_id, result in found.items():
        real = world.results[run_id]
        assert result_from_json(result_to_json(result)) == result
        assert result.call_id == real.call_id
        if not result.started:
            # The proof: nothing of this call had been entered when the last record was written.
            assert run_id not in dispatched or not real.started
            continue
        if result.replayed:
            assert result == real
            continue
        made = [target for owner, target in world.made if owner == run_id]
        applied = [one.target for one in result.effects.records if one.stage is EffectStage.APPLIED]
        children = [one.target for one in real.effects.records if one.owner]
        assert set(applied) <= {*made, *children}
        if result.effects.state is EffectState.NONE:
            assert made == []
        if result.outcome is Outcome.SUCCEEDED:
            assert run_id in world.over
    check_ends(cut, found)


def check_ends(cut: list[Record], found: dict[str, ToolResult]) -> None:
    """An end that is written stands; one that is not is LOST."""
    for run_id, result in found.items():
        own = [record for record in cut if record.run_id == run_id]
        if isinstance(own[-1], CallSettled):
            assert result == own[-1].result
            continue
        assert Outcome.SUCCEEDED is not result.outcome or result.code is Code.HOOKS_LOST
        last = next((one for one in reversed(own) if isinstance(one, CallDispatched | CallEnded)), None)
        if isinstance(last, CallDispatched):
            assert (result.code, result.ended) == (Code.LOST, Ended.LOST)
            assert result.effects.state in (EffectState.UNKNOWN, EffectState.PARTIAL)
        elif isinstance(last, CallEnded):
            assert result.ended is last.ended
            assert result.value == last.value
            assert NoteKind.HOOKS_LOST in [note.kind for note in result.notes]
        else:
            assert not result.started


@pytest.mark.case("R5")
async def test_a_run_cut_at_any_record_is_told_truthfully() -> None:
    world = await played()
    assert len(world.records) > 40
    for at in range(len(world.records) + 1):
        check(world.records[:at], world)


@pytest.mark.parametrize("seed", range(12))
async def test_any_run_aborted_anywhere_and_cut_anywhere_is_told_truthfully(seed: int) -> None:
    world = await played_at_random(seed)
    for at in range(len(world.records) + 1):
        check(world.records[:at], world)


@pytest.mark.case("R8")
async def test_recovering_twice_or_only_half_gives_the_same_records() -> None:
    world = await played()
    for at in range(len(world.records) + 1):
        cut = world.records[:at]
        added = list(plan(read_stories(cut)).records)
        assert added == list(plan(read_stories(cut)).records)
        assert plan(read_stories([*cut, *added])).records == ()
        for half in range(len(added)):
            again = list(plan(read_stories([*cut, *added[:half]])).records)
            assert again == added[half:]


@pytest.mark.case("R1")
async def test_a_journal_that_is_whole_or_empty_gets_nothing() -> None:
    world = await played()
    assert plan(read_stories(world.records)).records == ()
    assert plan(read_stories([])).records == ()


@pytest.mark.case("R7")
async def test_calls_are_closed_in_the_order_in_which_they_were_made_children_first() -> None:
    world = await played()
    cut = [record for record in world.records if record.type != "call/settled"]
    order = [record.run_id for record in plan(read_stories(cut)).records]
    made = [record for record in cut if isinstance(record, CallRecorded)]
    assert [one for one in order if one in {r.run_id for r in made if r.parent_run_id is None}] == [
        record.run_id for record in made if record.parent_run_id is None
    ]
    for record in made:
        if record.parent_run_id is not None:
            assert order.index(record.run_id) < order.index(record.parent_run_id)


def numbered(*records: Any) -> list[Record]:
    journal = MemoryJournal()
    journal.append(*records)
    return list(journal)


def call(run_id: str = "r", **more: Any) -> CallRecorded:
    return CallRecorded(run_id=run_id, name="t", arguments={}, **more)


def sent(run_id: str = "r", attempt: int = 1) -> CallDispatched:
    return CallDispatched(run_id=run_id, name="t", arguments={}, attempt=attempt)


def ended_of(world: World, call_id: str) -> CallEnded:
    return next(
        record
        for record in world.records
        if isinstance(record, CallEnded) and record.result is not None and record.result.call_id == call_id
    )


async def test_the_second_attempt_is_lost_although_the_first_one_ended() -> None:
    world = await played()
    first = replace(ended_of(world, "f"), run_id="r")
    [result] = plan(read_stories(numbered(call(), sent(), first, sent(attempt=2)))).results
    assert (result.code, result.attempts, result.started) == (Code.LOST, 2, True)


async def test_an_undo_after_the_end_is_believed_only_as_far_as_it_was_confirmed() -> None:
    world = await played()
    ended = ended_of(world, "a")
    assert ended.result is not None
    [effect] = ended.result.effects.records
    stopped = replace(
        ended,
        outcome=Outcome.ABORTED,
        code=Code.ABORTED,
        result=replace(ended.result, outcome=Outcome.ABORTED, code=Code.ABORTED),
    )
    before = [call(ended.run_id), sent(ended.run_id), EffectPlanned(run_id=ended.run_id, effect=effect), stopped]
    undone = EffectUndone(run_id=ended.run_id, effect=replace(effect, stage=EffectStage.UNDONE))
    [cut] = plan(read_stories(numbered(*before))).results
    assert cut.effects == stopped.result.effects  # type: ignore[union-attr]
    [whole] = plan(read_stories(numbered(*before, undone))).results
    assert whole.effects.state is EffectState.REVERTED


async def test_a_childs_effect_is_undone_by_its_parent_and_the_last_word_counts() -> None:
    world = await played()
    ended = ended_of(world, "d")
    assert ended.result is not None
    [applied] = ended.result.effects.records
    stopped = replace(
        ended,
        result=replace(ended.result, outcome=Outcome.ABORTED, code=Code.ABORTED),
        outcome=Outcome.ABORTED,
        code=Code.ABORTED,
    )
    assert applied.owner is not None
    run_id, child = ended.run_id, applied.owner
    before: list[Any] = [
        call(run_id), sent(run_id), call(child, parent_run_id=run_id), sent(child),
        EffectApplied(run_id=child, effect=replace(applied, owner=None)),
        CallSettled(run_id=child, result=world.results[child]), stopped,
    ]  # fmt: skip
    begun = EffectUnknown(run_id=run_id, effect=replace(applied, stage=EffectStage.UNKNOWN))
    undone = EffectUndone(run_id=run_id, effect=replace(applied, stage=EffectStage.UNDONE))
    states = [
        plan(read_stories(numbered(*records))).results[-1].effects.state
        for records in (before, [*before, begun], [*before, begun, undone])
    ]
    assert states == [EffectState.COMPLETED, EffectState.UNKNOWN, EffectState.REVERTED]


@pytest.mark.case("R8")
def test_records_that_belong_to_nothing_are_no_call_and_do_no_harm() -> None:
    [planned] = numbered(EffectPlanned(run_id="stray", effect=effect("e")))
    assert plan(read_stories([planned])).records == ()
    [result] = plan(read_stories(numbered(sent("s")))).results
    assert (result.name, result.code) == ("t", Code.LOST)


def effect(target: str, stage: EffectStage = EffectStage.PLANNED) -> EffectRecord:
    return EffectRecord(f"r/{target}", "write", target, stage)


def test_what_a_lost_body_is_known_to_have_done_is_partial_and_what_it_planned_is_in_doubt() -> None:
    applied = EffectApplied(run_id="r", effect=effect("e", EffectStage.APPLIED))
    [done] = plan(read_stories(numbered(call(), sent(), EffectPlanned(run_id="r", effect=effect("e")), applied))).results
    assert (done.effects.state, done.effects.evidence) == (EffectState.PARTIAL, Evidence.REPORTED)
    [planned] = plan(read_stories(numbered(call(), sent(), EffectPlanned(run_id="r", effect=effect("e"))))).results
    assert planned.effects.state is EffectState.UNKNOWN
    [nothing] = plan(read_stories(numbered(call(), sent()))).results
    assert (nothing.effects.state, nothing.effects.evidence) == (EffectState.UNKNOWN, None)


def test_nothing_is_said_to_be_undone_of_a_body_whose_end_nobody_saw() -> None:
    undone = EffectUndone(run_id="r", effect=effect("e", EffectStage.UNDONE))
    [result] = plan(read_stories(numbered(call(), sent(), EffectPlanned(run_id="r", effect=effect("e")), undone))).results
    assert result.effects.state is EffectState.UNKNOWN


def test_a_lost_parent_is_in_doubt_by_its_child() -> None:
    child = [call("c", parent_run_id="r"), sent("c")]
    results = {one.run_id: one for one in plan(read_stories(numbered(call(), sent(), *child))).results}
    assert results["c"].parent_run_id == "r"
    assert [one.owner for one in results["r"].effects.records] == ["c"]
    assert results["r"].effects.state is EffectState.UNKNOWN


def test_a_job_that_nobody_saw_end_is_lost_once() -> None:
    started = JobStarted(run_id="j", job_id="j", name="server")
    records = numbered(started)
    [lost] = plan(read_stories(records)).records
    assert isinstance(lost, JobEnded)
    assert (lost.state, lost.still_running) == ("lost", None)
    assert plan(read_stories([*records, lost])).records == ()
