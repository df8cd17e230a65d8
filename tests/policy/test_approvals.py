"""Approvals: one question, one answer, whatever the approver, the journal, the clock and the caller do."""

import contextlib
import contextvars
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import anyio.abc
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given, settings
from hypothesis import strategies as st
from stillness import all_blocked

from toolrunner.abort import AbortController
from toolrunner.errors import ConfigError
from toolrunner.policy import Answer, AnswerKind, ApprovalDesk, ApprovalRequest, Decision
from toolrunner.policy import approvals as approvals_module

pytestmark = pytest.mark.anyio

ALLOW, DENY, STOP = AnswerKind.ALLOW, AnswerKind.DENY, AnswerKind.STOP
ABORTED, TIMEOUT, UNAVAILABLE = AnswerKind.ABORTED, AnswerKind.TIMEOUT, AnswerKind.UNAVAILABLE


def question(tool: str = "shell", **fields: Any) -> ApprovalRequest:
    return ApprovalRequest(run_id=f"run-{tool}", tool=tool, arguments={"cmd": "ls"}, digest="d1", text="it writes", **fields)


class Journal:
    """Takes records. `fail` names the type whose append raises, `gates` those that become durable later."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.fail = ""
        self.gates: dict[str, Callable[[], Awaitable[None]]] = {}

    def append(self, record: Any) -> Awaitable[None] | None:
        if record.type == self.fail:
            raise OSError("disk full")
        self.records.append(record)
        gate = self.gates.get(record.type)
        return gate() if gate is not None else None

    def told(self) -> list[tuple[str, str]]:
        return [(record.type, getattr(record, "answer", "")) for record in self.records]


class Approver:
    """Asked questions wait in `asked`; each is answered by setting a value, or an exception, in `answers`."""

    def __init__(self, answer: Any = None, *, concurrent: bool = False) -> None:
        self.concurrent = concurrent
        self.asked: list[tuple[ApprovalRequest, Any]] = []
        self.arrived = anyio.Event()
        self.release = anyio.Event()
        self.ended: list[str] = []
        self.answer = answer
        self.cancels = 0

    async def decide(self, request: ApprovalRequest, signal: Any) -> Any:
        self.asked.append((request, signal))
        self.arrived.set()
        try:
            await self.release.wait()
        except anyio.get_cancelled_exc_class():
            self.cancels += 1
            raise
        finally:
            self.ended.append(request.tool)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class Tasks:
    """Tasks that the "runner" owns: not those of whoever asks."""

    def __init__(self, group: anyio.abc.TaskGroup) -> None:
        self._group = group
        self.cancels: Counter[str] = Counter()

    def spawn(self, fn: Callable[[], Awaitable[None]], name: str) -> Any:
        tasks, scope = self, anyio.CancelScope()

        async def run() -> None:
            with scope:
                await fn()

        class Task:
            def cancel(self) -> None:
                tasks.cancels[name] += 1
                scope.cancel()

        self._group.start_soon(run, name=name)
        return Task()


class Bench:
    def __init__(self, approver: Any, group: anyio.abc.TaskGroup, limit: float) -> None:
        self.journal = Journal()
        self.tasks = Tasks(group)
        self.controller = AbortController()
        self.group = group
        self.desk = ApprovalDesk(approver, append=self.journal.append, spawn=self.tasks.spawn, limit=limit)
        self.answers: dict[str, Answer] = {}
        self.answered: dict[str, anyio.Event] = {}

    def ask(self, tool: str = "shell", controller: AbortController | None = None) -> None:
        async def run() -> None:
            self.answers[tool] = await self.desk.ask(question(tool), (controller or self.controller).signal)
            self.answered[tool].set()

        self.answered[tool] = anyio.Event()
        self.group.start_soon(run)


@contextlib.asynccontextmanager
async def bench(approver: Any, limit: float = 60) -> AsyncIterator[Bench]:
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            yield Bench(approver, group, limit)


settle = all_blocked


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
