"""Approvals: one question, one answer, whatever the approver, the journal, the clock and the caller do."""

import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.abc
import pytest
from policy.desk import ABORTED, ALLOW, DENY, STOP, UNAVAILABLE, Approver, bench, question, settle

from toolrunner.policy import AnswerKind, ApprovalRequest, Decision

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "decision, kind, text",
    [
        (Decision.allow(), ALLOW, ""),
        (Decision.deny(), DENY, "The approver denied the call."),
        (Decision.deny("use read_file"), DENY, "The approver denied the call. use read_file"),
        (Decision.stop(), STOP, "The approver denied the call and stopped what was going on."),
    ],
)
async def test_the_answer_is_the_approvers(decision: Decision, kind: AnswerKind, text: str) -> None:
    approver = Approver(decision)
    approver.release.set()
    async with bench(approver) as b:
        answer = await b.desk.ask(question(), b.controller.signal)
    assert (answer.kind, answer.text, answer.decision) == (kind, text, decision)
    assert b.journal.told() == [("call/asked", ""), ("call/answered", kind.value)]
    assert b.tasks.cancels == {}
    request, signal = approver.asked[0]
    assert signal is b.controller.signal
    assert request.approval_id == answer.approval_id == b.journal.records[0].approval_id == b.journal.records[1].approval_id
    assert b.journal.records[0].digest == "d1"


@pytest.mark.case("A3", "A1")
@pytest.mark.virtual_time
async def test_denied_unavailable_timed_out_and_nobody_there_are_told_apart() -> None:
    texts = set()
    for answer in (Decision.deny(), Decision.stop(), ValueError("no screen"), "yes"):
        approver = Approver(answer)
        approver.release.set()
        async with bench(approver) as b:
            texts.add((await b.desk.ask(question(), b.controller.signal)).text)
    async with bench(None) as b:
        nobody = await b.desk.ask(question(), b.controller.signal)
        texts.add(nobody.text)
    async with bench(Approver(), limit=0.01) as b:
        texts.add((await b.desk.ask(question(), b.controller.signal)).text)
    async with bench(Approver()) as b:
        b.ask()
        await settle()
        b.controller.abort()
    texts.add(b.answers["shell"].text)
    assert len(texts) == 7
    assert nobody.kind is UNAVAILABLE
    assert nobody.text == "The call needs an approval and nobody can be asked, so it was denied. It was to be asked: it writes"


async def test_where_nobody_is_asked_nothing_is_recorded() -> None:
    async with bench(None) as b:
        answer = await b.desk.ask(question(), b.controller.signal)
    assert answer.approval_id == ""
    assert b.journal.records == []


@pytest.mark.case("A6")
@pytest.mark.parametrize("value", ["allow", True, 1, AnswerKind.ALLOW, {"kind": "allow"}, Decision, object()])
async def test_what_is_no_decision_is_no_grant(value: Any) -> None:
    approver = Approver(value)
    approver.release.set()
    async with bench(approver) as b:
        answer = await b.desk.ask(question(), b.controller.signal)
    assert (answer.kind, answer.decision) == (UNAVAILABLE, None)
    assert "no valid answer" in answer.text
    assert b.journal.told() == [("call/asked", ""), ("call/answered", "unavailable")]


@pytest.mark.case("A9")
async def test_a_call_that_was_stopped_already_is_not_asked_about() -> None:
    approver = Approver(Decision.allow())
    async with bench(approver) as b:
        b.controller.abort()
        answer = await b.desk.ask(question(), b.controller.signal)
    assert answer.kind is ABORTED
    assert approver.asked == []
    assert b.journal.records == []


@pytest.mark.case("A10")
@pytest.mark.parametrize("late", [Decision.allow(), Decision.deny(), ValueError("late"), "nonsense"])
async def test_an_abort_answers_at_once_and_what_comes_late_vanishes(late: Any) -> None:
    class Stubborn(Approver):
        async def decide(self, request: ApprovalRequest, signal: Any) -> Any:
            with anyio.CancelScope(shield=True):
                return await super().decide(request, signal)

    approver = Stubborn(late)
    async with bench(approver) as b:
        b.ask()
        await settle()
        try:
            b.controller.abort()
            await b.answered["shell"].wait()
            assert b.answers["shell"].kind is ABORTED
            assert not approver.ended
        finally:
            approver.release.set()
    assert approver.ended == ["shell"]
    assert b.answers["shell"].kind is ABORTED
    assert b.journal.told() == [("call/asked", ""), ("call/answered", "aborted")]
    assert sum(b.tasks.cancels.values()) == 1


@pytest.mark.case("A4", "A10")
async def test_a_grant_that_arrives_after_the_abort_in_the_same_tick_is_none() -> None:
    async with bench(Approver()) as b:
        b.ask()
        await settle()
        approval_id = b.desk.pending[0].approval_id
        b.controller.abort()
        # The abort has not been delivered to anybody yet; it is already true.
        assert not b.desk.decide(approval_id, Decision.allow())
    assert b.answers["shell"].kind is ABORTED
    assert b.journal.told() == [("call/asked", ""), ("call/answered", "aborted")]


async def test_a_denial_that_came_before_the_abort_stays_a_denial() -> None:
    async with bench(Approver()) as b:
        b.ask()
        await settle()
        assert b.desk.decide(b.desk.pending[0].approval_id, Decision.deny())
        b.controller.abort()
    assert b.answers["shell"].kind is DENY


async def test_an_abort_from_another_thread_ends_the_question_and_sends_the_approver_away() -> None:
    approver = Approver()
    async with bench(approver) as b:
        b.ask()
        await settle()
        thread = threading.Thread(target=b.controller.abort)
        thread.start()
        thread.join()
    assert b.answers["shell"].kind is ABORTED
    assert approver.cancels == 1


@pytest.mark.case("A11")
async def test_an_approver_that_raises_counts_as_not_there() -> None:
    class Sync:
        def decide(self, request: Any, signal: Any) -> Any:
            raise ValueError("no screen")

    class NoCoroutine:
        def decide(self, request: Any, signal: Any) -> Any:
            return Decision.allow()

    late = Approver(ValueError("no screen"))
    late.release.set()
    for approver in (Sync(), late, NoCoroutine(), object()):
        async with bench(approver) as b:
            answer = await b.desk.ask(question(), b.controller.signal)
        assert answer.kind is UNAVAILABLE
        assert answer.text.startswith("The approver failed (")
        assert b.journal.told() == [("call/asked", ""), ("call/answered", "unavailable")]


@pytest.mark.case("A8", "A14")
async def test_every_question_has_its_own_id_and_one_pair_of_records() -> None:
    approver = Approver(Decision.deny())
    approver.release.set()
    same = question(approval_id="mine")
    async with bench(approver) as b:
        for _ in range(3):
            await b.desk.ask(same, b.controller.signal)
    ids = Counter(record.approval_id for record in b.journal.records)
    assert set(ids.values()) == {2}
    assert len(ids) == 3
    assert "mine" not in ids


@pytest.mark.case("A15")
@pytest.mark.parametrize("fail", ["call/asked", "call/answered"])
async def test_what_cannot_be_recorded_is_not_granted(fail: str) -> None:
    approver = Approver(Decision.allow())
    approver.release.set()
    async with bench(approver) as b:
        b.journal.fail = fail
        answer = await b.desk.ask(question(), b.controller.signal)
        assert b.desk.pending == ()
    assert (answer.kind, answer.decision) == (UNAVAILABLE, None)
    assert "could not be recorded" in answer.text
    assert bool(approver.asked) is (fail == "call/answered")


@pytest.mark.case("A15")
@pytest.mark.parametrize("fail", ["call/asked", "call/answered"])
async def test_what_does_not_become_durable_is_not_granted(fail: str) -> None:
    async def fails() -> None:
        raise OSError("disk full")

    approver = Approver(Decision.allow())
    approver.release.set()
    async with bench(approver) as b:
        b.journal.gates[fail] = fails
        answer = await b.desk.ask(question(), b.controller.signal)
    assert (answer.kind, answer.decision) == (UNAVAILABLE, None)
    assert bool(approver.asked) is (fail == "call/answered")


async def test_a_denial_stands_also_when_it_cannot_be_recorded() -> None:
    approver = Approver(Decision.stop("enough"))
    approver.release.set()
    async with bench(approver) as b:
        b.journal.fail = "call/answered"
        answer = await b.desk.ask(question(), b.controller.signal)
    assert answer.kind is STOP


async def test_nobody_is_asked_before_the_question_is_durable_and_an_abort_does_not_wait_for_it() -> None:
    durable = anyio.Event()
    approver = Approver(Decision.allow())
    async with bench(approver) as b:
        b.journal.gates["call/asked"] = durable.wait
        b.ask()
        await settle()
        assert approver.asked == []
        b.controller.abort()
        await settle()
        assert b.answers["shell"].kind is ABORTED
    assert approver.asked == []


async def test_a_question_that_was_settled_before_its_task_began_is_not_put() -> None:
    durable = anyio.Event()
    approver = Approver(Decision.allow())

    class Deaf:
        def cancel(self) -> None:
            """A task that has not made its first step yet cannot be told."""

    async with bench(approver) as b:

        def spawn(fn: Callable[[], Awaitable[None]], name: str) -> Deaf:
            async def run() -> None:
                await fn()

            b.group.start_soon(run)
            return Deaf()

        b.desk._spawn = spawn
        b.journal.gates["call/asked"] = durable.wait
        b.ask()
        await settle()
        b.controller.abort()
        await b.answered["shell"].wait()
        durable.set()
    assert approver.asked == []
    assert b.journal.told() == [("call/asked", ""), ("call/answered", "aborted")]
