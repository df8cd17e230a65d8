"""What models, callers and tools get wrong: each a clear error or result, nothing lost, nothing left running."""

import math
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from batches.stage import Stage, assert_claims_no_more_than_known, opened, step, text

from toolrunner import AbortSignal, Command, Runner, ToolCall, ToolContext, ToolError, command_tool, replace, tool
from toolrunner.errors import ConfigError, DuplicateTool, ToolrunnerError

pytestmark = pytest.mark.anyio

NO_DURATIONS = pytest.mark.parametrize("seconds", [0, -1, -0.5, math.nan, math.inf, -math.inf, True, "1"])


@pytest.mark.case("E11")
@NO_DURATIONS
@pytest.mark.parametrize("kind", ["async", "sync", "command"])
async def test_a_time_limit_that_is_no_duration_is_refused_when_the_tool_is_made(seconds: Any, kind: str) -> None:
    async def work() -> None: ...
    def work_in_thread() -> None: ...
    def run() -> Command:
        return Command(("true",))

    make: dict[str, Callable[[], Any]] = {
        "async": lambda: tool(work, timeout=seconds),
        "sync": lambda: tool(work_in_thread, timeout=seconds),
        "command": lambda: command_tool(run, timeout=seconds),
    }
    with pytest.raises(ToolrunnerError, match=r"timeout is .*; expected a finite number of seconds above 0, or None"):
        make[kind]()


@pytest.mark.case("E11")
@NO_DURATIONS
async def test_a_calls_own_time_limit_that_is_no_duration_is_rejected_by_name(seconds: Any) -> None:
    stage = Stage()
    async with opened(stage.tools) as runner:
        bad, good = await runner.run_batch([step("a", timeout=seconds), ToolCall("nope")])
    assert stage.log == []
    assert (bad.outcome, bad.code, bad.started) == ("rejected", "INVALID_ARGUMENTS", False)
    assert bad.error is not None
    assert "timeout is" in bad.error.message
    assert good.code == "UNKNOWN_TOOL"


@pytest.mark.case("E11")
@NO_DURATIONS
@pytest.mark.parametrize("what", ["hook_timeout", "approval_timeout", "settle_timeout", "host_cancel_wait"])
async def test_a_setting_that_is_no_duration_is_refused_when_the_runner_is_made(seconds: Any, what: str) -> None:
    with pytest.raises(ConfigError, match=f"{what} is"):
        Runner([], **{what: seconds})


@pytest.mark.parametrize("seconds", [-1, math.nan, math.inf, True, "1"])
async def test_a_grace_that_is_no_number_of_seconds_is_refused(seconds: Any) -> None:
    with pytest.raises(ConfigError, match="kill_after is"):
        Runner([], kill_after=seconds)
    Runner([], kill_after=0)


@pytest.mark.parametrize("name", ["stpe", "", "no such tool", "step\n", "x" * 10_000, "\x1b[31m", "stеp"])  # noqa: RUF001
async def test_an_unknown_tool_is_rejected_and_nothing_runs(name: str) -> None:
    stage = Stage()
    async with opened(stage.tools) as runner:
        result = await runner.run(name, {"name": "a"})
    assert stage.log == []
    assert (result.outcome, result.code, result.started, result.ended) == ("rejected", "UNKNOWN_TOOL", False, None)
    assert (result.effects.evidence, result.still_running, result.retry) == ("not_started", (), "fix_first")
    assert result.error is not None
    assert len(result.error.message) < 1000
    if name == "stpe":
        assert "did you mean 'step'?" in result.error.message


BAD_ARGUMENTS: dict[str, Any] = {
    "not JSON": "{not json",
    "a JSON list": "[1, 2]",
    "JSON null": "null",
    "a number": 7,
    "None": None,
    "bytes": b"{}",
    "a wrong type": {"name": 7},
    "a missing one": {},
    "an unknown one": {"name": "a", "nmae": "b"},
    "an object": {"name": object()},
    "NaN": {"name": math.nan},
    "a key that is no string": {1: "a"},
    "a lone surrogate": {"name": "\ud800"},
    "a set": {"name": {"a"}},
    "JSON that is nested too deeply": '{"name": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "JSON with NaN": '{"name": NaN}',
    "JSON that repeats itself": '{"name": 1, "name": 2}',
}


@pytest.mark.parametrize("arguments", BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
async def test_arguments_that_cannot_be_are_rejected_and_their_neighbours_run(arguments: Any) -> None:
    stage = Stage()
    stage.end("good")
    async with opened(stage.tools) as runner:
        bad, good = await runner.run_batch([ToolCall("step", arguments), step("good")])
    assert stage.entered == ["good"]
    assert (bad.outcome, bad.code, bad.started, bad.effects.state) == ("rejected", "INVALID_ARGUMENTS", False, "none")
    assert bad.error is not None
    assert bad.error.message
    assert "It was not started" in text(bad)
    assert good.outcome == "succeeded"


async def test_arguments_that_contain_themselves_are_rejected() -> None:
    stage = Stage()
    loop: dict[str, Any] = {}
    loop["name"] = loop
    async with opened(stage.tools) as runner:
        result = await runner.run("step", loop)
    assert (result.code, result.started) == ("INVALID_ARGUMENTS", False)


async def test_arguments_are_read_once_and_cannot_be_changed_afterwards() -> None:
    stage = Stage()
    arguments = {"name": "a"}
    async with opened(stage.tools) as runner:
        batch = runner.start_batch([ToolCall("step", arguments)])
        arguments["name"] = "b"
        await stage.started("a")
        stage.end("a")
        (result,) = await batch
    assert result.arguments == {"name": "a"}
    with pytest.raises(TypeError, match="frozen"):
        result.arguments["name"] = "c"


async def test_duplicate_names_are_refused_before_anything_runs() -> None:
    stage, other = Stage(), Stage()
    with pytest.raises(DuplicateTool, match="'step'"):
        Runner([stage.tools, other.step])
    async with opened(stage.tools) as runner:
        with pytest.raises(DuplicateTool, match="'step'"):
            runner.register(other.step)
        stage.end("a")
        assert (await runner.run(step("a"))).value == "a"


async def test_a_call_id_that_is_used_twice_is_refused_the_second_time() -> None:
    stage = Stage()
    stage.end("a", "b", "c")
    calls = [ToolCall("step", {"name": name}, call_id=id_) for name, id_ in (("a", "one"), ("b", "one"), ("c", "two"))]
    async with opened(stage.tools) as runner:
        first, second, third = await runner.run_batch([*calls])
        again = await runner.run_batch([calls[0]])
    assert stage.entered == ["a", "c", "a"]
    assert (second.outcome, second.code, second.started, second.call_id) == ("rejected", "INVALID_ARGUMENTS", False, "one")
    assert second.error is not None
    assert second.error.message == "call id 'one' is used by an earlier call of this batch"
    assert [first.outcome, third.outcome, again[0].outcome] == ["succeeded"] * 3


class Hostile(Exception):
    """Raises whatever is looked at."""

    def __str__(self) -> str:
        raise RuntimeError("no text for you")

    @property
    def args(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no arguments either")


class Bye(BaseException):
    """Is no Exception."""


def group() -> BaseException:
    return ExceptionGroup("several", [ValueError("one"), ExceptionGroup("inner", [OSError("two")])])


RAISED: dict[str, tuple[Callable[[], BaseException], str]] = {
    "an error": (lambda: ValueError("mine"), "ValueError: mine"),
    "an error without a text": (ValueError, "ValueError"),
    "a ToolError": (lambda: ToolError("plain words"), "plain words"),
    "a BaseException": (lambda: Bye("bye"), "Bye: bye"),
    "a generator's exit": (lambda: GeneratorExit("gone"), "GeneratorExit"),
    "an ExceptionGroup": (group, "two"),
    "a hostile one": (Hostile, "Hostile"),
    "a StopIteration": (lambda: StopIteration(1), "StopIteration"),
    "a cancellation of its own": (lambda: anyio.get_cancelled_exc_class()("mine"), "Cancelled"),
}


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize("raised, said", RAISED.values(), ids=RAISED)
async def test_whatever_a_body_raises_is_a_failed_result(raised: Callable[[], BaseException], said: str, sync: bool) -> None:
    stage = Stage()
    stage.end("a")
    errors: list[BaseException] = []
    try:
        errors.append(raised())
    except TypeError:
        pytest.skip("trio lets nobody make a cancellation up")

    @tool(name="work")
    def work_in_thread() -> None:
        raise errors[0]

    @tool
    async def work() -> None:
        raise errors[0]

    async with opened(work_in_thread if sync else work, stage.tools) as runner:
        result, after = await runner.run_batch([ToolCall("work"), step("a")])
        assert runner._services is not None
        assert runner._services.leases.held == 0
    assert (result.outcome, result.code, result.started, result.ended) == ("failed", "TOOL_ERROR", True, "raised")
    assert result.error is not None
    assert said in result.error.message
    assert (result.effects.state, result.stop) == ("unknown", None)
    assert_claims_no_more_than_known(result)
    assert after.outcome == "succeeded"


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("grouped", [False, True], ids=["bare", "in a group"])
async def test_an_interrupt_out_of_a_body_is_recorded_drains_the_batch_and_is_raised(
    error: type[BaseException], sync: bool, grouped: bool
) -> None:
    stage = Stage()

    def quit_() -> None:
        raise BaseExceptionGroup("several", [ValueError("one"), error("from the body")]) if grouped else error("from the body")

    @tool(name="quits", parallel_safe=True)
    def quits_in_thread() -> None:
        quit_()

    @tool(parallel_safe=True)
    async def quits() -> None:
        await stage.started("a")
        quit_()

    async with opened(quits_in_thread if sync else quits, stage.tools) as runner:
        batch = runner.start_batch([step("a"), ToolCall("quits"), ToolCall("alone", {"name": "never"})])
        with pytest.raises((error, BaseExceptionGroup), match=r"from the body|several"):
            await batch
        a, quitter, never = (runner.result(run_id) for run_id in batch.run_ids)
        stage.end("more")
        assert (await runner.run(step("more"))).value == "more"
    assert (quitter.outcome, quitter.code, quitter.started, quitter.ended) == ("failed", "TOOL_ERROR", True, "raised")
    assert quitter.error is not None
    assert "from the body" in quitter.error.message
    assert (a.outcome, a.ended) == ("aborted", "stopped")
    assert a.stop is not None
    assert (a.stop.source, a.stop.reason) == ("host", error.__name__)
    assert (never.code, never.started) == ("ABORTED_BEFORE_DISPATCH", False)
    assert "never" not in stage.entered


NO_JSON: dict[str, Any] = {
    "an object": object(),
    "NaN": math.nan,
    "an open file": pytest,
    "a lone surrogate": "\ud800",
    "a function": group,
    "an int that is too long to write": 10**5000,
}


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize("value", NO_JSON.values(), ids=NO_JSON)
async def test_a_body_that_returns_what_is_no_json_ran_and_has_invalid_output(value: Any, sync: bool) -> None:
    @tool(name="work")
    def work_in_thread() -> Any:
        return value

    @tool
    async def work() -> Any:
        return value

    async with opened(work_in_thread if sync else work) as runner:
        result = await runner.run("work")
    assert (result.outcome, result.code, result.started, result.ended) == ("failed", "INVALID_OUTPUT", True, "returned")
    assert (result.value, result.retry) == (None, "check_first")
    assert result.error is not None
    assert result.error.kind == "invalid_output"
    assert_claims_no_more_than_known(result)


async def test_a_coroutine_that_nobody_awaited_is_no_answer() -> None:
    async def later() -> int:
        return 1

    @tool
    def forgot() -> Any:
        return later()

    async with opened(forgot) as runner:
        result = await runner.run("forgot")
    assert (result.outcome, result.code) == ("failed", "INVALID_OUTPUT")


HOOK_FAULTS: dict[str, Callable[[], Any]] = {
    "raises": lambda: (_ for _ in ()).throw(ValueError("in the hook")),
    "raises a BaseException": lambda: (_ for _ in ()).throw(Bye("in the hook")),
    "answers with nonsense": lambda: 7,
    "answers for another place": lambda: replace("content"),
}


@pytest.mark.parametrize("fault", HOOK_FAULTS.values(), ids=HOOK_FAULTS)
async def test_a_pre_hook_that_is_broken_fails_closed_for_its_call_alone(fault: Callable[[], Any]) -> None:
    stage = Stage()
    stage.end("a", "b")

    async def hook(call: ToolCall, _: AbortSignal) -> Any:
        return fault() if call.call_id == "a" else None

    async with opened(stage.tools) as runner:
        runner.pre_execute(hook)
        a, b = await runner.run_batch([step("a"), step("b")])
    assert stage.entered == ["b"]
    assert (a.outcome, a.code, a.started, a.effects.state) == ("rejected", "HOOK_ERROR", False, "none")
    assert a.error is not None
    assert "hook" in a.error.message
    assert b.outcome == "succeeded"


async def test_a_body_that_changes_its_arguments_changes_nobody_elses() -> None:
    @tool
    async def work(items: list[int], ctx: ToolContext[Any]) -> int:
        items.append(99)
        with pytest.raises(TypeError):
            ctx.call.arguments["items"] = []  # type: ignore[index]
        return len(items)

    async with opened(work) as runner:
        result = await runner.run("work", {"items": [1]})
    assert result.outcome == "succeeded"
    assert result.arguments == {"items": [1]}


async def test_what_is_no_tool_call_is_refused_before_anything_runs() -> None:
    stage = Stage()
    async with opened(stage.tools) as runner:
        for nonsense in (["step"], [None], [{"name": "step"}], 7):
            with pytest.raises((TypeError, ConfigError)):
                await runner.run_batch(nonsense)  # type: ignore[arg-type]
        assert runner._services is not None
        assert list(runner._shelf.running()) == []
    assert stage.log == []
