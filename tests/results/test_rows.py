"""Which results can be true: the table is what the design says, whole and nothing more, and no result is built outside it."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from results.legal import AROUND, DONE, EFFECTS, MINE, SHARED, combinations, result

from toolrunner.errors import ToolrunnerInternalError, UntrueResult
from toolrunner.facts import Effects, EffectStage, EffectState, Evidence, StillRunning, StillRunningKind
from toolrunner.results import ROWS, Code, Ended, Outcome, illegal
from toolrunner.results.rows import find_row

# Spelled out once more, as (outcome, code): how far it can have got. Never started is "-", started and still at work is "runs".
LEGAL = {
    ("succeeded", None): "returned -",
    ("succeeded", "HOOKS_LOST"): "returned",
    ("failed", "TOOL_ERROR"): "returned raised",
    ("failed", "INVALID_OUTPUT"): "returned",
    ("failed", "EXIT_STATUS"): "returned",
    ("failed", "KILLED_BY_SIGNAL"): "returned",
    ("failed", "LOST"): "lost",
    ("failed", "KEEPER_LOST"): "lost",
    ("failed", "HOOK_ERROR"): "returned raised stopped -",
    ("aborted", "ABORTED_BEFORE_DISPATCH"): "-",
    ("aborted", "ABORTED"): "returned stopped lost runs",
    ("timed_out", "ABORTED_BEFORE_DISPATCH"): "-",
    ("timed_out", "TIMED_OUT"): "returned stopped lost runs",
    ("denied", "DENIED"): "-",
    ("denied", "GRANT_EXPIRED"): "-",
    ("rejected", "UNKNOWN_TOOL"): "-",
    ("rejected", "INVALID_ARGUMENTS"): "-",
    ("rejected", "TOOL_CHANGED"): "-",
    ("rejected", "ENVIRONMENT_GONE"): "-",
    ("rejected", "SPAWN_REFUSED"): "-",
    ("rejected", "SANDBOX_UNAVAILABLE"): "-",
    ("rejected", "IN_DOUBT"): "-",
    ("rejected", "HOOK_ERROR"): "-",
}
EVERY = tuple(itertools.product(Outcome, (None, *Code), (True, False), (None, *Ended)))
NOTHING = Effects(EffectState.NONE, Evidence.NOT_STARTED)
UNKNOWN = Effects(EffectState.UNKNOWN)


def is_legal(outcome: Outcome, code: Code | None, started: bool, ended: Ended | None) -> bool:
    reached = str(ended) if ended is not None else "runs"
    if not started:
        reached = "-" if ended is None else "never"
    return reached in LEGAL.get((outcome, code), "").split()


@pytest.mark.parametrize("outcome", Outcome)
def test_the_table_is_whole_and_exact(outcome: Outcome) -> None:
    for one in EVERY:
        if one[0] is outcome:
            effects = UNKNOWN if one[2] else NOTHING
            assert (illegal(*one, effects) is None) == is_legal(*one), one
            assert (find_row(*one) is not None) == is_legal(*one), one


def test_no_combination_is_in_two_rows() -> None:
    assert len(list(combinations())) == len(set(combinations()))


def test_every_code_is_used() -> None:
    assert {code for row in ROWS for code in row.codes} == {None, *Code}


def effects_are_legal(  # noqa: PLR0911 - one answer per statement of the design
    started: bool, ended: Ended | None, code: Code | None, effects: Effects
) -> bool:
    """The design once more: a claim rests on a record of the tool's own, a change of the call's alone, or a clean return."""
    match effects.state, effects.evidence:
        case EffectState.NONE, Evidence.NOT_STARTED:
            return not started
        case EffectState.NONE, Evidence.DECLARED | Evidence.REPORTED | Evidence.OBSERVED:
            return started
        case EffectState.COMPLETED | EffectState.PARTIAL, Evidence.REPORTED:
            return started and any(one.stage is EffectStage.APPLIED and one.owner != AROUND.owner for one in effects.records)
        case EffectState.COMPLETED | EffectState.PARTIAL, Evidence.OBSERVED:
            return started and MINE in (effects.changes or ())
        case EffectState.COMPLETED, Evidence.ASSUMED:
            clean = code not in (Code.TOOL_ERROR, Code.EXIT_STATUS, Code.KILLED_BY_SIGNAL)
            return started and ended is Ended.RETURNED and clean
        case EffectState.UNKNOWN, None | Evidence.REPORTED | Evidence.OBSERVED:
            return started
        case EffectState.REVERTED, Evidence.REPORTED | Evidence.OBSERVED:
            return started
    return False


@pytest.mark.parametrize("row", sorted(set(combinations()), key=str), ids=lambda row: "-".join(str(word) for word in row))
def test_effects_fit_how_far_the_call_got(row: tuple[Outcome, Code | None, bool, Ended | None]) -> None:
    for effects in EFFECTS:
        assert (illegal(*row, effects) is None) == effects_are_legal(row[2], row[3], row[1], effects), effects


@given(one=st.sampled_from(EVERY), effects=st.sampled_from(EFFECTS))
def test_no_result_is_built_outside_the_table(one: tuple[Outcome, Code | None, bool, Ended | None], effects: Effects) -> None:
    outcome, code, started, ended = one
    left = (StillRunning("write", StillRunningKind.BODY),) if started and ended is None else ()
    facts = {"outcome": outcome, "code": code, "started": started, "ended": ended, "effects": effects, "still_running": left}
    if is_legal(*one) and effects_are_legal(started, ended, code, effects):
        assert result(**facts).outcome is outcome
    else:
        with pytest.raises(ToolrunnerInternalError, match="run-1 cannot be true"):
            result(**facts)


@pytest.mark.parametrize("left", [(), None])
def test_a_call_that_has_not_ended_lists_what_runs(left: tuple[StillRunning, ...] | None) -> None:
    with pytest.raises(UntrueResult, match="nothing is listed that still runs"):
        result(outcome=Outcome.ABORTED, code=Code.ABORTED, ended=None, still_running=left)


@pytest.mark.parametrize(
    "effects",
    [
        Effects(EffectState.COMPLETED, Evidence.REPORTED),
        Effects(EffectState.COMPLETED, Evidence.REPORTED, (AROUND,)),
        Effects(EffectState.PARTIAL, Evidence.OBSERVED, (DONE,), (SHARED,)),
    ],
)
def test_a_change_is_claimed_only_where_it_is_listed(effects: Effects) -> None:
    with pytest.raises(UntrueResult):
        result(effects=effects)
