"""Approvals through the front door: only an answer that is a grant, for exactly this call, in time, starts a body."""

import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from pipeline.bench import (
    DENIED,
    SUCCEEDED,
    check_never_started,
    check_stopped_early,
    facts,
    only,
    open_runner,
    stop_of,
    text,
    types_of,
)
from stillness import all_blocked

from toolrunner import (
    AbortController,
    AbortSignal,
    Command,
    Decision,
    MemoryJournal,
    Policy,
    Runner,
    ToolCall,
    ToolResult,
    ask,
    command_tool,
    tool,
)
from toolrunner.facts import Annotations, StopPhase
from toolrunner.policy import ApprovalRequest
from toolrunner.results import Code, ErrorKind, Outcome
from toolrunner.testing import Gate

pytestmark = pytest.mark.anyio

entered: list[dict[str, Any]] = []
ASK = Policy.of(ask=["write"], allow=["read"])


@pytest.fixture(autouse=True)
def nothing_entered_yet() -> None:
    entered.clear()


@tool(destructive=True)
async def write(path: str, text: str = "") -> str:
    """Write a file."""
    entered.append({"path": path, "text": text})
    return f"wrote {path}"


@tool(read_only=True)
async def read(path: str) -> str:
    """Read a file."""
    return f"read {path}"


WRITE = ToolCall("write", {"path": "a"}, call_id="c1")


class Approver:
    """Answers with what it was made with; a callable is called, an exception raised. With a gate it waits there first."""

    def __init__(self, *answers: Any, gate: Gate | None = None) -> None:
        self._answers = list(answers)
        self._gate = gate
        self.asked: list[ApprovalRequest] = []
        self.signals: list[AbortSignal] = []
        self.cancelled = 0

    async def decide(self, request: ApprovalRequest, signal: AbortSignal) -> Any:
        self.asked.append(request)
        self.signals.append(signal)
        if self._gate is not None:
            try:
                await self._gate.wait()
            except anyio.get_cancelled_exc_class():
                self.cancelled += 1
                raise
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer(request) if callable(answer) else answer


def check_denied(result: ToolResult, kind: str) -> None:
    check_never_started(result, DENIED)
    assert result.error is not None
    assert result.error.kind == kind
    assert (result.retry, entered) == ("no", [])


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


@pytest.mark.case("A6")
@pytest.mark.parametrize("answer", [True, "allow", 1, {"kind": "allow"}, object()], ids=lambda answer: type(answer).__name__)
async def test_an_answer_that_is_no_decision_is_never_a_grant(answer: Any) -> None:
    async with open_runner([write], policy=ASK, approver=Approver(answer)) as runner:
        result = await runner.run(WRITE)
    check_denied(result, ErrorKind.APPROVER_UNAVAILABLE)
    assert result.error is not None
    assert type(answer).__name__ in result.error.message


@pytest.mark.case("A8", "A14")
async def test_every_question_has_an_id_of_its_own_and_one_answer_on_record() -> None:
    journal = MemoryJournal()
    answers = [Decision.allow(), Decision.deny("no"), RuntimeError("gone"), "nonsense", Decision.allow()]
    async with open_runner([write], policy=ASK, approver=Approver(*answers), journal=journal) as runner:
        batch = await runner.run_batch([ToolCall("write", {"path": str(number)}) for number in range(5)])
    asked = [record for record in journal if record.type == "call/asked"]
    answered = [record for record in journal if record.type == "call/answered"]
    assert [record.approval_id for record in asked] == [record.approval_id for record in answered]
    assert len({record.approval_id for record in asked}) == 5
    assert [record.run_id for record in asked] == [result.run_id for result in batch]
    assert [record.answer for record in answered] == ["allow", "deny", "unavailable", "unavailable", "allow"]
    assert [result.outcome for result in batch] == [Outcome.SUCCEEDED, *[Outcome.DENIED] * 3, Outcome.SUCCEEDED]


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


class FailingJournal:
    """Refuses one type of record, the way that is named: by raising, by an error that stays, or when it is waited for."""

    def __init__(self, refused: str, how: str) -> None:
        self._refused = refused
        self._how = how
        self._error: str | None = None

    @property
    def error(self) -> str | None:
        return self._error

    def append(self, *records: Any) -> Any:
        if self._refused not in types_of(records):
            return None
        if self._how == "raises":
            raise OSError("disk full")
        if self._how == "stays broken":
            self._error = "disk full"
            return None
        return self._fail()

    async def _fail(self) -> None:
        raise OSError("disk full")

    async def aclose(self) -> None:
        pass


@pytest.mark.case("A15")
@pytest.mark.parametrize("how", ["raises", "stays broken", "later"])
@pytest.mark.parametrize("refused", ["call/asked", "call/answered"])
async def test_an_approval_that_cannot_be_recorded_starts_nothing(refused: str, how: str) -> None:
    async with open_runner(
        [write], policy=ASK, approver=Approver(Decision.allow()), journal=FailingJournal(refused, how)
    ) as runner:
        result = await runner.run(WRITE)
    assert entered == []
    assert not result.started
    assert result.outcome is not Outcome.SUCCEEDED
    assert "disk full" in text(result)
    if how != "stays broken":
        check_denied(result, ErrorKind.APPROVER_UNAVAILABLE)


# Beyond the cases.


@pytest.mark.parametrize("times", [1, 3, 4])
async def test_an_approver_may_change_the_arguments_three_times(times: int) -> None:
    journal = MemoryJournal()
    hooks: list[Any] = []

    def change(request: ApprovalRequest) -> Decision:
        number = len(approver.asked)
        return Decision.allow(arguments={"path": f"p{number}"}) if number <= times else Decision.allow()

    approver = Approver(change)
    async with open_runner([write], policy=ASK, approver=approver, journal=journal) as runner:

        async def pre(call: ToolCall, signal: AbortSignal) -> None:
            hooks.append(call.arguments)

        runner.pre_execute(pre)
        result = await runner.run(WRITE)
    modified = [record.arguments for record in journal if record.type == "call/modified"]
    assert modified == [{"path": f"p{number}"} for number in range(1, times + 1)]
    assert [request.arguments for request in approver.asked] == [{"path": "a"}, *modified][: 4 if times == 4 else times + 1]
    assert len({request.digest for request in approver.asked}) == len(approver.asked)
    assert hooks == [request.arguments for request in approver.asked]  # each change is judged anew
    if times <= 3:
        assert facts(result) == SUCCEEDED
        assert entered == [{"path": f"p{times}", "text": ""}]
        assert (result.arguments, result.modified_by) == ({"path": f"p{times}"}, "approver")
    else:
        check_denied(result, ErrorKind.APPROVER)
        assert "more than 3 times" in text(result)


@pytest.mark.parametrize("arguments", [{"path": 5}, {"nobody": 1}, {}], ids=repr)
async def test_arguments_of_an_approver_that_do_not_fit_start_nothing(arguments: dict[str, Any]) -> None:
    async with open_runner([write], policy=ASK, approver=Approver(Decision.allow(arguments=arguments))) as runner:
        result = await runner.run(WRITE)
    check_never_started(result, (Outcome.REJECTED, Code.INVALID_ARGUMENTS, False, None))
    assert (result.arguments, result.modified_by, entered) == (arguments, "approver", [])


async def test_arguments_of_an_approver_that_cannot_be_frozen_start_nothing() -> None:
    async with open_runner([write], policy=ASK, approver=Approver(Decision.allow(arguments={"path": object()}))) as runner:
        result = await runner.run(WRITE)
    check_denied(result, ErrorKind.APPROVER)
    assert result.arguments == {"path": "a"}


async def test_the_same_arguments_from_an_approver_change_nothing() -> None:
    async with open_runner([write], policy=ASK, approver=Approver(Decision.allow(arguments={"path": "a"}))) as runner:
        result = await runner.run(WRITE)
    assert facts(result) == SUCCEEDED
    assert result.modified_by is None


async def test_a_policy_can_deny_what_an_approver_made_of_a_call() -> None:
    async with open_runner([write], approver=Approver(Decision.allow(arguments={"path": "/etc/passwd"}))) as runner:

        async def pre(call: ToolCall, signal: AbortSignal) -> Any:
            assert isinstance(call.arguments, dict)
            return Decision.deny("not there") if call.arguments["path"].startswith("/etc") else ask("sure?")

        runner.pre_execute(pre)
        result = await runner.run(WRITE)
    check_denied(result, ErrorKind.HOOK)


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


class Clock:
    """Stands where the test puts it; `on_read` runs at each reading."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.on_read: Callable[[], object] = lambda: None

    def __call__(self) -> float:
        self.on_read()
        return self.now


def set_clock(runner: Runner) -> Clock:
    clock = Clock()
    assert runner._services is not None
    runner._services.grants._clock = clock
    return clock


async def wait_in_line(runner: Runner, first: Gate) -> Any:
    """A batch whose second call, approved, waits for the lock of its first."""
    batch = runner.start_batch([ToolCall("locked", {"path": "1"}), ToolCall("locked", {"path": "2"})])
    await first.reached()
    await all_blocked()
    return batch


def locked_tool(gate: Gate) -> Any:
    @tool(resources=lambda arguments: ["the file"], parallel_safe=True)
    async def locked(path: str) -> str:
        """Write under a lock."""
        entered.append({"path": path})
        if path == "1":
            await gate.wait()
        return path

    return locked


@pytest.mark.parametrize("answers", ["allow", "deny", "slow again", "other arguments"])
async def test_a_grant_that_expired_in_the_queue_is_asked_for_once_more(answers: str) -> None:
    gate = Gate()
    again: dict[str, Any] = {
        "allow": Decision.allow(),
        "deny": Decision.deny("too late"),
        "slow again": Decision.allow(),
        "other arguments": Decision.allow(arguments={"path": "3"}),
    }
    approver = Approver(Decision.allow(), Decision.allow(), again[answers])
    async with open_runner([locked_tool(gate)], policy=Policy.of(ask=["locked"]), approver=approver) as runner:
        clock = set_clock(runner)
        batch = await wait_in_line(runner, gate)
        clock.now += 10_000
        if answers == "slow again":
            clock.on_read = lambda: setattr(clock, "now", clock.now + 10_000)
        gate.open()
        first, second = await batch.results()
    assert facts(first) == SUCCEEDED
    assert len(approver.asked) == 3
    expired = (Outcome.DENIED, Code.GRANT_EXPIRED, False, None)
    match answers:
        case "allow":
            assert facts(second) == SUCCEEDED
            assert entered == [{"path": "1"}, {"path": "2"}]
        case "deny":
            check_never_started(second, DENIED)
        case _:
            check_never_started(second, expired)
            assert second.retry == "safe"
    assert answers == "allow" or entered == [{"path": "1"}]


async def test_an_abort_while_the_expired_grant_is_asked_for_again_starts_nothing() -> None:
    gate, question = Gate(), Gate()
    approver = Approver(Decision.allow())
    stop = AbortController()
    async with open_runner([locked_tool(gate)], policy=Policy.of(ask=["locked"]), approver=approver) as runner:
        clock = set_clock(runner)
        batch = runner.start_batch([ToolCall("locked", {"path": "1"})])
        await gate.reached()
        second = runner.start_batch([ToolCall("locked", {"path": "2"})], signal=stop.signal)
        await all_blocked()
        clock.now += 10_000
        approver._gate = question
        gate.open()
        await question.reached()
        stop.abort("enough")
        check_stopped_early(only(await second.results()))
        question.open()
        assert facts(only(await batch.results())) == SUCCEEDED
        assert facts(await runner.run("locked", {"path": "3"})) == SUCCEEDED
    assert entered == [{"path": "1"}, {"path": "3"}]


@pytest.mark.processes
async def test_a_program_put_before_the_approved_one_is_not_what_was_approved(tmp_path: Path) -> None:
    """The search path is read again at the moment of action: the grant covers the program that it found, not its name."""
    early, late = tmp_path / "early", tmp_path / "late"
    for folder in (early, late):
        folder.mkdir()
    put_program(late / "prog", "echo approved")

    @command_tool(parallel_safe=True, resources=lambda arguments: ["the file"])
    def prog() -> Command:
        """Run prog."""
        return Command(["prog"], env={"PATH": f"{early}:{late}:/usr/bin:/bin"})

    gate = Gate()
    approver = Approver(Decision.allow(), Decision.allow(), Decision.deny("not that one"))
    async with open_runner([locked_tool(gate), prog], policy=Policy.of(ask=["*"]), approver=approver) as runner:
        batch = runner.start_batch([ToolCall("locked", {"path": "1"}), ToolCall("prog")])
        await gate.reached()
        await all_blocked()
        assert len(approver.asked) == 2
        put_program(early / "prog", f"touch {tmp_path}/swapped")
        gate.open()
        _, swapped = await batch.results()
    check_never_started(swapped, DENIED)
    assert [request.tool for request in approver.asked] == ["locked", "prog", "prog"]
    assert approver.asked[1].digest != approver.asked[2].digest
    assert not (tmp_path / "swapped").exists()


def put_program(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


async def test_an_expired_session_grant_is_none() -> None:
    approver = Approver(Decision.allow("session"))
    async with open_runner([write], policy=ASK, approver=approver) as runner:
        clock = set_clock(runner)
        await runner.run(WRITE)
        await runner.run(WRITE)
        assert len(approver.asked) == 1
        clock.now += 100_000
        await runner.run(WRITE)
        assert len(approver.asked) == 2


async def test_a_stop_while_a_thread_passes_its_gate_is_told_to_the_body() -> None:
    """Reading the clock of its grant, the worker thread stands between the check of the signal and the first step."""
    stop = AbortController()
    seen: list[bool] = []

    @tool
    def work() -> str:
        """Run in a thread."""
        gate.wait_blocking()
        return "done"

    journal = MemoryJournal()
    async with open_runner(
        [work], policy=Policy.of(ask=["work"]), approver=Approver(Decision.allow()), journal=journal
    ) as runner:
        gate, heard = Gate(), Gate()
        clock = set_clock(runner)
        services = runner._services
        assert services is not None

        def pass_the_gate() -> None:
            if threading.get_ident() != services.loop_thread:
                stop.abort("enough")
                services.post(heard.open)  # after the loop has heard of the abort
                heard.wait_blocking()
                seen.append(True)

        clock.on_read = pass_the_gate
        batch = runner.start_batch([ToolCall("work")], signal=stop.signal)
        await gate.reached()
        await all_blocked()
        gate.open()
        result = only(await batch.results())
    assert seen == [True]
    assert facts(result) == (Outcome.ABORTED, Code.ABORTED, True, "returned")
    assert stop_of(result) == ("caller", "enough", StopPhase.RUNNING)
    assert result.stop is not None
    assert result.stop.delivered_at is not None
    assert "call/stop_delivered" in types_of(journal)
