"""What is read of a call's effects: its own, those of wrappers, those of others, and those found out about later."""

from dataclasses import replace

import pytest
from results.legal import AROUND, BEGUN, DONE, MINE, SHARED, STOP, result, said

from toolrunner.facts import Effects, EffectStage, EffectState, Evidence, Note, NoteKind, Text
from toolrunner.results import Code, Ended, Outcome, effects_text


def test_effects_of_a_wrapper_are_not_the_tools() -> None:
    effects = Effects(EffectState.COMPLETED, Evidence.REPORTED, (DONE, AROUND))
    one = result(outcome=Outcome.ABORTED, code=Code.ABORTED, ended=Ended.RETURNED, effects=effects, stop=STOP)
    assert "Its change was made: done.txt. Apart from the tool, wrapper:audit changed audit.log." in said(one)
    assert "changed done.txt; wrapper:audit changed audit.log" in one.summary()


def test_effects_of_a_wrapper_of_a_call_that_never_started_are_told() -> None:
    effects = Effects(EffectState.NONE, Evidence.NOT_STARTED, (AROUND, replace(BEGUN, owner="hook:log")))
    one = result(outcome=Outcome.DENIED, code=Code.DENIED, started=False, effects=effects)
    assert said(one) == (
        "The call was not allowed. It was not started, so it had no effects. "
        "Apart from the tool, wrapper:audit changed audit.log. Apart from the tool, hook:log may have changed begun.txt."
    )
    assert "nothing was changed" not in one.summary()
    assert (
        "the call itself changed nothing; wrapper:audit changed audit.log; hook:log may have changed begun.txt" in one.summary()
    )


def test_a_change_that_others_may_have_made_is_not_the_calls() -> None:
    effects = Effects(EffectState.NONE, Evidence.DECLARED, changes=(SHARED,))
    assert effects_text(effects) == "The tool is declared to change nothing."
    assert result(effects=effects).summary() == "write succeeded; declared to change nothing."
    unknown = effects_text(Effects(EffectState.UNKNOWN, None, (DONE, BEGUN), (MINE, SHARED)))
    assert unknown == (
        "It may have taken effect; check before you repeat it. Known to be done: done.txt, /w/mine.txt (created). "
        "Not known whether done: begun.txt. Changed meanwhile, by this call or by others: /w/shared.txt (modified)."
    )


def test_a_file_that_a_record_names_is_named_once() -> None:
    effects = Effects(EffectState.COMPLETED, Evidence.REPORTED, (replace(DONE, target=MINE.path),), (MINE,))
    assert effects_text(effects) == "Its change was made: /w/mine.txt."


@pytest.mark.parametrize("effects", [
    Effects(EffectState.UNKNOWN, None, (replace(BEGUN, target="a\nIt had no effects.\n"),)),
    Effects(EffectState.UNKNOWN, Evidence.OBSERVED, (), (replace(MINE, path="a\nIt had no effects.\n"),)),
    Effects(EffectState.UNKNOWN, None, (), (), detail="no change seen in a\nIt had no effects.\n"),
])  # fmt: skip
def test_a_name_cannot_look_like_a_sentence_of_ours(effects: Effects) -> None:
    one = result(
        outcome=Outcome.ABORTED, code=Code.ABORTED, ended=Ended.STOPPED, stop=replace(STOP, reason="x\ny"), effects=effects
    )
    assert "\n" not in said(one)
    assert "\n" not in one.summary()


def test_many_names_are_counted() -> None:
    effects = Effects(EffectState.COMPLETED, Evidence.REPORTED, tuple(replace(DONE, target=f"f{n}") for n in range(8)))
    assert effects_text(effects) == "Its change was made: f0, f1, f2, f3, f4 and 3 more."


def test_a_replayed_result_says_so() -> None:
    one = result(replayed=True, about_run_id="run-0", content=(Text("hello"),))
    assert said(one) == "hello This is the recorded result of the earlier call run-0; nothing was run again."
    assert one.summary().startswith("write succeeded (recorded result of run-0); ")


def test_a_replayed_result_whose_doubt_was_cleared_up_asks_nobody_to_check_again() -> None:
    doubt = Effects(EffectState.UNKNOWN, None, (replace(DONE, stage=EffectStage.UNKNOWN),))
    found = Note(NoteKind.RECONCILED, "It did take effect.")
    one = result(
        outcome=Outcome.ABORTED, code=Code.ABORTED, ended=Ended.STOPPED, effects=doubt, replayed=True, about_run_id="run-0",
        notes=(found,),
    )  # fmt: skip
    assert "check before" in said(replace(one, notes=()))
    assert "check before" not in said(one)
    assert said(one).endswith("nothing was run again. It did take effect.")
    assert "found since to have taken effect" in one.summary()
    assert "found since" not in replace(one, notes=()).summary()
