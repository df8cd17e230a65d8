"""Wrappers: what they may do around a body, what they may not, and what becomes of a call whose wrapper misbehaves."""

import asyncio
from dataclasses import replace as changed
from typing import Any

import anyio
import pytest
from pipeline.bench import (
    FINISHED_FIRST,
    HOOK_FAILED_AFTER,
    RAISED,
    STOPPED,
    SUCCEEDED,
    WRAPPER_FAILED_BEFORE,
    check_never_started,
    check_stopped_early,
    effects,
    facts,
    only,
    open_runner,
    stop_of,
    stopped_at,
    text,
)
from stillness import all_blocked

from toolrunner import AbortController, AbortSignal, Reply, ToolCall, ToolContext, ToolError, ToolResult, tool
from toolrunner.facts import EffectState, Evidence, StopPhase, Text
from toolrunner.pipeline.wrap import NextMisused
from toolrunner.results import Code, ErrorKind, Outcome, result_to_dict
from toolrunner.testing import Gate

pytestmark = pytest.mark.anyio

signals: list[AbortSignal] = []
order: list[str] = []


@pytest.fixture(autouse=True)
def nothing_seen_yet() -> None:
    signals.clear()
    order.clear()


@tool
async def write(ctx: ToolContext[Any], path: str) -> str:
    """Write a file."""
    order.append(f"body {path}")
    signals.append(ctx.signal)
    async with ctx.effect("file", path):
        pass
    return f"wrote {path}"


WRITE = ToolCall("write", {"path": "a"}, call_id="c1")


@tool
async def wait(ctx: ToolContext[Any]) -> str:
    """Wait until the gate opens, or until stopped."""
    signals.append(ctx.signal)
    await gates[-1].wait()
    return "done"


gates: list[Gate] = []


@pytest.fixture
async def gate(anyio_backend: object) -> Gate:
    gates.append(Gate())
    return gates[-1]


@pytest.mark.case("T12")
async def test_the_callers_abort_reaches_the_body_past_a_wrappers_signal_which_stays_untouched(gate: Gate) -> None:
    own, caller = AbortController(), AbortController()
    async with open_runner([wait]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            return await go_on(call, signal=own.signal)

        runner.use(wrap)
        batch = runner.start_batch([ToolCall("wait")], signal=caller.signal)
        await gate.reached()
        caller.abort("enough")
        result = only(await batch.results())
    [body] = signals
    assert body is not own.signal
    assert body is not caller.signal
    assert (body.aborted, own.signal.aborted) == (True, False)
    assert body.reason is not None
    assert (body.reason.source, body.reason.text) == ("caller", "enough")
    assert facts(result) == STOPPED
    assert stop_of(result) == ("caller", "enough", StopPhase.RUNNING)


@pytest.mark.case("T12")
async def test_a_wrappers_abort_stops_the_body_under_the_wrappers_name_and_not_the_caller(gate: Gate) -> None:
    own, caller = AbortController(), AbortController()
    async with open_runner([wait, write]) as runner:

        async def limit(call: ToolCall, go_on: Any) -> Any:
            return await go_on(call, signal=own.signal)

        runner.use(limit)
        batch = runner.start_batch([ToolCall("wait")], signal=caller.signal)
        await gate.reached()
        own.abort("too dear")
        result = only(await batch.results())
        assert not caller.signal.aborted
        assert batch._run.signal.reason is None
    assert facts(result) == STOPPED
    assert stop_of(result) == ("wrapper:limit", "too dear", StopPhase.RUNNING)
    assert "from the wrapper limit (too dear)" in text(result)


@pytest.mark.case("T13")
async def test_past_the_wrappers_a_post_hook_is_given_the_callers_signal_again() -> None:
    own, caller = AbortController(), AbortController()
    seen: list[AbortSignal] = []
    async with open_runner([write]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            result = await go_on(call, signal=own.signal)
            own.abort("mine alone")
            return result

        async def post(call: ToolCall, result: ToolResult, signal: AbortSignal) -> None:
            seen.append(signal)
            assert not signal.aborted
            caller.abort("enough")
            assert signal.aborted

        runner.use(wrap)
        runner.post_execute(post)
        result = await runner.run(WRITE, signal=caller.signal)
    [signal] = seen
    assert signal.reason is not None
    assert signal.reason.text == "enough"
    assert facts(result) == FINISHED_FIRST
    assert stop_of(result) == ("caller", "enough", StopPhase.FINISHING)


@pytest.mark.case("T18")
async def test_what_a_body_raises_is_a_result_before_wrappers_and_post_hooks_see_it() -> None:
    seen: list[ToolResult] = []

    @tool
    async def fail() -> None:
        """Fail."""
        raise ToolError("no such table", kind="sql")

    async with open_runner([fail]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            seen.append(await go_on(call))
            return seen[0]

        async def post(call: ToolCall, result: ToolResult, signal: AbortSignal) -> None:
            seen.append(result)

        runner.use(wrap)
        runner.post_execute(post)
        result = await runner.run("fail")
    assert [facts(one) for one in (*seen, result)] == [RAISED] * 3
    assert [one.error for one in seen] == [result.error] * 2
    assert result.error is not None
    assert (result.error.kind, result.error.message) == ("sql", "no such table")


@pytest.mark.case("T20")
async def test_the_order_is_pre_then_wrapper_in_then_body_then_wrapper_out_then_post() -> None:
    async with open_runner([write]) as runner:

        def pre(name: str) -> Any:
            async def hook(call: ToolCall, signal: AbortSignal) -> None:
                order.append(f"pre {name}")

            return hook

        def post(name: str) -> Any:
            async def hook(call: ToolCall, result: ToolResult, signal: AbortSignal) -> None:
                order.append(f"post {name}")

            return hook

        def wrapper(name: str) -> Any:
            async def wrap(call: ToolCall, go_on: Any) -> Any:
                order.append(f"in {name}")
                result = await go_on(call)
                order.append(f"out {name}")
                return result

            return wrap

        for name in ("1", "2"):
            runner.post_execute(post(name))
            runner.use(wrapper(name))
            runner.pre_execute(pre(name))
            runner.guard(lambda call, name=name: order.append(f"guard {name}"))  # type: ignore[misc]
        result = await runner.run(WRITE)
    assert facts(result) == SUCCEEDED
    rows = ["pre 1", "pre 2", "guard 1", "guard 2", "in 1", "in 2", "body a", "out 2", "out 1", "post 1", "post 2"]
    assert order == rows


@pytest.mark.case("T21")
async def test_a_wrappers_signal_is_merged_for_the_body_also_when_nobody_aborts() -> None:
    own, caller = AbortController(), AbortController()
    async with open_runner([write]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            return await go_on(call, signal=own.signal)

        runner.use(wrap)
        result = await runner.run(WRITE, signal=caller.signal)
        [body] = signals
        assert body is not own.signal
        assert body is not caller.signal
        assert not body.aborted
        own.abort("late")
        assert body.reason is not None
        assert body.reason.source == "wrapper:wrap"
    assert facts(result) == SUCCEEDED


@pytest.mark.case("T22")
async def test_another_calls_result_becomes_this_calls_own_and_says_whose_it_was() -> None:
    async with open_runner([write]) as runner:
        first = await runner.run(WRITE)

        async def cache(call: ToolCall, go_on: Any) -> ToolResult:
            return first

        runner.use(cache)
        second = await runner.run(ToolCall("write", {"path": "b"}, call_id="c2"))
    assert order == ["body a"]
    assert facts(second) == (Outcome.SUCCEEDED, None, False, None)
    assert effects(second) == (EffectState.NONE, Evidence.NOT_STARTED)
    assert (second.call_id, second.arguments, second.run_id != first.run_id) == ("c2", {"path": "b"}, True)
    assert (second.about_run_id, second.replayed) == (first.run_id, True)
    assert (second.value, second.content) == (first.value, first.content)
    assert second.effects.records == ()
    assert first.run_id in text(second)


@pytest.mark.case("T22")
async def test_another_calls_failed_result_is_no_success_of_this_one() -> None:
    @tool
    async def fail() -> None:
        """Fail."""
        raise ToolError("no such table", kind="sql")

    async with open_runner([write, fail]) as runner:
        failed = await runner.run("fail")

        async def cache(call: ToolCall, go_on: Any) -> ToolResult:
            return failed

        runner.use(cache)
        result = await runner.run(WRITE)
    check_never_started(result, WRAPPER_FAILED_BEFORE)
    assert result.error == failed.error
    assert order == []


@pytest.mark.case("T22")
async def test_a_body_that_ran_is_not_called_a_replay_because_its_wrapper_showed_another_result() -> None:
    async with open_runner([write]) as runner:
        first = await runner.run(WRITE)

        async def cache(call: ToolCall, go_on: Any) -> ToolResult:
            await go_on(call)
            return first

        runner.use(cache)
        second = await runner.run(ToolCall("write", {"path": "b"}))
    assert order == ["body a", "body b"]
    assert facts(second) == SUCCEEDED
    assert (second.about_run_id, second.replayed, second.value) == (first.run_id, False, "wrote a")
    assert [record.target for record in second.effects.records] == ["b"]
    assert "nothing was run" not in text(second)
    assert "nothing was run" not in second.summary()


def bad_answers() -> list[Any]:
    return [
        pytest.param(lambda result: None, id="None"),
        pytest.param(lambda result: object(), id="object"),
        pytest.param(lambda result: 5, id="not what the annotation says"),
        pytest.param(lambda result: Reply(object()), id="Reply of no JSON"),  # type: ignore[arg-type]
        pytest.param(lambda result: Reply("ok", ("text",)), id="Reply without content"),  # type: ignore[arg-type]
        pytest.param(lambda result: Reply("ok", (), (float("nan"),)), id="NaN to follow up"),
        pytest.param(lambda result: Reply("\udc80"), id="no UTF-8"),
        pytest.param(lambda result: changed(result, value=object()), id="changed result"),
    ]


@pytest.mark.parametrize("answer", bad_answers())
async def test_an_answer_that_is_none_fails_the_call_and_keeps_what_its_body_said(answer: Any) -> None:
    async with open_runner([write]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            return answer(await go_on(call))

        runner.use(wrap)
        result = await runner.run(WRITE)
    assert facts(result) == HOOK_FAILED_AFTER
    assert (result.value, result.content) == ("wrote a", (Text("wrote a"),))
    assert effects(result) == (EffectState.COMPLETED, Evidence.REPORTED)
    assert result.error is not None
    assert result.error.kind == ErrorKind.HOOK
    assert "wrapper 'wrap' returned" in result.error.message


async def test_a_wrapper_that_forgets_to_await_next_starts_no_body() -> None:
    async with open_runner([write]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            return go_on(call)

        runner.use(wrap)
        result = await runner.run(WRITE)
    check_never_started(result, WRAPPER_FAILED_BEFORE)
    assert result.error is not None
    assert "await" in result.error.message
    assert order == []


async def test_a_wrapper_that_never_goes_on_and_returns_nothing_starts_no_body() -> None:
    async with open_runner([write]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> None:
            return

        runner.use(wrap)
        check_never_started(await runner.run(WRITE), WRAPPER_FAILED_BEFORE)
    assert order == []


@pytest.mark.parametrize("swallowed", [True, False])
async def test_going_on_twice_starts_one_body(swallowed: bool) -> None:
    async with open_runner([write]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            result = await go_on(call)
            if not swallowed:
                return await go_on(call)
            with pytest.raises(NextMisused, match="second time"):
                await go_on(call)
            return result

        runner.use(wrap)
        result = await runner.run(WRITE)
    assert order == ["body a"]
    assert (result.value, effects(result)) == ("wrote a", (EffectState.COMPLETED, Evidence.REPORTED))
    assert facts(result) == (SUCCEEDED if swallowed else HOOK_FAILED_AFTER)
    assert swallowed or (result.error is not None and result.error.kind == "next_misused")


async def test_going_on_twice_at_once_starts_one_body() -> None:
    async with open_runner([write]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            results: list[ToolResult] = []
            refused: list[NextMisused] = []

            async def one() -> None:
                try:
                    results.append(await go_on(call))
                except NextMisused as error:
                    refused.append(error)

            async with anyio.create_task_group() as group:
                group.start_soon(one)
                group.start_soon(one)
            assert len(refused) == 1
            return only(results)

        runner.use(wrap)
        assert facts(await runner.run(WRITE)) == SUCCEEDED
    assert order == ["body a"]


async def test_going_on_after_the_wrapper_returned_starts_no_body() -> None:
    late: list[Any] = []
    async with open_runner([write]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Reply:
            late.append(go_on)
            return Reply("cached")

        runner.use(wrap)
        result = await runner.run(WRITE)
        assert facts(result) == (Outcome.SUCCEEDED, None, False, None)
        with pytest.raises(NextMisused, match="after its wrapper had returned"):
            await late[0](WRITE)
    assert order == []


@pytest.mark.parametrize(
    "other",
    [
        ToolCall("write", {"path": "b"}, call_id="c1"),
        ToolCall("wait", {"path": "a"}, call_id="c1"),
        ToolCall("write", {"path": "a"}, call_id="c1", timeout=1),
        ToolCall("write", {"path": "a"}, call_id="c1", idempotency_key="k"),
        "write",
        None,
    ],
    ids=repr,
)
async def test_going_on_with_another_call_starts_no_body(other: Any) -> None:
    async with open_runner([write, wait]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            return await go_on(other)

        runner.use(wrap)
        result = await runner.run(WRITE)
    check_never_started(result, WRAPPER_FAILED_BEFORE)
    assert result.error is not None
    assert result.error.kind == "next_misused"
    assert order == []


async def test_a_wrapper_that_leaves_while_its_body_runs_is_overruled(gate: Gate) -> None:
    """The body is awaited, its facts are the result's, whatever the wrapper returned meanwhile."""
    async with open_runner([wait]) as runner:
        tasks: list[Any] = []

        async def wrap(call: ToolCall, go_on: Any) -> Reply:
            runner._services.root.spawn(lambda: go_on(call), "left behind")  # type: ignore[union-attr]
            await gate.reached()
            return Reply("too early", follow_up=("kept",))

        runner.use(wrap)
        batch = runner.start_batch([ToolCall("wait")])
        await gate.reached()
        await all_blocked()
        assert not batch._run.done.is_set()
        gate.open()
        result = only(await batch.results())
        assert tasks == []
    assert facts(result) == SUCCEEDED
    assert (result.value, result.follow_up) == ("too early", ("kept",))


@pytest.mark.parametrize("anyio_backend", [pytest.param(("asyncio", {"debug": True}), id="asyncio")])
async def test_a_wrappers_native_clock_only_listens(gate: Gate, anyio_backend: object) -> None:
    """`wait_for` cancels natively: the body goes on, the batch is not stopped, and nobody claims that the loop ended."""
    async with open_runner([wait, write]) as runner:
        cancelled = anyio.Event()

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            waiter = asyncio.create_task(go_on(call))
            await gate.reached()
            waiter.cancel()
            await all_blocked()
            cancelled.set()
            return await waiter

        unregister = runner.use(wrap)
        batch = runner.start_batch([ToolCall("wait")])
        await cancelled.wait()
        assert not batch._run.signal.aborted
        gate.open()
        result = only(await batch.results())
        assert facts(result) == SUCCEEDED
        assert (result.value, result.stop) == ("done", None)
        unregister()
        assert facts(await runner.run(WRITE)) == SUCCEEDED


async def test_a_wrappers_scope_around_next_only_listens(gate: Gate) -> None:
    async with open_runner([wait]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            with anyio.CancelScope() as scope:
                scopes.append(scope)
                results.append(await go_on(call))
            return results[0]

        scopes: list[anyio.CancelScope] = []
        results: list[ToolResult] = []
        runner.use(wrap)
        batch = runner.start_batch([ToolCall("wait")])
        await gate.reached()
        scopes[0].cancel()
        await all_blocked()
        assert not batch._run.done.is_set()
        gate.open()
        result = only(await batch.results())
    assert facts(result) == SUCCEEDED
    assert (result.value, result.stop) == ("done", None)


@pytest.mark.virtual_time
async def test_a_wrapper_that_hangs_after_the_body_is_a_failure_at_its_bound() -> None:
    async with open_runner([write], hook_timeout=0.05) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            await go_on(call)
            await anyio.sleep_forever()

        runner.use(wrap)
        result = await runner.run(WRITE)
    assert facts(result) == HOOK_FAILED_AFTER
    assert result.error is not None
    assert result.error.kind == ErrorKind.HOOK_TIMEOUT
    assert (result.value, effects(result)) == ("wrote a", (EffectState.COMPLETED, Evidence.REPORTED))


@pytest.mark.virtual_time
async def test_a_wrapper_that_hangs_before_the_body_is_bounded_once_an_abort_came() -> None:
    async with open_runner([write], hook_timeout=0.05) as runner:
        gate = Gate()

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            await gate.wait()
            await anyio.sleep_forever()

        runner.use(wrap)
        result = await stopped_at(runner, gate, WRITE)
    check_never_started(result, WRAPPER_FAILED_BEFORE)
    assert result.error is not None
    assert result.error.kind == ErrorKind.HOOK_TIMEOUT
    assert stop_of(result) == ("caller", "enough", StopPhase.BEFORE_DISPATCH)
    assert order == []


@pytest.mark.virtual_time
async def test_a_wrapper_may_wait_longer_than_hooks_may_while_nobody_aborts(gate: Gate) -> None:
    """It may be a queue; and while its inside runs it waits for that."""
    async with open_runner([wait], hook_timeout=0.01) as runner:
        before = Gate()

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            await before.wait()
            return await go_on(call)

        runner.use(wrap)
        batch = runner.start_batch([ToolCall("wait")])
        await before.reached()
        await anyio.sleep(0.03)  # a test of time: three times the bound
        before.open()
        await gate.reached()
        await anyio.sleep(0.03)
        gate.open()
        assert facts(only(await batch.results())) == SUCCEEDED


async def test_an_inner_wrappers_error_is_a_result_for_the_outer_one() -> None:
    seen: list[ToolResult] = []
    async with open_runner([write]) as runner:

        async def outer(call: ToolCall, go_on: Any) -> Any:
            seen.append(await go_on(call))
            return Reply("all is well")

        async def inner(call: ToolCall, go_on: Any) -> Any:
            await go_on(call)
            raise ToolError("cannot count", kind="meter")

        runner.use(outer)
        runner.use(inner)
        result = await runner.run(WRITE)
    assert facts(only(seen)) == HOOK_FAILED_AFTER
    assert facts(result) == HOOK_FAILED_AFTER  # facts are not a wrapper's to change
    assert result.error is not None
    assert (result.error.kind, result.value) == ("meter", "all is well")


async def test_an_unregistered_wrapper_still_ends_the_calls_that_it_is_in(gate: Gate) -> None:
    async with open_runner([wait]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            order.append("in")
            result = await go_on(call)
            order.append("out")
            return result

        unregister = runner.use(wrap)
        batch = runner.start_batch([ToolCall("wait")])
        await gate.reached()
        unregister()
        unregister()
        gate.open()
        await batch.results()
        assert order == ["in", "out"]
        await runner.run("wait")
    assert order == ["in", "out"]


async def test_the_earliest_of_several_signals_names_the_cause(gate: Gate) -> None:
    outer_own, inner_own = AbortController(), AbortController()
    async with open_runner([wait]) as runner:

        async def outer(call: ToolCall, go_on: Any) -> Any:
            return await go_on(call, signal=outer_own.signal)

        async def inner(call: ToolCall, go_on: Any) -> Any:
            return await go_on(call, signal=inner_own.signal)

        runner.use(outer)
        runner.use(inner)
        caller = AbortController()
        batch = runner.start_batch([ToolCall("wait")], signal=caller.signal)
        await gate.reached()
        inner_own.abort("first")
        outer_own.abort("second")
        caller.abort("third")
        result = only(await batch.results())
    assert stop_of(result) == ("wrapper:inner", "first", StopPhase.RUNNING)
    assert facts(result) == STOPPED


async def test_an_answer_in_the_bodys_place_is_a_success_that_never_started() -> None:
    async with open_runner([write]) as runner:

        async def mock(call: ToolCall, go_on: Any) -> str:
            return "mocked"

        runner.use(mock)
        result = await runner.run(WRITE)
    assert facts(result) == (Outcome.SUCCEEDED, None, False, None)
    assert effects(result) == (EffectState.NONE, Evidence.NOT_STARTED)
    assert (result.value, result.is_error, result.attempts, result.replayed) == ("mocked", False, 0, False)
    assert result_to_dict(result)["started"] is False
    assert order == []


async def test_after_the_answer_of_a_wrapper_an_abort_makes_it_a_call_that_never_started() -> None:
    async with open_runner([write]) as runner:
        gate = Gate()

        async def mock(call: ToolCall, go_on: Any) -> str:
            return "mocked"

        async def post(call: ToolCall, result: ToolResult, signal: AbortSignal) -> None:
            await gate.wait()

        runner.use(mock)
        runner.post_execute(post)
        result = await stopped_at(runner, gate, WRITE)
    check_stopped_early(result)
    assert (result.value, result.code) == ("mocked", Code.ABORTED_BEFORE_DISPATCH)
