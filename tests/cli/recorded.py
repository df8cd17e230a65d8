"""Records to look at: a real Runner over a journal in memory, with a call for each way in which calls end."""

from toolrunner import AbortController, MemoryJournal, Policy, Runner, ToolCall, ToolContext, tool
from toolrunner.cli.views.story import Noted, Story, stories
from toolrunner.records import Record

EVIL = "<script>document.title='owned'</script>\u202e\x1b[31m\"'&\n"


@tool
def publish(ctx: ToolContext[None], text: str) -> str:
    """Write, with an effect."""
    with ctx.effect("file", f"draft {text}") as effect:
        effect.receipt = "r1"
    return f"published {text}"


@tool
def breaks(ctx: ToolContext[None]) -> None:
    """Leave an effect in doubt."""
    with ctx.effect("http", "POST /orders"):
        raise ValueError(EVIL)


@tool(timeout=0.05)
async def slow(ctx: ToolContext[None]) -> None:
    """Run over its time."""
    await ctx.signal.wait()
    ctx.signal.raise_if_aborted()


def session(*, evil: str = EVIL) -> list[Record]:
    """The records of a session."""
    journal = MemoryJournal()
    stop = AbortController()

    @tool
    async def stopped(ctx: ToolContext[None]) -> None:
        """Is stopped by the caller."""
        stop.abort(evil)
        await ctx.signal.wait()
        ctx.signal.raise_if_aborted()

    @tool
    async def outer(ctx: ToolContext[None]) -> str:
        """Make a child call."""
        return str((await ctx.run("publish", {"text": "child"})).outcome)

    policy = Policy.of(allow=["*"])
    with Runner.blocking([publish, breaks, slow, stopped, outer], journal=journal, policy=policy) as runner:
        runner.run_batch([
            ToolCall("publish", {"text": evil}, call_id="c1", idempotency_key="key-1"),
            ToolCall("breaks", {}, call_id="c2"),
            ToolCall("slow", {}, call_id=evil),
            ToolCall("outer", {}, call_id="c4"),
            ToolCall("nowhere" + evil, {}, call_id="c5"),
        ])  # fmt: skip
        late = ToolCall("publish", {"text": "late"}, call_id="c7")
        runner.run_batch([ToolCall("stopped", {}, call_id="c6"), late], signal=stop.signal)
    return list(journal)


def noted(taken: list[Record]) -> list[Noted]:
    """The records with the wall clock for the session's."""
    return [Noted(record, (record.at - taken[0].at).total_seconds()) for record in taken]


def recorded_stories() -> tuple[Story, ...]:
    """The session's calls."""
    return stories(noted(session()))
