"""Approvals through the front door: only an answer that is a grant, for exactly this call, in time, starts a body."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pipeline.asking import ASK, WRITE, Approver, check_denied, entered, write
from pipeline.bench import SUCCEEDED, check_stopped_early, facts, only, open_runner, text
from stillness import all_blocked

from toolrunner import AbortController, AbortSignal, Decision, MemoryJournal, Policy, ToolCall, ask
from toolrunner.facts import Annotations
from toolrunner.policy import ApprovalRequest
from toolrunner.results import ErrorKind, Outcome
from toolrunner.testing import Gate

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def nothing_entered_yet() -> None:
    entered.clear()


@pytest.mark.case("A1")
async def test_a_call_that_needs_approval_is_denied_when_nobody_can_give_it() -> None:
    async with open_runner([write], policy=ASK) as runner:
        result = await runner.run(WRITE)
    check_denied(result, ErrorKind.APPROVER_UNAVAILABLE)
    assert result.error is not None
    assert "nobody can be asked" in result.error.message
    assert "write" in result.error.message  # the default names the tool


@pytest.mark.case("A1")
async def test_the_reason_for_asking_is_told_when_nobody_can_be_asked() -> None:
    async with open_runner([write]) as runner:

        async def pre(call: ToolCall, signal: AbortSignal) -> Any:
            return ask("does it overwrite anything?")

        runner.pre_execute(pre)
        result = await runner.run(WRITE)
    check_denied(result, ErrorKind.APPROVER_UNAVAILABLE)
    assert "does it overwrite anything?" in text(result)


@pytest.mark.case("A2")
async def test_a_grant_for_once_dispatches_the_call_and_the_approver_saw_all_of_it() -> None:
    approver = Approver(Decision.allow())
    stop = AbortController()
    async with open_runner([write], policy=ASK, approver=approver) as runner:
        result = await runner.run(WRITE, signal=stop.signal)
        assert facts(result) == SUCCEEDED
        [request], [signal] = approver.asked, approver.signals
        assert (request.tool, request.call_id, request.run_id) == ("write", "c1", result.run_id)
        assert (request.arguments, request.annotations) == ({"path": "a"}, Annotations(destructive=True))
        assert "asks for approval of write. The approval" in request.text
        assert "does not cover the contents of files" in request.text
        assert not signal.aborted
        stop.abort("enough")
        assert signal.reason is not None
        assert (signal.reason.source, signal.reason.text) == ("caller", "enough")
        # Once is once: the same call again is asked about again.
        assert facts(await runner.run(WRITE)) == SUCCEEDED
        assert len(approver.asked) == 2
    assert entered == [{"path": "a", "text": ""}] * 2


@pytest.mark.case("A3")
async def test_refused_called_off_and_nobody_there_read_differently() -> None:
    texts = []
    for answer, kind in (
        (Decision.deny("use read instead"), ErrorKind.APPROVER),
        (Decision.stop("that is enough"), ErrorKind.APPROVER),
        (ConnectionError("the phone is off"), ErrorKind.APPROVER_UNAVAILABLE),
    ):
        async with open_runner([write], policy=ASK, approver=Approver(answer)) as runner:
            batch = await runner.run_batch([WRITE, ToolCall("write", {"path": "b"}, call_id="c2")])
        check_denied(batch[0], kind)
        assert batch[0].error is not None
        texts.append(batch[0].error.message)
        if isinstance(answer, Decision) and answer.kind == "stop":
            check_stopped_early(batch[1], batch[0].error.message, "approver")
            assert batch.stopped is not None
            assert batch.stopped.source == "approver"
        else:
            check_denied(batch[1], kind)
    assert len(set(texts)) == 3
    assert "use read instead" in texts[0]
    assert "that is enough" in texts[1]
    assert "the phone is off" in texts[2]


@pytest.mark.case("A6")
@pytest.mark.parametrize("answer", [True, "allow", 1, {"kind": "allow"}, object()], ids=lambda answer: type(answer).__name__)
async def test_an_answer_that_is_no_decision_is_never_a_grant(answer: Any) -> None:
    async with open_runner([write], policy=ASK, approver=Approver(answer)) as runner:
        result = await runner.run(WRITE)
    check_denied(result, ErrorKind.APPROVER_UNAVAILABLE)
    assert result.error is not None
    assert type(answer).__name__ in result.error.message


class RaisesAtOnce:
    """Not even a coroutine function."""

    def decide(self, request: ApprovalRequest, signal: AbortSignal) -> Awaitable[Decision]:
        raise ConnectionError("the phone is off")


@pytest.mark.case("A11")
@pytest.mark.parametrize("make", [RaisesAtOnce, lambda: Approver(ConnectionError("the phone is off"))], ids=["at once", "later"])
async def test_an_approver_that_raises_counts_as_not_available(make: Callable[[], Any]) -> None:
    async with open_runner([write], policy=ASK, approver=make()) as runner:
        result = await runner.run(WRITE)
    check_denied(result, ErrorKind.APPROVER_UNAVAILABLE)
    assert "the phone is off" in text(result)


@pytest.mark.case("A12")
async def test_where_policy_says_never_nobody_is_consulted() -> None:
    consulted: list[str] = []
    approver = Approver(Decision.allow())
    async with open_runner([write], policy=Policy.of(deny=["write"]), approver=approver) as runner:

        async def pre(call: ToolCall, signal: AbortSignal) -> Decision:
            consulted.append("pre")
            return Decision.allow()

        runner.pre_execute(pre)
        runner.guard(lambda call: consulted.append("guard"))
        result = await runner.run(WRITE)
    check_denied(result, ErrorKind.POLICY)
    assert (consulted, approver.asked) == ([], [])


@pytest.mark.case("A13")
async def test_what_was_decided_for_the_session_outranks_the_configuration_for_exactly_that_call() -> None:
    journal = MemoryJournal()
    approver = Approver(Decision.allow("session"), Decision.deny("not that one"))
    async with open_runner([write], policy=ASK, approver=approver, journal=journal) as runner:
        assert [facts(await runner.run(WRITE)) for _ in range(3)] == [SUCCEEDED] * 3
        assert len(approver.asked) == 1
        other = await runner.run("write", {"path": "b"})
        assert other.outcome is Outcome.DENIED
        assert len(approver.asked) == 2
    by = [record.by for record in journal if record.type == "call/decided"]
    assert by.count("session grant") == 2
    assert entered == [{"path": "a", "text": ""}] * 3


@pytest.mark.case("A13")
async def test_a_session_grant_does_not_outlive_the_tool_it_was_given_for() -> None:
    approver = Approver(Decision.allow("session"))
    async with open_runner([write], policy=ASK, approver=approver) as runner:
        await runner.run(WRITE)
        runner.replace(write)
        await runner.run(WRITE)
    assert len(approver.asked) == 2


@pytest.mark.virtual_time
async def test_an_approval_that_takes_too_long_is_denied_in_words_of_its_own() -> None:
    gate = Gate()
    async with open_runner([write], policy=ASK, approver=Approver(Decision.allow(), gate=gate), approval_timeout=0.05) as runner:
        result = await runner.run(WRITE)
    check_denied(result, ErrorKind.APPROVAL_TIMEOUT)
    assert "Nobody answered within 0.05 s" in text(result)


async def test_an_answer_from_elsewhere_counts_once() -> None:
    async with open_runner([write], policy=ASK, approver=Approver(None)) as runner:
        batch = runner.start_batch([WRITE])
        await all_blocked()
        [pending] = batch.pending_approvals
        assert batch.decide(pending.approval_id, Decision.allow())
        assert not batch.decide(pending.approval_id, Decision.deny("no"))
        assert not runner.decide(pending.approval_id, Decision.deny("no"))
        assert facts(only(await batch.results())) == SUCCEEDED
