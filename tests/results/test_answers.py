"""May it be made again, is it an error, which files changed, what does a provider's shell answer need."""

import itertools

import pytest
from results.legal import EFFECTS, MINE, PROCESSES, SHARED, STOP, combinations, every_legal_result, result

from toolrunner.facts import Containment, Effects, EffectState, Evidence, Process, Text
from toolrunner.results import Code, Ended, Error, ErrorKind, Outcome, Retry, illegal, retry_answer

NONE, COMPLETED, PARTIAL = EffectState.NONE, EffectState.COMPLETED, EffectState.PARTIAL
UNKNOWN, REVERTED = EffectState.UNKNOWN, EffectState.REVERTED
NOTHING = Effects(NONE, Evidence.NOT_STARTED)


@pytest.mark.parametrize(
    "outcome, code, answer",
    [
        ("succeeded", None, "no"),
        ("failed", "HOOK_ERROR", "fix_first"),
        ("aborted", "ABORTED_BEFORE_DISPATCH", "safe"),
        ("timed_out", "ABORTED_BEFORE_DISPATCH", "safe"),
        ("denied", "DENIED", "no"),
        ("denied", "GRANT_EXPIRED", "safe"),
        ("rejected", "UNKNOWN_TOOL", "fix_first"),
        ("rejected", "INVALID_ARGUMENTS", "fix_first"),
        ("rejected", "TOOL_CHANGED", "fix_first"),
        ("rejected", "ENVIRONMENT_GONE", "fix_first"),
        ("rejected", "SPAWN_REFUSED", "fix_first"),
        ("rejected", "SANDBOX_UNAVAILABLE", "fix_first"),
        ("rejected", "IN_DOUBT", "check_first"),
        ("rejected", "HOOK_ERROR", "fix_first"),
    ],
)
def test_what_to_do_after_a_call_that_never_started(outcome: str, code: str | None, answer: str) -> None:
    one = Outcome(outcome), Code(code) if code else None
    assert retry_answer(*one, False, NOTHING, idempotent=False) == answer
    assert retry_answer(*one, False, NOTHING, idempotent=True) == answer


@pytest.mark.parametrize("kind", [ErrorKind.LIMIT, ErrorKind.HOOK_TIMEOUT])
def test_what_passes_by_itself_may_be_tried_again(kind: ErrorKind) -> None:
    assert retry_answer(Outcome.REJECTED, Code.SPAWN_REFUSED, False, NOTHING, idempotent=False, error_kind=kind) is Retry.SAFE


@pytest.mark.parametrize("code, answer", [(Code.DENIED, Retry.NO), (Code.IN_DOUBT, Retry.CHECK_FIRST)])
def test_no_kind_of_error_turns_a_denial_or_a_doubt_into_safe(code: Code, answer: Retry) -> None:
    outcome = Outcome.DENIED if code is Code.DENIED else Outcome.REJECTED
    assert retry_answer(outcome, code, False, NOTHING, idempotent=True, error_kind="limit") is answer


@pytest.mark.parametrize(
    "outcome, code, state, evidence, plain, idempotent",
    [
        ("succeeded", None, COMPLETED, Evidence.ASSUMED, "no", "no"),
        ("succeeded", None, UNKNOWN, None, "no", "no"),
        ("aborted", "ABORTED", NONE, Evidence.DECLARED, "safe", "safe"),
        ("aborted", "ABORTED", REVERTED, Evidence.REPORTED, "safe", "safe"),
        ("aborted", "ABORTED", UNKNOWN, None, "check_first", "safe"),
        ("aborted", "ABORTED", PARTIAL, Evidence.REPORTED, "check_first", "safe"),
        ("aborted", "ABORTED", COMPLETED, Evidence.REPORTED, "no", "safe"),
        ("aborted", "ABORTED", COMPLETED, Evidence.ASSUMED, "check_first", "safe"),
        ("timed_out", "TIMED_OUT", UNKNOWN, None, "check_first", "safe"),
        ("failed", "TOOL_ERROR", NONE, Evidence.REPORTED, "fix_first", "fix_first"),
        ("failed", "TOOL_ERROR", UNKNOWN, None, "check_first", "fix_first"),
        ("failed", "EXIT_STATUS", UNKNOWN, Evidence.OBSERVED, "check_first", "fix_first"),
        ("failed", "LOST", UNKNOWN, None, "check_first", "safe"),
        ("failed", "KEEPER_LOST", NONE, Evidence.DECLARED, "safe", "safe"),
    ],
)
def test_what_to_do_after_a_call_that_started(
    outcome: str, code: str | None, state: EffectState, evidence: Evidence | None, plain: str, idempotent: str
) -> None:
    one = Outcome(outcome), Code(code) if code else None
    effects = Effects(state, evidence)
    assert retry_answer(*one, True, effects, idempotent=False) == plain
    assert retry_answer(*one, True, effects, idempotent=True) == idempotent


def test_safe_needs_a_proof_or_a_promise() -> None:
    for row, effects in itertools.product(sorted(set(combinations()), key=str), EFFECTS):
        outcome, code, started, _ = row
        if illegal(*row, effects) is None and retry_answer(outcome, code, started, effects, idempotent=False) is Retry.SAFE:
            assert not started or effects.state in (NONE, REVERTED), (row, effects)


def test_what_is_an_error_for_a_model() -> None:
    for one in every_legal_result():
        returned_well = one.ended is Ended.RETURNED and one.error is None and one.outcome is not Outcome.FAILED
        assert one.is_error == (not (returned_well or one.outcome is Outcome.SUCCEEDED)), one


def test_a_finished_call_that_was_stopped_too_late_is_no_error_and_keeps_its_content() -> None:
    one = result(outcome=Outcome.ABORTED, code=Code.ABORTED, ended=Ended.RETURNED, stop=STOP, content=(Text("42"),))
    assert not one.is_error
    assert one.content_for_model()[0] == Text("42")


def test_a_hook_that_fails_makes_an_error_of_a_body_that_returned() -> None:
    assert result(outcome=Outcome.FAILED, code=Code.HOOK_ERROR, ended=Ended.RETURNED).is_error


@pytest.mark.parametrize("changes, files", [(None, None), ((), ()), ((MINE, SHARED), ("/w/mine.txt", "/w/shared.txt"))])
def test_which_files_changed(changes: tuple[object, ...] | None, files: tuple[str, ...] | None) -> None:
    assert result(effects=Effects(UNKNOWN, None, (), changes)).files_changed == files  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "process, status",
    [
        (None, None),
        (PROCESSES[1], 0),
        (PROCESSES[2], 3),
        (Process(1, Containment.KEEPER, signal="SIGKILL"), 137),
        (Process(1, Containment.KEEPER, signal="SIGTERM"), 143),
        (Process(1, Containment.KEEPER, signal="SIG35"), 163),
        (Process(1, Containment.KEEPER), None),
    ],
)
def test_a_shell_answer_has_the_status_that_a_shell_would_show(process: Process | None, status: int | None) -> None:
    one = result(outcome=Outcome.ABORTED, code=Code.ABORTED, ended=Ended.STOPPED, stop=STOP, process=process)
    assert one.to_wire().exit_code == status
    assert not one.to_wire().timed_out


def test_a_shell_answer_of_a_call_that_ran_out_of_time_says_so() -> None:
    one = result(
        outcome=Outcome.TIMED_OUT, code=Code.TIMED_OUT, ended=Ended.STOPPED, process=PROCESSES[3], kind="shell", call_id="c1"
    )
    assert one.to_wire().timed_out
    item = one.to_provider("openai_responses")
    assert item["output"][0]["outcome"] == {"type": "timeout"}
    failed = result(
        outcome=Outcome.FAILED, code=Code.EXIT_STATUS, ended=Ended.RETURNED, process=PROCESSES[2], kind="shell", call_id="c1",
        error=Error("exit_status", "exit status 3"),
    )  # fmt: skip
    assert failed.to_provider("openai_responses")["output"][0]["outcome"] == {"type": "exit", "exit_code": 3}


def test_the_answer_is_the_calls_own() -> None:
    one = result(call_id="c9", provider_meta={"id": "x"}, content=(Text("a" * 500),))
    wire = one.to_wire(200)
    assert (wire.call_id, wire.name, wire.kind, wire.provider_meta, wire.is_error) == (
        "c9",
        "write",
        "function",
        {"id": "x"},
        False,
    )
    assert wire.content == one.content_for_model(200)


def test_a_call_that_still_runs_is_not_made_again_beside_itself() -> None:
    unknown = Effects(EffectState.UNKNOWN)
    one = (Outcome.ABORTED, Code.ABORTED, True, unknown)
    assert retry_answer(*one, idempotent=True) is Retry.SAFE
    assert retry_answer(*one, idempotent=True, still_running=True) is Retry.CHECK_FIRST
