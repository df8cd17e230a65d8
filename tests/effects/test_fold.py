"""What may be said of a call's effects, from what is known of it."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolrunner.effects import BodyFacts, Scan, fold
from toolrunner.facts import Attribution, Change, ChangeKind, EffectRecord, Effects, EffectStage, EffectState, Evidence
from toolrunner.results import Code, Ended, Outcome
from toolrunner.results.rows import ROWS, illegal

NONE, COMPLETED, PARTIAL = EffectState.NONE, EffectState.COMPLETED, EffectState.PARTIAL
UNKNOWN, REVERTED = EffectState.UNKNOWN, EffectState.REVERTED
PLANNED, APPLIED, DOUBTFUL = EffectStage.PLANNED, EffectStage.APPLIED, EffectStage.UNKNOWN
NOT_APPLIED, UNDONE = EffectStage.NOT_APPLIED, EffectStage.UNDONE

THROUGH = BodyFacts(started=True, returned=True, succeeded=True)
STOPPED = BodyFacts(started=True, saw_abort=True)
RAISED = BodyFacts(started=True)
SAW = replace(THROUGH, saw_abort=True)
FAILED = replace(THROUGH, succeeded=False)
NONZERO = replace(THROUGH, process_exit_zero=False)
READER = replace(THROUGH, read_only=True)

MINE = Scan((Change("/w/a", ChangeKind.CREATED, Attribution.EXCLUSIVE),), ("/w",))
SHARED = Scan((Change("/w/a", ChangeKind.CREATED, Attribution.SHARED),), ("/w",))
EMPTY = Scan((), ("/w",))


def records(*stages: EffectStage, owner: str | None = None) -> tuple[EffectRecord, ...]:
    return tuple(EffectRecord(f"r/{n}", "write", f"/w/{n}", stage, owner=owner) for n, stage in enumerate(stages))


@pytest.mark.parametrize(
    "body, stages, scan, state, evidence",
    [
        # Nothing recorded, nobody looked.
        (BodyFacts(started=False), (), None, NONE, Evidence.NOT_STARTED),
        (THROUGH, (), None, COMPLETED, Evidence.ASSUMED),
        (replace(THROUGH, process_exit_zero=True), (), None, COMPLETED, Evidence.ASSUMED),
        (NONZERO, (), None, UNKNOWN, None),
        (FAILED, (), None, UNKNOWN, None),
        (SAW, (), None, UNKNOWN, None),
        (STOPPED, (), None, UNKNOWN, None),
        (RAISED, (), None, UNKNOWN, None),
        (READER, (), None, NONE, Evidence.DECLARED),
        (replace(STOPPED, read_only=True), (), None, NONE, Evidence.DECLARED),
        # Recorded.
        (THROUGH, (APPLIED,), None, COMPLETED, Evidence.REPORTED),
        (FAILED, (APPLIED, APPLIED), None, COMPLETED, Evidence.REPORTED),
        (THROUGH, (APPLIED, NOT_APPLIED), None, PARTIAL, Evidence.REPORTED),
        (STOPPED, (APPLIED, NOT_APPLIED), None, PARTIAL, Evidence.REPORTED),
        (STOPPED, (APPLIED,), None, PARTIAL, Evidence.REPORTED),
        (SAW, (APPLIED,), None, PARTIAL, Evidence.REPORTED),
        (THROUGH, (APPLIED, DOUBTFUL), None, UNKNOWN, Evidence.REPORTED),
        (STOPPED, (PLANNED,), None, UNKNOWN, Evidence.REPORTED),
        (THROUGH, (NOT_APPLIED,), None, NONE, Evidence.REPORTED),
        (SAW, (NOT_APPLIED,), None, NONE, Evidence.REPORTED),
        (STOPPED, (NOT_APPLIED,), None, UNKNOWN, Evidence.REPORTED),
        (STOPPED, (UNDONE, NOT_APPLIED), None, REVERTED, Evidence.REPORTED),
        (STOPPED, (UNDONE, APPLIED), None, PARTIAL, Evidence.REPORTED),
        (STOPPED, (UNDONE, DOUBTFUL), None, UNKNOWN, Evidence.REPORTED),
        # A wrong declaration.
        (READER, (APPLIED,), None, COMPLETED, Evidence.REPORTED),
        (READER, (), MINE, COMPLETED, Evidence.OBSERVED),
        (replace(STOPPED, read_only=True), (), MINE, UNKNOWN, Evidence.OBSERVED),
        (READER, (), SHARED, NONE, Evidence.DECLARED),
        (READER, (), EMPTY, NONE, Evidence.DECLARED),
        # Observed.
        (THROUGH, (), MINE, COMPLETED, Evidence.OBSERVED),
        (SAW, (), MINE, UNKNOWN, Evidence.OBSERVED),
        (NONZERO, (), MINE, UNKNOWN, Evidence.OBSERVED),
        (STOPPED, (), MINE, UNKNOWN, Evidence.OBSERVED),
        (THROUGH, (), SHARED, COMPLETED, Evidence.ASSUMED),
        (STOPPED, (), SHARED, UNKNOWN, None),
        (THROUGH, (), EMPTY, UNKNOWN, None),
        (STOPPED, (), EMPTY, UNKNOWN, None),
        # Both.
        (THROUGH, (APPLIED,), MINE, COMPLETED, Evidence.REPORTED),
        (THROUGH, (APPLIED,), EMPTY, COMPLETED, Evidence.REPORTED),
        (THROUGH, (DOUBTFUL,), MINE, UNKNOWN, Evidence.OBSERVED),
        (THROUGH, (NOT_APPLIED,), MINE, UNKNOWN, Evidence.OBSERVED),
        (THROUGH, (NOT_APPLIED,), SHARED, NONE, Evidence.REPORTED),
        (STOPPED, (UNDONE,), MINE, UNKNOWN, Evidence.OBSERVED),
    ],
)
def test_the_state_is_what_the_inputs_bear(
    body: BodyFacts, stages: tuple[EffectStage, ...], scan: Scan | None, state: EffectState, evidence: Evidence | None
) -> None:
    effects = fold(body, records(*stages), scan)
    assert (effects.state, effects.evidence) == (state, evidence)
    assert effects.records == records(*stages)


@pytest.mark.case("E30")
@pytest.mark.parametrize(
    "stages, scan", list(itertools.product([(), (APPLIED,), (APPLIED, APPLIED)], [None, MINE, SHARED, EMPTY]))
)
def test_a_body_that_saw_the_abort_is_never_completed(stages: tuple[EffectStage, ...], scan: Scan | None) -> None:
    assert fold(SAW, records(*stages), scan).state is not COMPLETED


@pytest.mark.case("E2")
def test_an_effect_that_was_left_planned_is_unknown() -> None:
    assert fold(STOPPED, records(APPLIED, PLANNED)).state is UNKNOWN


def test_an_empty_scan_says_where_it_looked() -> None:
    assert fold(STOPPED, (), EMPTY).detail == "no change seen in /w"
    assert (
        fold(THROUGH, (), Scan((), ("/w", "/v"), complete=False)).detail
        == "no change seen in /w, /v, which could not be read completely"
    )
    assert fold(STOPPED, (), SHARED).detail == "changes were seen in /w, where others were writing too"
    assert fold(STOPPED, (), None).detail is None
    assert fold(STOPPED, (), MINE).detail is None


def test_changes_are_none_when_nobody_looked_and_empty_when_nothing_was_seen() -> None:
    assert fold(THROUGH, ()).changes is None
    assert fold(THROUGH, (), EMPTY).changes == ()
    assert fold(STOPPED, (), SHARED).changes == SHARED.changes


def test_an_undone_write_still_shows_by_its_times_and_is_reverted() -> None:
    record = EffectRecord("r/1", "write", "/w/a", UNDONE)
    assert fold(STOPPED, (record,), MINE).state is REVERTED
    assert fold(STOPPED, (replace(record, target="/w/b"),), MINE).state is UNKNOWN


@pytest.mark.parametrize("owner", ["hook:audit", "wrapper:cache"])
def test_what_stands_around_the_body_is_listed_and_changes_nothing(owner: str) -> None:
    around = records(APPLIED, DOUBTFUL, owner=owner)
    for body in (READER, THROUGH, STOPPED, BodyFacts(started=False)):
        bare = fold(body, ())
        assert fold(body, around) == replace(bare, records=around)


def test_the_records_of_a_child_call_count() -> None:
    assert fold(THROUGH, records(DOUBTFUL, owner="child-run")).state is UNKNOWN
    assert fold(READER, records(APPLIED, owner="child-run")).state is COMPLETED


# --- properties

bodies = st.builds(
    BodyFacts,
    started=st.just(True),
    read_only=st.booleans(),
    returned=st.booleans(),
    succeeded=st.booleans(),
    saw_abort=st.booleans(),
    process_exit_zero=st.sampled_from([None, True, False]),
)
stages = st.lists(st.sampled_from(EffectStage), max_size=4).map(tuple)
changes = st.lists(
    st.builds(
        Change,
        path=st.sampled_from(["/w/0", "/w/1", "/w/x"]),
        kind=st.sampled_from(ChangeKind),
        attribution=st.sampled_from(Attribution),
    ),
    max_size=3,
).map(tuple)
scans = st.none() | st.builds(Scan, changes=changes, where=st.just(("/w",)), complete=st.booleans())

# What each statement says of "something changed" and of "all of it was done": True, False, or nothing.
SAYS = {
    UNKNOWN: (None, None),
    PARTIAL: (True, None),
    COMPLETED: (True, True),
    NONE: (False, None),
    REVERTED: (False, None),
}


def claims_no_more(weak: Effects, strong: Effects) -> bool:
    return all(w is None or w == s for w, s in zip(SAYS[weak.state], SAYS[strong.state], strict=True))


def proven(scan: Scan | None) -> list[Change]:
    return [] if scan is None else [change for change in scan.changes if change.attribution is Attribution.EXCLUSIVE]


@given(bodies, stages, scans)
def test_it_never_claims_more_than_its_inputs(body: BodyFacts, found: tuple[EffectStage, ...], scan: Scan | None) -> None:
    own = records(*found)
    effects = fold(body, own, scan)
    if effects.evidence is Evidence.REPORTED:
        assert own
    if effects.evidence is Evidence.OBSERVED:
        assert proven(scan)
    if effects.state is PARTIAL:
        assert APPLIED in found
    if effects.state is COMPLETED:
        assert set(found) <= {APPLIED}
        assert body.returned
        assert not body.saw_abort
        assert found or (body.succeeded and body.process_exit_zero is not False)
    if effects.state is NONE:
        assert set(found) <= {NOT_APPLIED}
        assert not proven(scan)
        assert body.read_only or (found and body.returned)
    if effects.state is REVERTED:
        assert set(found) <= {NOT_APPLIED, UNDONE}
        assert UNDONE in found
    assert not effects.complete
    assert effects.changes == (None if scan is None else scan.changes)


@given(bodies, stages, scans, st.sampled_from(["returned", "succeeded", "saw_abort", "exit"]))
def test_a_doubt_about_the_body_only_weakens_it(
    body: BodyFacts, found: tuple[EffectStage, ...], scan: Scan | None, doubt: str
) -> None:
    doubts = {
        "returned": replace(body, returned=False),
        "succeeded": replace(body, succeeded=False),
        "saw_abort": replace(body, saw_abort=True),
        "exit": replace(body, process_exit_zero=False),
    }
    own = records(*found)
    assert claims_no_more(fold(doubts[doubt], own, scan), fold(body, own, scan))


@given(bodies, stages, scans, st.data())
def test_a_doubt_about_a_record_only_weakens_it(
    body: BodyFacts, found: tuple[EffectStage, ...], scan: Scan | None, data: st.DataObject
) -> None:
    assume(found)
    which = data.draw(st.integers(0, len(found) - 1))
    doubtful = list(found)
    doubtful[which] = data.draw(st.sampled_from([PLANNED, DOUBTFUL]))
    assert claims_no_more(fold(body, records(*doubtful), scan), fold(body, records(*found), scan))


@given(bodies, stages, scans)
def test_a_change_of_its_own_is_never_denied(body: BodyFacts, found: tuple[EffectStage, ...], scan: Scan | None) -> None:
    mine = Change("/w/seen", ChangeKind.MODIFIED, Attribution.EXCLUSIVE)
    base = scan or Scan((), ("/w",))
    effects = fold(body, records(*found), replace(base, changes=(*base.changes, mine)))
    assert effects.state not in (NONE, REVERTED)
    assert mine in (effects.changes or ())


SUCCEEDED_CODES = {None, Code.HOOKS_LOST, Code.INVALID_OUTPUT, Code.ABORTED, Code.TIMED_OUT, Code.HOOK_ERROR}
combinations = [
    (row.outcome, code, started, ended) for row in ROWS for code in row.codes for started in row.started for ended in row.ended
]


@given(st.sampled_from(combinations), bodies, stages, scans)
def test_every_legal_result_can_carry_its_effects(
    combination: tuple[Outcome, Code | None, bool, Ended | None],
    body: BodyFacts,
    found: tuple[EffectStage, ...],
    scan: Scan | None,
) -> None:
    outcome, code, started, ended = combination
    facts = replace(
        body, started=started, returned=ended is Ended.RETURNED, succeeded=code in SUCCEEDED_CODES and ended is Ended.RETURNED
    )
    effects = fold(facts, records(*found), scan)
    assert illegal(outcome, code, started, ended, effects) is None
