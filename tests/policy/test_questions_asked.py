"""Questions that nobody answers, that are answered elsewhere, and how many are asked at once."""

import contextvars
from typing import Any

import anyio
import anyio.abc
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given, settings
from hypothesis import strategies as st
from policy.desk import ABORTED, ALLOW, DENY, STOP, TIMEOUT, UNAVAILABLE, Approver, Bench, bench, question, settle

from toolrunner.abort import AbortController
from toolrunner.errors import ConfigError
from toolrunner.policy import Answer, AnswerKind, ApprovalDesk, ApprovalRequest, Decision
from toolrunner.policy import approvals as approvals_module

pytestmark = pytest.mark.anyio


@pytest.mark.case("E10")
@pytest.mark.virtual_time
async def test_a_question_that_nobody_answers_is_denied_in_words_of_its_own_and_a_late_grant_is_none() -> None:
    approver = Approver()
    async with bench(approver, limit=0.02) as b:
        b.ask()
        await approver.arrived.wait()
        approval_id = b.desk.pending[0].approval_id
        await b.answered["shell"].wait()
        assert not b.desk.decide(approval_id, Decision.allow())
    assert b.answers["shell"] == Answer(TIMEOUT, "Nobody answered within 0.02 s, so the call was denied.", None, approval_id)
    assert b.journal.told() == [("call/asked", ""), ("call/answered", "timeout")]
    assert approver.cancels == 1


async def test_a_question_that_is_asked_elsewhere_waits_for_its_first_answer() -> None:
    approver = Approver(None)
    approver.release.set()
    async with bench(approver) as b:
        b.ask()
        await settle()
        assert approver.ended == ["shell"]
        request = b.desk.pending[0]
        assert request.tool == "shell"
        assert not b.answers
        assert not b.desk.decide("another", Decision.allow())
        assert b.desk.decide(request.approval_id, Decision.allow("session", {"cmd": "pwd"}))
        assert not b.desk.decide(request.approval_id, Decision.deny())
        assert b.desk.pending == ()
    assert b.answers["shell"].decision == Decision.allow("session", {"cmd": "pwd"})
    assert b.journal.records[1].for_ == "session"
    assert b.tasks.cancels == {}


async def test_an_answer_from_elsewhere_sends_the_approver_away() -> None:
    approver = Approver()
    async with bench(approver) as b:
        b.ask()
        await settle()
        assert b.desk.decide(b.desk.pending[0].approval_id, Decision.allow())
    assert b.answers["shell"].kind is ALLOW
    assert approver.cancels == 1


async def test_no_decision_from_elsewhere_is_misuse_and_the_question_stays_open() -> None:
    async with bench(Approver()) as b:
        b.ask()
        await settle()
        approval_id = b.desk.pending[0].approval_id
        with pytest.raises(ConfigError):
            b.desk.decide(approval_id, True)  # type: ignore[arg-type]
        assert b.desk.pending
        b.controller.abort()


async def test_questions_are_asked_one_at_a_time_in_order() -> None:
    approver = Approver(Decision.allow())
    async with bench(approver) as b:
        for tool in ("a", "b", "c"):
            b.ask(tool)
            await settle()
        assert [request.tool for request, _ in approver.asked] == ["a"]
        assert [request.tool for request in b.desk.pending] == ["a"]
        approver.release.set()
    assert approver.ended == ["a", "b", "c"]
    assert [record.type for record in b.journal.records] == ["call/asked", "call/answered"] * 3


async def test_a_concurrent_approver_is_asked_all_at_once() -> None:
    approver = Approver(Decision.allow(), concurrent=True)
    async with bench(approver) as b:
        for tool in ("a", "b", "c"):
            b.ask(tool)
            await settle()
        assert [request.tool for request in b.desk.pending] == ["a", "b", "c"]
        approver.release.set()
    assert {answer.kind for answer in b.answers.values()} == {ALLOW}


async def test_a_question_that_is_stopped_in_the_line_is_never_asked() -> None:
    approver, other = Approver(Decision.allow()), AbortController()
    async with bench(approver) as b:
        b.ask("a")
        await settle()
        b.ask("b", other)
        await settle()
        other.abort()
        await settle()
        assert b.answers["b"].kind is ABORTED
        approver.release.set()
    assert [request.tool for request, _ in approver.asked] == ["a"]
    assert len(b.journal.records) == 2


@pytest.mark.virtual_time
async def test_an_approver_that_does_not_leave_delays_the_next_question_only_so_long(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(approvals_module, "LEAVE_WAIT", 0.2)
    stuck = anyio.Event()

    class Stubborn(Approver):
        async def decide(self, request: ApprovalRequest, signal: Any) -> Any:
            self.asked.append((request, signal))
            if request.tool == "a":
                with anyio.CancelScope(shield=True):
                    await stuck.wait()
            return Decision.allow()

    first = AbortController()
    approver = Stubborn()
    async with bench(approver) as b:
        b.ask("a", first)
        await settle()
        b.ask("b")
        await settle()
        try:
            first.abort()
            await b.answered["a"].wait()
            assert [request.tool for request, _ in approver.asked] == ["a"]
            await b.answered["b"].wait()
        finally:
            stuck.set()
    assert b.answers["b"].kind is ALLOW
    assert b.answers["a"].kind is ABORTED
    assert "still runs" in caplog.text


async def test_a_runner_that_takes_no_tasks_fails_closed_and_the_next_question_comes_too() -> None:
    def refuses(fn: Any, name: str) -> Any:
        raise RuntimeError("closing")

    async with bench(Approver()) as b:
        b.desk._spawn = refuses
        for _ in range(2):
            answer = await b.desk.ask(question(), b.controller.signal)
            assert answer.kind is UNAVAILABLE
            assert "Nobody could be asked" in answer.text
    assert [record.type for record in b.journal.records] == ["call/asked", "call/answered"] * 2


async def test_whoever_is_cancelled_while_asking_leaves_a_closed_question_behind() -> None:
    approver = Approver()
    async with bench(approver) as b:
        with anyio.CancelScope() as scope:
            b.group.start_soon(lambda: _cancel_when(approver.arrived, scope))
            await b.desk.ask(question(), b.controller.signal)
        assert scope.cancelled_caught
        assert b.desk.pending == ()
        await settle()
    assert b.journal.told() == [("call/asked", ""), ("call/answered", "aborted")]
    assert approver.cancels == 1


async def _cancel_when(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def test_a_question_is_asked_in_the_context_of_its_own_call() -> None:
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user")
    seen: list[tuple[str, str]] = []

    class Reads:
        async def decide(self, request: Any, signal: Any) -> Decision:
            await checkpoint()
            seen.append((request.tool, user.get()))
            return Decision.allow()

    async with bench(Reads()) as b:
        for name in ("ann", "bob", "cy"):
            user.set(name)
            b.ask(name)
    assert sorted(seen) == [("ann", "ann"), ("bob", "bob"), ("cy", "cy")]


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf")])
async def test_a_limit_that_is_none_is_refused(limit: float) -> None:
    with pytest.raises(ConfigError):
        ApprovalDesk(None, append=lambda *_: None, spawn=lambda fn, name: None, limit=limit)  # type: ignore[arg-type]


events = st.lists(st.sampled_from(["abort", "allow", "deny", "raise", "elsewhere", "tick"]), min_size=1, max_size=6)


@pytest.mark.case("A8")
@settings(max_examples=40)
@given(plan=events, concurrent=st.booleans())
async def test_every_interleaving_gives_each_question_one_pair_and_an_answer_that_somebody_gave(
    plan: list[str], concurrent: bool
) -> None:
    approver = Approver(concurrent=concurrent)
    async with bench(approver) as b:
        b.ask("a")
        await approver.arrived.wait()
        gave: set[AnswerKind] = set()
        for event in plan:
            await _happen(event, b, approver, gave)
        b.controller.abort()
    (answer,) = b.answers.values()
    assert answer.kind in gave | {ABORTED}
    assert [record.type for record in b.journal.records] == ["call/asked", "call/answered"]
    assert b.journal.records[1].answer == answer.kind.value
    assert sum(b.tasks.cancels.values()) <= 1


async def _happen(event: str, b: Bench, approver: Approver, gave: set[AnswerKind]) -> None:
    aborted = b.controller.signal.aborted
    if event == "abort":
        b.controller.abort()
    elif event == "tick":
        await checkpoint()
    elif event == "elsewhere":
        if b.desk.pending and b.desk.decide(b.desk.pending[0].approval_id, Decision.stop()):
            assert not aborted
            gave.add(STOP)
    elif not approver.release.is_set():
        approver.answer = {"allow": Decision.allow(), "deny": Decision.deny(), "raise": ValueError("x")}[event]
        approver.release.set()
        if not aborted:
            gave.add({"allow": ALLOW, "deny": DENY, "raise": UNAVAILABLE}[event])
