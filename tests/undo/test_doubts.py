"""Calls in doubt: who is held back for one, who asks what became of it, and what the answer is worth."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from toolrunner import AbortController, MemoryJournal, Runner, ToolCall, ToolContext, ToolResult, tool
from toolrunner.errors import ConfigError, ToolDefinitionError
from toolrunner.facts import Effects, EffectState
from toolrunner.pipeline import reconcile
from toolrunner.records import CallReconciled
from toolrunner.results import Code, Outcome
from toolrunner.tools import Reconciled, Resource, ResourceMode

pytestmark = pytest.mark.anyio

BOUND = 10.0

Answer = Callable[[Any, ToolCall, Effects], Awaitable[Any]]


def wrote(_: object) -> list[Resource]:
    return [Resource("account", ResourceMode.WRITE)]


def doubtful(answer: Answer | None, *, resources: Any = wrote) -> Any:
    """A tool whose body is left in the middle of its act, and how it finds out afterwards."""

    @tool(resources=resources)
    async def charge(ctx: ToolContext[Any], amount: int = 1) -> None:
        async with ctx.effect("http", "account"):
            raise OSError("connection reset")

    if answer is not None:
        charge.reconcile(answer)
    return charge


@tool(resources=wrote)
def write() -> str:
    return "written"


@tool(resources=lambda _: [Resource("account", ResourceMode.READ)], read_only=True)
def read() -> str:
    return "read"


@tool(resources=lambda _: [Resource("other", ResourceMode.WRITE)])
def write_other() -> str:
    return "written"


def says(answer: object, asked: list[str] | None = None) -> Answer:
    async def found(ctx: ToolContext[Any], call: ToolCall, effects: Effects) -> object:
        if asked is not None:
            asked.append(call.name)
        assert effects.state is EffectState.UNKNOWN
        assert (ctx.call, ctx.deps) == (call, "deps")
        return answer

    return found


def services(runner: Runner) -> Any:
    return runner._services


def reconciled(journal: MemoryJournal) -> list[tuple[str, str, str]]:
    return [(one.as_, one.by, one.note) for one in journal if isinstance(one, CallReconciled)]


def check_in_doubt(result: ToolResult, about: ToolResult) -> None:
    assert (result.outcome, result.code, result.started) == (Outcome.REJECTED, Code.IN_DOUBT, False)
    assert result.about_run_id == about.run_id
    assert result.error is not None
    assert about.run_id in result.error.message
    assert "account" in result.error.message
    assert result.retry == "check_first"


@pytest.mark.case("E17")
async def test_later_writers_are_refused_naming_the_call_and_its_tool_is_asked_once_while_others_pass() -> None:
    asked: list[str] = []
    journal = MemoryJournal()
    tools = [doubtful(says("unknown", asked)), write, read, write_other]
    with anyio.fail_after(BOUND):
        async with Runner(tools, deps="deps", journal=journal) as runner:
            first = await runner.run("charge")
            assert first.effects.state is EffectState.UNKNOWN
            assert asked == []
            assert (await runner.run("read")).outcome is Outcome.SUCCEEDED
            assert (await runner.run("write_other")).outcome is Outcome.SUCCEEDED
            assert asked == []
            check_in_doubt(await runner.run("write"), first)
            check_in_doubt(await runner.run("charge"), first)
            check_in_doubt(await runner.run("write"), first)
            assert (await runner.run("read")).outcome is Outcome.SUCCEEDED
    assert asked == ["charge"]
    assert reconciled(journal) == [("unknown", "tool", "")]


@pytest.mark.case("E17")
async def test_a_tool_that_cannot_find_out_holds_nobody_back() -> None:
    with anyio.fail_after(BOUND):
        async with Runner([doubtful(None), write]) as runner:
            assert (await runner.run("charge")).effects.state is EffectState.UNKNOWN
            assert (await runner.run("write")).outcome is Outcome.SUCCEEDED


@pytest.mark.case("E17")
@pytest.mark.parametrize("answer", ["completed", "none"])
async def test_a_call_that_is_cleared_up_holds_nobody_back(answer: str) -> None:
    asked: list[str] = []
    journal = MemoryJournal()
    with anyio.fail_after(BOUND):
        async with Runner([doubtful(says(answer, asked)), write], deps="deps", journal=journal) as runner:
            first = await runner.run("charge")
            assert (await runner.run("write")).outcome is Outcome.SUCCEEDED
            assert (await runner.run("write")).outcome is Outcome.SUCCEEDED
            assert await reconcile.settle(services(runner), first.run_id) is Reconciled(answer)
            assert len(services(runner).doubts) == 0
    assert asked == ["charge"]
    assert reconciled(journal) == [(answer, "tool", "")]


@pytest.mark.parametrize("answer", [None, True, "COMPLETED", 7, ["none"], "partial"])
async def test_an_answer_that_is_none_counts_as_unknown(answer: object) -> None:
    journal = MemoryJournal()
    with anyio.fail_after(BOUND):
        async with Runner([doubtful(says(answer)), write], deps="deps", journal=journal) as runner:
            first = await runner.run("charge")
            check_in_doubt(await runner.run("write"), first)
    [(as_, by, note)] = reconciled(journal)
    assert (as_, by) == ("unknown", "tool")
    assert "expected one of 'completed', 'none', 'unknown'" in note


async def test_a_reconcile_that_raises_counts_as_unknown_and_its_error_is_on_record() -> None:
    async def found(ctx: object, call: object, effects: object) -> str:
        raise ConnectionError("the bank is closed")

    journal = MemoryJournal()
    with anyio.fail_after(BOUND):
        async with Runner([doubtful(found), write], journal=journal) as runner:
            first = await runner.run("charge")
            check_in_doubt(await runner.run("write"), first)
    [(as_, by, note)] = reconciled(journal)
    assert (as_, by) == ("unknown", "tool")
    assert "the bank is closed" in note


async def test_a_reconcile_that_hangs_is_given_up_after_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcile, "RECONCILE_LIMIT", 0.02)

    async def found(ctx: object, call: object, effects: object) -> str:
        await anyio.sleep_forever()
        return "none"

    journal = MemoryJournal()
    with anyio.fail_after(BOUND):
        async with Runner([doubtful(found), write], journal=journal) as runner:
            first = await runner.run("charge")
            check_in_doubt(await runner.run("write"), first)
    [(as_, _, note)] = reconciled(journal)
    assert as_ == "unknown"
    assert "did not answer within" in note


async def test_a_writer_that_is_aborted_while_its_doubt_is_looked_into_does_not_wait_for_it() -> None:
    reached, go_on = anyio.Event(), anyio.Event()

    async def found(ctx: object, call: object, effects: object) -> str:
        reached.set()
        await go_on.wait()
        return "none"

    stop = AbortController()
    with anyio.fail_after(BOUND):
        async with Runner([doubtful(found), write]) as runner:
            first = await runner.run("charge")
            batch = runner.start_batch([ToolCall("write")], signal=stop.signal)
            await reached.wait()
            stop.abort("enough")
            [aborted] = await batch.results()
            assert (aborted.code, aborted.started) == (Code.ABORTED_BEFORE_DISPATCH, False)
            go_on.set()
            assert await reconcile.settle(services(runner), first.run_id) is Reconciled.NONE
            assert (await runner.run("write")).outcome is Outcome.SUCCEEDED


async def test_two_writers_wait_for_one_look() -> None:
    asked = 0
    go_on = anyio.Event()

    async def found(ctx: object, call: object, effects: object) -> str:
        nonlocal asked
        asked += 1
        await go_on.wait()
        return "completed"

    answers: list[Reconciled] = []
    with anyio.fail_after(BOUND):
        async with Runner([doubtful(found)]) as runner:
            first = await runner.run("charge")

            async def ask() -> None:
                answers.append(await reconcile.settle(services(runner), first.run_id))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                tasks.start_soon(ask)
                await anyio.wait_all_tasks_blocked()
                go_on.set()
    assert (asked, answers) == (1, [Reconciled.COMPLETED] * 2)


async def test_the_user_may_still_know_what_the_tool_could_not_tell() -> None:
    journal = MemoryJournal()
    with anyio.fail_after(BOUND):
        async with Runner([doubtful(says("unknown")), write], deps="deps", journal=journal) as runner:
            first = await runner.run("charge")
            check_in_doubt(await runner.run("write"), first)
            assert await reconcile.reconcile_as(services(runner), first.run_id, "none", "looked at the statement")
            assert await reconcile.settle(services(runner), first.run_id) is Reconciled.NONE
            assert (await runner.run("write")).outcome is Outcome.SUCCEEDED
            assert not await reconcile.reconcile_as(services(runner), "nobody", "none")
            with pytest.raises(ConfigError, match="'completed' or 'none'"):
                await reconcile.reconcile_as(services(runner), first.run_id, "unknown")  # type: ignore[arg-type]
    assert reconciled(journal)[:2] == [("unknown", "tool", ""), ("none", "user", "looked at the statement")]


async def test_a_reconcile_function_can_change_nothing_and_run_nothing() -> None:
    refused: list[str] = []

    async def found(ctx: ToolContext[Any], call: object, effects: object) -> str:
        attempts: list[Callable[[], Any]] = [
            lambda: ctx.effect("http", "x"),
            lambda: ctx.services.run("write", {}),
            lambda: ctx.follow_up(1),
        ]
        for attempt in attempts:
            try:
                attempt()
            except reconcile.LooksOnly as error:
                refused.append(str(error).split()[0])
        ctx.output("looking")
        ctx.progress("still looking")
        with ctx.cleanup():
            pass
        try:
            await runner.run("write")
        except Exception as error:
            refused.append(type(error).__name__)
        return "none"

    with anyio.fail_after(BOUND):
        async with Runner([doubtful(found), write]) as runner:
            await runner.run("charge")
            assert (await runner.run("write")).outcome is Outcome.SUCCEEDED
    assert refused == ["ctx.effect", "ctx.run", "ctx.follow_up", "NestedRun"]


async def test_a_doubt_of_an_earlier_runner_is_looked_into_by_the_next_one() -> None:
    async with Runner([doubtful(says("unknown"))], deps="deps") as runner:
        earlier = await runner.run("charge", {"amount": 5})
    seen: list[ToolCall] = []

    async def found(ctx: ToolContext[Any], call: ToolCall, effects: Effects) -> str:
        seen.append(call)
        return "unknown"

    charge = doubtful(found)
    with anyio.fail_after(BOUND):
        async with Runner([charge, write]) as runner:
            doubts = services(runner).doubts
            assert doubts.load(earlier, charge)
            check_in_doubt(await runner.run("write"), earlier)
            assert await reconcile.settle(services(runner), earlier.run_id) is Reconciled.UNKNOWN
            written = await runner.run("read")
            assert not doubts.load(written, charge)
            assert not doubts.load(earlier, doubtful(None))
    assert [call.arguments for call in seen] == [{"amount": 5}]


async def test_nobody_is_asked_about_a_call_of_which_something_still_runs() -> None:
    asked: list[str] = []
    with anyio.fail_after(BOUND):
        async with Runner([doubtful(says("none", asked)), write], deps="deps") as runner:
            first = await runner.run("charge")
            services(runner).doubts.of(first.run_id).still_runs = True
            check_in_doubt(await runner.run("write"), first)
    assert asked == []


async def test_without_resources_only_a_key_asks() -> None:
    asked: list[str] = []
    with anyio.fail_after(BOUND):
        async with Runner([doubtful(says("none", asked), resources=None), write], deps="deps") as runner:
            first = await runner.run("charge")
            assert (await runner.run("write")).outcome is Outcome.SUCCEEDED
            assert asked == []
            assert await reconcile.settle(services(runner), first.run_id) is Reconciled.NONE
    assert asked == ["charge"]


def test_a_reconcile_function_must_be_one() -> None:
    charge = doubtful(None)
    with pytest.raises(ToolDefinitionError, match="async def"):
        charge.reconcile(lambda ctx, call, effects: "none")

    async def two(ctx: object, call: object) -> str:
        return "none"

    with pytest.raises(ToolDefinitionError, match=r"\(ctx, call, effects\)"):
        charge.reconcile(two)
    found = says("none")
    assert charge.reconcile(found) is found
    with pytest.raises(ToolDefinitionError, match="already"):
        charge.reconcile(found)


async def test_a_writer_that_gets_the_lock_before_the_call_in_doubt_has_settled_finds_the_doubt() -> None:
    begun, go_on, hooked = anyio.Event(), anyio.Event(), anyio.Event()

    @tool(resources=wrote)
    async def charge(ctx: ToolContext[Any]) -> None:
        begun.set()
        await go_on.wait()
        async with ctx.effect("http", "account"):
            raise OSError("connection reset")

    charge.reconcile(says("unknown"))

    async def hook(call: ToolCall, result: object, signal: object) -> None:
        if call.name == "charge":
            await hooked.wait()

    with anyio.fail_after(BOUND):
        async with Runner([charge, write], deps=None) as runner:
            runner.post_execute(hook)
            first = runner.start_batch([ToolCall("charge")])
            await begun.wait()
            second = runner.start_batch([ToolCall("write")])
            await anyio.wait_all_tasks_blocked()
            go_on.set()
            [refused] = await second.results()
            hooked.set()
            [doubted] = await first.results()
    check_in_doubt(refused, doubted)
