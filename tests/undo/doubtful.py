"""Tools that leave a call in doubt and find out afterwards, tools that use what it was about, and what is on record of it."""

from collections.abc import Awaitable, Callable
from typing import Any

from toolrunner import MemoryJournal, Runner, ToolCall, ToolContext, ToolResult, tool
from toolrunner.facts import Effects, EffectState
from toolrunner.records import CallReconciled
from toolrunner.results import Code, Outcome
from toolrunner.tools import Resource, ResourceMode

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
