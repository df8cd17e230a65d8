"""What models, callers and tools get wrong: each a clear error or result, nothing lost, nothing left running."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from batches.stage import Stage, opened, step, text

from toolrunner import AbortSignal, Command, Runner, ToolCall, ToolContext, command_tool, replace, tool
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


class Bye(BaseException):
    """Is no Exception."""


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
