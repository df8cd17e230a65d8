"""ScriptedTool: a tool whose body does what a script says and keeps the truth about itself, apart from all that the runner says.

State: the `Entry` of each time a body was entered, written by that body alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack, final

import anyio
from anyio.lowlevel import checkpoint
from pydantic import JsonValue

from toolrunner.testing.gates import Gate
from toolrunner.tools import AnyTool, Tool, ToolContext, tool
from toolrunner.tools.options import ToolOptions


@dataclass(eq=False, slots=True)
class Entry:
    """One body that was entered: what it really did, whatever anybody says of it."""

    tool: str
    run_id: str
    attempt: int
    made: list[str] = field(default_factory=list)
    """Targets whose change was really made, in order."""
    running: bool = True
    told: bool = False
    """It noticed that it was asked to stop: by a cancel, or by looking at its signal."""
    finished: bool = False
    """It came to the end of its script."""
    left: Literal["returned", "raised", "stopped"] | None = None
    """How it was left: `stopped` by a cancellation that came out of it. None while it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What a body does: pause, make each change with a pause before and after it, call children, then raise `error` or return.

    It pauses `pauses` times at first. A pause is the `gate` if there is one, else a checkpoint. `sync` bodies run in a thread.
    `stubborn` ones swallow each cancel, go on, and never look at their signal; sync ones that are not stubborn look at each
    pause and return early when stopped.
    `declares` says whether changes are made inside `ctx.effect`; `shield` is that of the effect. `error` is raised at the end,
    in the first `failures` attempts (None: in all). `cleanup` is a number of checkpoints awaited under `ctx.cleanup()` whenever
    the body is left. `children` are calls (name, arguments) made one after the other with `ctx.run`.
    """

    gate: Gate | None = None
    pauses: int = 1
    changes: Sequence[str] = ()
    children: Sequence[tuple[str, dict[str, Any]]] = ()
    sync: bool = False
    stubborn: bool = False
    declares: bool = True
    shield: bool = False
    error: BaseException | None = None
    failures: int | None = None
    cleanup: int = 0
    value: JsonValue = "done"


@final
class ScriptedTool:
    """`write = ScriptedTool("write", Script(changes=["file"])); Runner([write.tool])`. Takes one optional argument, `tag`."""

    def __init__(self, called: str, script: Script | None = None, /, **options: Unpack[ToolOptions]) -> None:
        self.name = called
        self.script = script if script is not None else Script()
        self.entries: list[Entry] = []
        self.on_enter: Callable[[Entry], object] | None = None
        """Called as the first thing that a body does: in the step in which the runner decided that it may start."""
        self.tool: AnyTool = self._made(options)

    def entries_of(self, run_id: str) -> list[Entry]:
        """The bodies that were entered for one call: none, one, or one for each attempt."""
        return [entry for entry in self.entries if entry.run_id == run_id]

    def _made(self, options: ToolOptions) -> Tool[..., Any]:
        async def body(ctx: ToolContext[Any], tag: str = "") -> Any:  # noqa: ARG001 - makes calls tell apart
            return await self._run(ctx)

        def sync_body(ctx: ToolContext[Any], tag: str = "") -> Any:  # noqa: ARG001 - the same
            return self._run_in_thread(ctx)

        options["name"], options["description"] = self.name, "A tool of a test."
        return tool(sync_body if self.script.sync else body, **options)

    def _enter(self, ctx: ToolContext[Any]) -> Entry:
        entry = Entry(self.name, ctx.run_id, ctx.attempt)
        self.entries.append(entry)
        if self.on_enter is not None:
            self.on_enter(entry)
        return entry

    def _end(self, entry: Entry) -> JsonValue:
        script = self.script
        if script.error is not None and (script.failures is None or len(self.entries_of(entry.run_id)) <= script.failures):
            raise script.error
        entry.finished = True
        return script.value

    async def _run(self, ctx: ToolContext[Any]) -> JsonValue:
        entry = self._enter(ctx)
        left: Literal["returned", "raised", "stopped"] = "raised"
        try:
            for _ in range(self.script.pauses):
                await self._pause(entry)
            for target in self.script.changes:
                await self._change(ctx, entry, target)
            for name, arguments in self.script.children:
                await ctx.run(name, arguments)
            value = self._end(entry)
            left = "returned"
        except anyio.get_cancelled_exc_class():
            entry.told, left = True, "stopped"
            raise
        else:
            return value
        finally:
            await self._clean_up(ctx)
            entry.running, entry.left = False, left

    async def _clean_up(self, ctx: ToolContext[Any]) -> None:
        if self.script.cleanup:
            with ctx.cleanup(), anyio.CancelScope(shield=True):
                for _ in range(self.script.cleanup):
                    await checkpoint()

    async def _change(self, ctx: ToolContext[Any], entry: Entry, target: str) -> None:
        if not self.script.declares:
            await self._make(entry, target)
            return
        async with ctx.effect("test", target, shield=self.script.shield) as effect:
            await self._make(entry, target)
            effect.receipt = f"made {target}"

    async def _make(self, entry: Entry, target: str) -> None:
        await self._pause(entry)
        entry.made.append(target)
        await self._pause(entry)

    async def _pause(self, entry: Entry) -> None:
        wait = checkpoint if self.script.gate is None else self.script.gate.wait
        if not self.script.stubborn:
            await wait()
            return
        try:
            await wait()
        except anyio.get_cancelled_exc_class():  # what a stubborn body does, and should not
            entry.told = True
            with anyio.CancelScope(shield=True):
                await wait()

    def _run_in_thread(self, ctx: ToolContext[Any]) -> JsonValue:
        entry = self._enter(ctx)
        try:
            value = self._in_thread(ctx, entry)
            entry.left = "returned"
        except BaseException:
            entry.left = "raised"
            raise
        else:
            return value
        finally:
            entry.running = False

    def _in_thread(self, ctx: ToolContext[Any], entry: Entry) -> JsonValue:
        if any(self._stopped(ctx, entry) for _ in range(self.script.pauses)):
            return None
        for target in self.script.changes:
            if self._stopped(ctx, entry):
                return None
            self._change_in_thread(ctx, entry, target)
        return None if self._stopped(ctx, entry) else self._end(entry)

    def _change_in_thread(self, ctx: ToolContext[Any], entry: Entry, target: str) -> None:
        if not self.script.declares:
            entry.made.append(target)
            return
        with ctx.effect("test", target) as effect:
            entry.made.append(target)
            effect.receipt = f"made {target}"

    def _stopped(self, ctx: ToolContext[Any], entry: Entry) -> bool:
        if self.script.gate is not None:
            self.script.gate.wait_blocking()
        if not self.script.stubborn and ctx.signal.aborted:
            entry.told = True
            return True
        return False
