"""What a model and people read: nothing beyond the evidence, in sentences that read well, within the bound."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from results.legal import AROUND, AT, DONE, MINE, STOP, every_legal_result, result, results, said

from toolrunner.facts import Containment, Effects, EffectState, Evidence, Note, NoteKind, Process, Source, Stop, StopPhase, Text
from toolrunner.results import Code, Ended, Error, Outcome, ToolResult

LEGAL = tuple(every_legal_result())
UNSTARTED = re.compile(r"not started|before it started|before the call started|not run\b|without being run|nothing was changed")
FINISHED = "finished before it could be stopped"
CLAIMS = re.compile(r"change was made|changes were made|Known to be done|; changed (?!nothing)")
WHOLE = re.compile(r"change was made|changes were made")
PROVEN = (Evidence.REPORTED, Evidence.OBSERVED)
ENUM_WORDS = [str(word) for kind in (Code, Source, StopPhase) for word in kind if "_" in word]
CLUMSY = re.compile(r"\.\.|  |\.;|;;|,,|::|: ?\.|\(\)|\bNone\b|<[A-Z]|[A-Z]\w+\.[A-Z_]{3,}|^\s|\s$| [.,;]")


def told(one: ToolResult) -> Iterator[tuple[str, bool]]:
    yield said(one), False
    yield one.summary(), True


def untrue_words(one: ToolResult) -> Iterator[str]:
    """What a text says of how far this call got that is not so."""
    returned_then_stopped = one.outcome in (Outcome.ABORTED, Outcome.TIMED_OUT) and one.ended is Ended.RETURNED
    for text, for_people in told(one):
        if UNSTARTED.search(text) and one.started:
            yield "says that a started call was not"
        if not one.started and not for_people and one.outcome is not Outcome.SUCCEEDED and "was not started" not in text:
            yield "does not say that the call was not started"
        if (FINISHED in text) != returned_then_stopped:
            yield "is wrong on whether it finished before it could be stopped"
        if "completed" in text or ("succeeded" in text and one.outcome is not Outcome.SUCCEEDED):
            yield "calls a stopped or failed call completed"
        if bool(one.still_running) != ("till running: " in text):
            yield "is wrong on what still runs"
        if one.still_running is None and "nothing left running" in text:
            yield "claims a proof that nothing is left"


def untrue_effects(one: ToolResult) -> Iterator[str]:
    """What a text says of this call's effects that is not known."""
    effects = one.effects
    mine = MINE in (effects.changes or ())
    for text, _ in told(one):
        own = text.replace(f"wrapper:audit changed {AROUND.target}", "")
        if AROUND.target in own:
            yield "calls a wrapper's change the tool's"
        if CLAIMS.search(own) and not mine and DONE not in effects.records:
            yield "claims a change that nothing proves"
        if WHOLE.search(own) and effects.evidence not in PROVEN:
            yield "claims a change without evidence"
        if effects.state is EffectState.UNKNOWN and (WHOLE.search(own) or "no effects" in own or "changed nothing" in own):
            yield "knows what nobody knows"
        if "no effects" in text and effects.evidence not in (Evidence.NOT_STARTED, Evidence.OBSERVED):
            yield "excludes effects on a mere word"
        if MINE.path in text and not mine:
            yield "names a file that is not listed"


@pytest.mark.parametrize("outcome", Outcome)
def test_no_text_claims_more_than_is_known(outcome: Outcome) -> None:
    for one in LEGAL:
        if one.outcome is outcome:
            assert [*untrue_words(one), *untrue_effects(one)] == [], (said(one), one.summary(), one)


@pytest.mark.parametrize("outcome", Outcome)
def test_texts_read_like_sentences(outcome: Outcome) -> None:
    for one in LEGAL:
        if one.outcome is outcome:
            for text, for_people in told(one):
                assert not CLUMSY.search(text), text
                assert not any(word in text for word in ENUM_WORDS), text
                if text:
                    assert text.endswith("."), text
                    assert for_people or text[0].isupper(), text
                    assert "\n" not in text


@pytest.mark.parametrize("source, asker", [
    (Source.CALLER, "the caller"), (Source.HOOK, "a hook"), (Source.SHUTDOWN, "the closing of the runner"),
    (Source.HOST, "the host"),
    (Source.PARENT, "the call that made it"), (Source.APPROVER, "the approver"), (Source.COST, "the cost limit"),
    (Source.PEER_DISCONNECTED, "the loss of the connection"), ("wrapper:budget", "the wrapper budget"),
])  # fmt: skip
def test_who_asked_for_a_stop_is_told_in_words(source: str, asker: str) -> None:
    stop = Stop(source, "enough, thanks.\n", StopPhase.RUNNING, AT)
    one = result(outcome=Outcome.ABORTED, code=Code.ABORTED, ended=Ended.STOPPED, stop=stop)
    assert f" The stop came from {asker} (enough, thanks)." in said(one)
    assert f"; asked by {asker} (enough, thanks);" in one.summary()
    silent = replace(one, stop=replace(stop, reason=""))
    assert f" The stop came from {asker}. " in said(silent)


def test_a_limit_that_ran_out_says_which() -> None:
    stop = Stop(Source.TIMEOUT, "the time limit of 3 s is over", StopPhase.RUNNING, AT)
    one = result(outcome=Outcome.TIMED_OUT, code=Code.TIMED_OUT, ended=Ended.STOPPED, stop=stop)
    assert said(one).startswith("The call ran over its time limit and was stopped. The time limit of 3 s is over. It may have")
    assert one.summary() == "write ran over its time limit and was stopped; the time limit of 3 s is over; effects unknown."


@pytest.mark.case("E4")
def test_a_call_that_failed_by_itself_after_a_stop_says_both() -> None:
    one = result(outcome=Outcome.FAILED, code=Code.TOOL_ERROR, ended=Ended.RAISED, error=Error("x", "disk full"), stop=STOP)
    assert said(one) == (
        "The call failed: disk full. It had also been asked to stop, by the caller (user pressed stop). "
        "It may have taken effect; check before you repeat it."
    )
    assert (
        one.summary()
        == "write failed; disk full; it had also been asked to stop by the caller (user pressed stop); effects unknown."
    )


@pytest.mark.parametrize("message", ["disk full", "disk full.", " disk full ", "disk full!", "disk\nfull"])
def test_an_error_ends_with_one_mark(message: str) -> None:
    one = result(outcome=Outcome.REJECTED, code=Code.INVALID_ARGUMENTS, started=False, error=Error("x", message))
    mark = "!" if "!" in message else "."
    assert (
        said(one)
        == f"The arguments are not valid: {message.strip().rstrip('.!')}{mark} It was not started, so it had no effects."
    )
    assert "\n" not in one.summary()
    assert not CLUMSY.search(one.summary())


def test_a_long_error_does_not_flood_the_line_for_people() -> None:
    one = result(outcome=Outcome.FAILED, code=Code.TOOL_ERROR, ended=Ended.RAISED, error=Error("x", "e" * 100_000))
    assert len(one.summary()) < 500
    assert "e" * 100_000 in said(one)


@pytest.mark.parametrize(
    "outcome, code", [(Outcome.FAILED, Code.KEEPER_LOST), (Outcome.ABORTED, Code.ABORTED), (Outcome.TIMED_OUT, Code.TIMED_OUT)]
)
@pytest.mark.parametrize("known", ["SIGKILL", None])
def test_a_lost_call_whose_exit_is_known_is_not_said_to_have_an_unknown_one(
    outcome: Outcome, code: Code, known: str | None
) -> None:
    lost = ToolResult(
        run_id="r",
        name="shell",
        outcome=outcome,
        code=code,
        started=True,
        ended=Ended.LOST,
        effects=Effects(EffectState.UNKNOWN),
        process=Process(pid=1, containment=Containment.KEEPER, signal=known),
        still_running=(),
    )
    for text in (lost.summary(), said(lost)):
        assert ("is not known" in text) == (known is None), text
        assert ("SIGKILL" in text) == (known is not None), text
    assert lost.summary().endswith("; nothing left running.")


def test_an_exit_status_is_told_once() -> None:
    error = Error("exit_status", "exit status 3")
    process = Process(1, Containment.KEEPER, exit_code=3)
    one = result(outcome=Outcome.FAILED, code=Code.EXIT_STATUS, ended=Ended.RETURNED, error=error, process=process)
    assert (
        said(one)
        == "The command failed by its exit status. Exit status: 3. It may have taken effect; check before you repeat it."
    )
    assert one.summary() == "write failed; exit status 3; effects unknown; nothing left running."


def test_a_status_of_zero_that_means_failure_is_not_called_non_zero() -> None:
    process = Process(1, Containment.KEEPER, exit_code=0)
    one = result(
        outcome=Outcome.FAILED,
        code=Code.EXIT_STATUS,
        ended=Ended.RETURNED,
        error=Error("exit_status", "exit status 0"),
        process=process,
    )
    assert "Exit status: 0." in said(one)
    assert "non-zero" not in said(one)


def test_what_a_hook_put_in_place_of_the_answer_is_not_said_twice() -> None:
    one = result(
        outcome=Outcome.FAILED,
        code=Code.HOOK_ERROR,
        ended=Ended.RETURNED,
        error=Error("hook", "secret"),
        content=(Text("secret"),),
    )
    assert said(one).count("secret") == 1


def test_notes_are_told_and_lost_hooks_are_not_the_models_business() -> None:
    one = result(notes=(Note(NoteKind.JOURNAL_ERROR, "disk full"), Note(NoteKind.HOOKS_LOST, "post hooks")))
    assert said(one) == "disk full."


@given(one=results())
def test_any_result_has_a_line_for_people_and_a_text_for_models(one: ToolResult) -> None:
    assert one.summary()
    assert len(one.summary().splitlines()) == 1
    status = one.content_for_model()[len(one.content) :]
    assert len(status) <= 1
    assert one.content_for_model()[: len(one.content)] == one.content
