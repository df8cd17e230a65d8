"""Aborts around a question: it is closed at once, and no answer that comes with the abort or after it starts a body."""

from typing import Any

import anyio
import pytest
from pipeline.asking import ASK, WRITE, Approver, entered, write
from pipeline.bench import check_stopped_early, only, open_runner, types_of
from stillness import all_blocked

from toolrunner import AbortController, AbortSignal, Decision, MemoryJournal
from toolrunner.policy import ApprovalRequest
from toolrunner.testing import Gate

pytestmark = pytest.mark.anyio


@pytest.mark.case("A4", "A10")
@pytest.mark.parametrize("late", [Decision.allow(), Decision.deny("no"), RuntimeError()], ids=["grant", "denial", "failure"])
async def test_an_abort_closes_the_question_at_once_and_what_comes_late_starts_nothing(late: Any) -> None:
    journal = MemoryJournal()
    gate = Gate()

    class Stubborn:
        """Does not leave when it is told to."""

        async def decide(self, request: ApprovalRequest, signal: AbortSignal) -> Any:
            with anyio.CancelScope(shield=True):
                try:
                    await gate.wait()
                except anyio.get_cancelled_exc_class():
                    await gate.wait()
            left.set()
            if isinstance(late, BaseException):
                raise late
            return late

    async with open_runner([write], policy=ASK, approver=Stubborn(), journal=journal) as runner:
        left = anyio.Event()
        stop = AbortController()
        batch = runner.start_batch([WRITE], signal=stop.signal)
        await gate.reached()
        [pending] = batch.pending_approvals
        stop.abort("enough")
        result = only(await batch.results())
        check_stopped_early(result)
        assert batch.pending_approvals == ()
        assert not left.is_set()
        assert not batch.decide(pending.approval_id, Decision.allow())
        gate.open()
        await left.wait()
        await all_blocked()
        assert runner.result(result.run_id) == result
    assert entered == []
    assert types_of(journal) == ["call/recorded", "call/decided", "call/asked", "call/answered", "call/settled"]
    [answered] = [record for record in journal if record.type == "call/answered"]
    assert answered.answer == "aborted"


@pytest.mark.case("A4")
async def test_a_grant_in_the_same_moment_as_the_abort_starts_nothing() -> None:
    stop = AbortController()

    def grant(request: ApprovalRequest) -> Decision:
        stop.abort("enough")
        return Decision.allow()

    async with open_runner([write], policy=ASK, approver=Approver(grant)) as runner:
        check_stopped_early(await runner.run(WRITE, signal=stop.signal))
    assert entered == []


@pytest.mark.case("A9")
async def test_a_call_that_is_aborted_already_is_closed_without_asking() -> None:
    journal = MemoryJournal()
    approver = Approver(Decision.allow())
    stop = AbortController()
    stop.abort("enough")
    async with open_runner([write], policy=ASK, approver=approver, journal=journal) as runner:
        check_stopped_early(await runner.run(WRITE, signal=stop.signal))
    assert (approver.asked, entered) == ([], [])
    assert types_of(journal) == ["call/recorded", "call/settled"]


@pytest.mark.case("A10")
async def test_an_approver_is_told_of_the_abort_by_one_cancel() -> None:
    gate = Gate()
    approver = Approver(Decision.allow(), gate=gate)
    async with open_runner([write], policy=ASK, approver=approver) as runner:
        stop = AbortController()
        batch = runner.start_batch([WRITE], signal=stop.signal)
        await gate.reached()
        stop.abort("enough")
        check_stopped_early(only(await batch.results()))
    assert (approver.cancelled, entered) == (1, [])
