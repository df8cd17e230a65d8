"""The JSON form of every kind of result that a runner makes: one line, UTF-8, lossless, and what its schema says."""

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from pipeline.bench import check_round_trip, only, open_runner, stopped_at

from toolrunner import (
    AbortController,
    AbortSignal,
    Decision,
    Policy,
    Reply,
    Runner,
    ToolCall,
    ToolContext,
    ToolError,
    ToolResult,
    cancel,
    shell,
    tool,
)
from toolrunner.facts import Content, File, Image, Json, Text
from toolrunner.results import Error, Outcome, result_from_json, result_to_dict, result_to_json, schema
from toolrunner.testing import Gate

pytestmark = pytest.mark.anyio

BAD = "caf\udce9"  # a name of a file in Latin-1, as os.fsdecode gives it


@tool
async def rich(ctx: ToolContext[Any], value: Any = None) -> Reply:
    """Use every part of a reply."""
    async with ctx.effect("file", f"/w/{BAD}") as effect:
        effect.receipt = BAD
    async with ctx.effect("file", Path("b")) as effect:  # type: ignore[arg-type]
        effect.not_applied()
    ctx.follow_up({"n": [1, 2.5, None, True, "é"]})
    shown: list[Content] = [
        Text("é\n\u2028"),
        Image("aGk=", "image/png"),
        File("aGk=", "text/plain", "a"),
        Json({"a": [1]}),
    ]
    return Reply({"given": value}, shown, ("more",), Error("half", "some") if value == "error" else None)


@tool
async def fail(kind: str) -> None:
    """Fail with a text that is no UTF-8."""
    if kind == "tool":
        raise ToolError(BAD, kind=BAD)
    raise OSError(BAD)


@tool
async def hold() -> None:
    """Wait for the gate."""
    await gates[-1].wait()


gates: list[Gate] = []
Make = Callable[[Runner, Path], Awaitable[ToolResult]]


async def value(runner: Runner, _: Path) -> ToolResult:
    return await runner.run(
        ToolCall("rich", {"value": [1e300, -0.0, 2**53, "\u0000é😀"]}, call_id="c1", provider_meta={"i": [1]})
    )


async def reply_with_error(runner: Runner, _: Path) -> ToolResult:
    return await runner.run("rich", {"value": "error"})


async def tool_error(runner: Runner, _: Path) -> ToolResult:
    return await runner.run("fail", {"kind": "tool"})


async def exception(runner: Runner, _: Path) -> ToolResult:
    return await runner.run("fail", {"kind": "other"})


async def unknown(runner: Runner, _: Path) -> ToolResult:
    return await runner.run(BAD, {})


async def invalid(runner: Runner, _: Path) -> ToolResult:
    return await runner.run("fail", {"kind": 5})


async def unreadable(runner: Runner, _: Path) -> ToolResult:
    return await runner.run("fail", '{"kind": "' + BAD)


async def escaped_surrogate(runner: Runner, _: Path) -> ToolResult:
    return await runner.run("fail", '{"kind": "\\udce9"}')


async def bad_metadata(runner: Runner, _: Path) -> ToolResult:
    return await runner.run(ToolCall("fail", {"kind": "tool"}, provider_meta={"x": object()}))  # type: ignore[dict-item]


async def aborted(runner: Runner, _: Path) -> ToolResult:
    gates.append(Gate())
    return await stopped_at(runner, gates[-1], ToolCall("hold"), text=BAD)


async def never_started(runner: Runner, _: Path) -> ToolResult:
    stop = AbortController()
    stop.abort(BAD)
    return await runner.run("hold", signal=stop.signal)


async def timed_out(runner: Runner, _: Path) -> ToolResult:
    gates.append(Gate())
    return await runner.run(ToolCall("hold", timeout=0.01))


async def denied_by_hook(runner: Runner, _: Path) -> ToolResult:
    async def pre(call: ToolCall, signal: AbortSignal) -> Decision:
        return Decision.deny(BAD)

    runner.pre_execute(pre)
    return await runner.run("hold")


async def cancelled_by_hook(runner: Runner, _: Path) -> ToolResult:
    async def pre(call: ToolCall, signal: AbortSignal) -> Any:
        return cancel(BAD)

    runner.pre_execute(pre)
    return await runner.run("hold")


async def denied_by_guard(runner: Runner, _: Path) -> ToolResult:
    runner.guard(lambda call: BAD)
    return await runner.run("hold")


async def answered_by_wrapper(runner: Runner, _: Path) -> ToolResult:
    first = await runner.run("rich")

    async def cache(call: ToolCall, go_on: Any) -> ToolResult:
        return first

    runner.use(cache)
    return await runner.run("rich")


async def replayed(runner: Runner, _: Path) -> ToolResult:
    call = ToolCall("rich", idempotency_key="k")
    await runner.run(call)
    return await runner.run(call)


async def command(runner: Runner, folder: Path) -> ToolResult:
    return await runner.run("shell", {"command": "printf 'caf\\351'; printf oops >&2; exit 3"})


async def command_stopped(runner: Runner, folder: Path) -> ToolResult:
    stop = AbortController()
    batch = runner.start_batch([ToolCall("shell", {"command": "printf x; sleep 613"})], signal=stop.signal)
    async for record in batch.events():
        if record.type == "output":
            stop.abort("enough")
    return only(await batch.results())


async def refused_command(runner: Runner, folder: Path) -> ToolResult:
    return await runner.run("shell", {"command": "true", "cwd": str(folder / "nowhere")})


async def watched(runner: Runner, folder: Path) -> ToolResult:
    @tool(watch=str(folder))
    async def touch() -> None:
        """Make a file whose name is no UTF-8."""
        with open(os.fsencode(folder) + b"/caf\xe9", "w"):
            pass

    runner.register(touch)
    return await runner.run("touch")


KINDS: dict[Make, Outcome] = {
    value: Outcome.SUCCEEDED,
    reply_with_error: Outcome.FAILED,
    tool_error: Outcome.FAILED,
    exception: Outcome.FAILED,
    unknown: Outcome.REJECTED,
    invalid: Outcome.REJECTED,
    unreadable: Outcome.REJECTED,
    escaped_surrogate: Outcome.REJECTED,
    bad_metadata: Outcome.REJECTED,
    aborted: Outcome.ABORTED,
    never_started: Outcome.ABORTED,
    timed_out: Outcome.TIMED_OUT,
    denied_by_hook: Outcome.DENIED,
    cancelled_by_hook: Outcome.DENIED,
    denied_by_guard: Outcome.DENIED,
    answered_by_wrapper: Outcome.SUCCEEDED,
    replayed: Outcome.SUCCEEDED,
    watched: Outcome.SUCCEEDED,
}
COMMANDS: dict[Make, Outcome] = {
    command: Outcome.FAILED,
    command_stopped: Outcome.ABORTED,
    refused_command: Outcome.REJECTED,
}


async def check_kind(make: Make, outcome: Outcome, folder: Path) -> None:
    async with open_runner([rich, fail, hold, shell]) as runner:
        result = await make(runner, folder)
    assert result.outcome is outcome
    check_round_trip(result)
    form = json.loads(result_to_json(result))
    assert form == result_to_dict(result)
    told = schema()
    assert set(form) == set(told["required"]) == set(told["properties"])
    assert form["schema_version"] == 1
    assert (form["outcome"], form["started"], form["is_error"]) == (str(outcome), result.started, result.is_error)
    assert form["summary"] == result.summary()
    assert "\udce9" not in json.dumps(form, ensure_ascii=False)
    # Read again it says the same in every text, and can be written again.
    again = result_from_json(result_to_json(result))
    assert (again.summary(), again.content_for_model()) == (result.summary(), result.content_for_model())
    assert result_to_json(again) == result_to_json(result)


@pytest.mark.parametrize("make, outcome", KINDS.items(), ids=lambda item: getattr(item, "__name__", str(item)))
async def test_every_kind_of_result_survives_its_json_form(make: Make, outcome: Outcome, tmp_path: Path) -> None:
    await check_kind(make, outcome, tmp_path)


@pytest.mark.processes
@pytest.mark.parametrize("make, outcome", COMMANDS.items(), ids=lambda item: getattr(item, "__name__", str(item)))
async def test_every_kind_of_result_of_a_command_survives_its_json_form(make: Make, outcome: Outcome, tmp_path: Path) -> None:
    await check_kind(make, outcome, tmp_path)


@pytest.mark.virtual_time
async def test_a_result_whose_body_still_runs_survives_its_json_form() -> None:
    @tool
    async def stubborn(ctx: ToolContext[Any]) -> None:
        """Hold on."""
        with ctx.cleanup():
            await gates[-1].wait()

    async with open_runner([stubborn], settle_timeout=0.01) as runner:
        gates.append(Gate())
        stop = AbortController()
        batch = runner.start_batch([ToolCall("stubborn")], signal=stop.signal)
        await gates[-1].reached()
        stop.abort("enough")
        result = only(await batch.results())
        assert result.still_running
        check_round_trip(result)
        gates[-1].open()


async def test_an_approved_and_changed_call_survives_its_json_form() -> None:
    class Approver:
        async def decide(self, request: Any, signal: AbortSignal) -> Decision:
            if request.arguments == {"kind": "tool"}:
                return Decision.allow()
            return Decision.allow(arguments={"kind": "tool"})

    async with open_runner([fail], policy=Policy.of(ask=["fail"]), approver=Approver()) as runner:
        result = await runner.run("fail", {"kind": "other"})
    assert (result.modified_by, result.arguments) == ("approver", {"kind": "tool"})
    check_round_trip(result)


async def test_a_childs_result_survives_its_json_form() -> None:
    seen: list[ToolResult] = []

    @tool
    async def parent(ctx: ToolContext[Any]) -> None:
        """Make a child call."""
        seen.append(await ctx.run("rich"))

    async with open_runner([rich, parent]) as runner:
        with anyio.fail_after(60):
            result = await runner.run("parent")
    check_round_trip(result)
    check_round_trip(only(seen))
    assert only(seen).parent_run_id == result.run_id
