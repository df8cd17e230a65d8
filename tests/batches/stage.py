"""Tools whose bodies start and end when the test says so, and the shapes that almost every test about batches needs.

State: a Stage per test, with the log of what its bodies did and one Part for each name they were called with.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, final
from weakref import WeakSet

import anyio

from toolrunner import MemoryJournal, Runner, ToolCall, ToolContext, ToolResult, Toolset, tool
from toolrunner.records import Record
from toolrunner.tools import Tools

BOUND = 60.0
"""Seconds for a whole test whose waits are all gates. Milliseconds on an idle machine; nobody but a hang waits it out."""


@dataclass(slots=True)
class Part:
    """One body under the test's control."""

    started: anyio.Event = field(default_factory=anyio.Event)
    go: anyio.Event = field(default_factory=anyio.Event)


@final
class Stage:
    """`step` may run beside others, `alone` may not; both wait for their Part, and `stubborn` does also when it is stopped.

    The log has `+name` when a body is entered, `-name` when it returns, `!name` when a cancel ended it.
    """

    def __init__(self) -> None:
        self.log: list[str] = []
        self._parts: dict[str, Part] = {}
        self._let_go = False
        _stages.add(self)

        @tool(parallel_safe=True)
        async def step(name: str, ctx: ToolContext[Any]) -> str:
            ctx.follow_up(f"of {name}")
            return await self.play(name)

        @tool(parallel_safe=False)
        async def alone(name: str) -> str:
            return await self.play(name)

        @tool(parallel_safe=True)
        async def stubborn(name: str) -> str:
            try:
                return await self.play(name)
            except anyio.get_cancelled_exc_class():
                with anyio.CancelScope(shield=True):
                    await self[name].go.wait()
                self.log.append(f"-{name}")
                return name

        self.step, self.alone, self.stubborn = step, alone, stubborn
        self.tools = Toolset([step, alone, stubborn])

    def __getitem__(self, name: str) -> Part:
        part = self._parts.setdefault(name, Part())
        if self._let_go:
            part.go.set()
        return part

    def let_go(self) -> None:
        """Let every body return, also those that are entered later."""
        self._let_go = True
        self.end(*self._parts)

    async def play(self, name: str) -> str:
        """The body's own course."""
        self.log.append(f"+{name}")
        self[name].started.set()
        try:
            await self[name].go.wait()
        except anyio.get_cancelled_exc_class():
            self.log.append(f"!{name}")
            raise
        self.log.append(f"-{name}")
        return name

    def end(self, *names: str) -> None:
        """Let these bodies return."""
        for name in names:
            self[name].go.set()

    async def started(self, *names: str) -> None:
        """Wait until these bodies were entered."""
        for name in names:
            await self[name].started.wait()

    @property
    def entered(self) -> list[str]:
        """The names of the bodies that were entered, in order."""
        return [line[1:] for line in self.log if line[0] == "+"]


_stages: "WeakSet[Stage]" = WeakSet()


class Refusing:
    """A journal with a bug: `append` raises at the records that `at` picks."""

    def __init__(self, at: Any) -> None:
        self.inner = MemoryJournal()
        self.at = at

    def append(self, *records: Record) -> Awaitable[None] | None:
        for record in records:
            if self.at(record):
                raise RuntimeError(f"bug at {record.type}")
        self.inner.append(*records)
        return None

    @property
    def error(self) -> str | None:
        return None

    async def aclose(self) -> None:
        pass


def step(name: str, **more: Any) -> ToolCall:
    """A call of `step`; its call id is its name."""
    return ToolCall("step", {"name": name}, call_id=name, **more)


def alone(name: str, **more: Any) -> ToolCall:
    """A call of `alone`."""
    return ToolCall("alone", {"name": name}, call_id=name, **more)


def stubborn(name: str, **more: Any) -> ToolCall:
    """A call of `stubborn`."""
    return ToolCall("stubborn", {"name": name}, call_id=name, **more)


@asynccontextmanager
async def opened(*tools: Tools, bound: float = BOUND, **settings: Any) -> AsyncIterator[Runner]:
    """A runner, entered, and a bound in seconds on everything that the test waits for in it."""
    with anyio.fail_after(bound):
        runner = await Runner(tools, **settings).__aenter__()
        try:
            yield runner
        except BaseException:
            # A test that failed does not wait for bodies that it would have let go later.
            for stage in _stages:
                stage.let_go()
            await runner.aclose(limit=1)
            raise
        await runner.aclose()


def leases(runner: Runner) -> int:
    """How many calls of the runner hold slots or locks (invariant 9)."""
    assert runner._services is not None
    return runner._services.leases.held


def ids(batch: Any) -> list[str | None]:
    """The call ids of some results, in their order."""
    return [result.call_id for result in batch]


def text(result: ToolResult) -> str:
    """Everything the model reads of a result."""
    return "\n".join(str(getattr(part, "text", part)) for part in result.content_for_model())


def of_type(records: list[Record], *types: str) -> list[Record]:
    """The records of these types, in their order."""
    return [record for record in records if record.type in types]


async def until(condition: Callable[[], object]) -> None:
    """Wait for a fact that nobody announces on this loop (a file, a thread): looked at every millisecond."""
    while not condition():  # noqa: ASYNC110 - the fact is the kernel's or another thread's; the caller's bound ends the wait
        await anyio.sleep(0.001)


UNSTARTED_CLAIMS = ("not started", "was not started", "before it started")
"""Words that may be said of a call that was never entered, and of no other."""


def assert_never_entered(result: ToolResult) -> None:
    """The facts and the words of a call that was stopped before its body."""
    assert (result.outcome, result.code) == ("aborted", "ABORTED_BEFORE_DISPATCH")
    assert (result.started, result.ended) == (False, None)
    assert (result.effects.state, result.effects.evidence) == ("none", "not_started")
    assert (result.value, result.process, result.still_running) == (None, None, ())
    assert result.stop is not None
    assert result.stop.phase == "before_dispatch"
    assert "It was not started, so it had no effects." in text(result)
    assert result.retry == "safe"


def assert_claims_no_more_than_known(result: ToolResult) -> None:
    """What holds for the words of every started call (invariant 5)."""
    assert result.started
    said = text(result) + result.summary()
    assert not any(claim in said for claim in UNSTARTED_CLAIMS)
    if result.effects.state == "unknown":
        assert "nothing was changed" not in said
        assert "no effects" not in said
    if result.effects.evidence not in ("reported", "observed"):
        assert "change was made" not in said
