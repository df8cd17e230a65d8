"""A context forwards to the runner's services, and says at once what a sync body cannot use."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import FrozenInstanceError
from types import TracebackType
from typing import Any, Self

import anyio
import pytest
from pydantic import JsonValue

from toolrunner.abort import AbortController
from toolrunner.calls import ToolCall
from toolrunner.errors import ToolrunnerError
from toolrunner.facts import Effects, EffectState, Evidence
from toolrunner.results import Outcome, ToolResult
from toolrunner.tools import AsyncOnly, BodyKind, ContextServices, EffectScope, ToolContext, tool


class Scope:
    """An effect that writes down what became of it; both forms of the block, as the protocol asks."""

    receipt: str | None = None

    def __init__(self, log: list[Any]) -> None:
        self.log = log

    def not_applied(self) -> None:
        self.log.append("not applied")

    def __enter__(self) -> Self:
        self.log.append("planned")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        self.log.append(("applied", self.receipt) if kind is None else "unknown")

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.__exit__(kind, error, trace)


class Services:
    def __init__(self) -> None:
        self.log: list[Any] = []

    def effect(self, kind: str, target: str, shield: bool, undo: object) -> EffectScope:
        self.log.append(("effect", kind, target, shield))
        return Scope(self.log)

    async def run(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        await anyio.lowlevel.checkpoint()
        self.log.append(("run", name, dict(arguments)))
        return ToolResult("r", name, Outcome.SUCCEEDED, started=True, ended="returned", effects=NOTHING)  # type: ignore[arg-type]

    def output(self, text: str) -> None:
        self.log.append(("output", text))

    def progress(self, message: str, done: float | None, total: float | None) -> None:
        self.log.append(("progress", message, done, total))

    def follow_up(self, value: JsonValue) -> None:
        self.log.append(("follow_up", value))

    def cleanup(self) -> AbstractContextManager[object]:
        self.log.append("cleanup")
        return nullcontext()


NOTHING = Effects(EffectState.NONE, Evidence.DECLARED)


def context(services: ContextServices, kind: BodyKind = BodyKind.ASYNC) -> ToolContext[dict[str, int]]:
    call = ToolCall("f", {"a": 1})
    return ToolContext(signal=AbortController().signal, deps={"d": 1}, call=call, run_id="r1", kind=kind, services=services)


def test_a_context_says_which_call_it_is_of() -> None:
    ctx = context(Services())
    assert (ctx.deps, ctx.call.arguments, ctx.run_id, ctx.attempt, ctx.signal.aborted) == ({"d": 1}, {"a": 1}, "r1", 1, False)
    with pytest.raises(FrozenInstanceError):
        ctx.run_id = "other"  # type: ignore[misc]
    assert "services" not in repr(ctx)


def test_a_context_can_be_built_with_its_type_in_the_test_of_a_tool() -> None:
    made = ToolContext[int](signal=AbortController().signal, deps=5, call=ToolCall("f"), run_id="r", services=Services())
    assert made.deps == 5


@pytest.mark.anyio
async def test_an_async_body_reaches_every_service() -> None:
    services = Services()
    ctx = context(services)
    async with ctx.effect("http", "url", shield=True) as effect:
        effect.receipt = "id-1"
    result = await ctx.run("child", {"b": 2})
    await ctx.run("bare")
    ctx.output("text")
    ctx.progress("half", 1, 2)
    ctx.progress()
    ctx.follow_up({"next": 1})
    with ctx.cleanup():
        await anyio.lowlevel.checkpoint()
    assert result.name == "child"
    assert services.log == [
        ("effect", "http", "url", True),
        "planned",
        ("applied", "id-1"),
        ("run", "child", {"b": 2}),
        ("run", "bare", {}),
        ("output", "text"),
        ("progress", "half", 1, 2),
        ("progress", "", None, None),
        ("follow_up", {"next": 1}),
        "cleanup",
    ]


@pytest.mark.anyio
async def test_children_can_run_side_by_side_in_a_task_group() -> None:
    services = Services()
    ctx = context(services)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(ctx.run, "one")
            group.start_soon(ctx.run, "two")
    assert sorted(services.log) == [("run", "one", {}), ("run", "two", {})]


def test_a_sync_body_declares_effects_with_a_plain_block() -> None:
    services = Services()
    ctx = context(services, BodyKind.SYNC)
    with ctx.effect("file", "a") as effect:
        effect.not_applied()
    with pytest.raises(ValueError, match="no"), ctx.effect("file", "b"):
        raise ValueError("no")
    assert services.log == [
        ("effect", "file", "a", False),
        "planned",
        "not applied",
        ("applied", None),
        ("effect", "file", "b", False),
        "planned",
        "unknown",
    ]


@pytest.mark.parametrize(
    "use, what",
    [(lambda ctx: ctx.run("child", {}), "ctx.run"), (lambda ctx: ctx.cleanup(), "ctx.cleanup")],
    ids=["run", "cleanup"],
)
def test_a_sync_body_is_told_at_once_what_it_cannot_use(use: Callable[[ToolContext[Any]], object], what: str) -> None:
    services = Services()
    with pytest.raises(ToolrunnerError, match=f"{what} has to be awaited, so only an async tool can use it") as found:
        use(context(services, BodyKind.SYNC))
    assert isinstance(found.value, AsyncOnly)
    assert services.log == []


@pytest.mark.anyio
async def test_a_tool_with_a_context_is_tested_by_calling_it() -> None:
    @tool
    async def f(ctx: ToolContext[dict[str, int]], a: int) -> int:
        ctx.output("hello")
        return ctx.deps["d"] + a

    services = Services()
    assert await f(context(services), 2) == 3
    assert f.takes_context == "ctx"
    assert services.log == [("output", "hello")]
