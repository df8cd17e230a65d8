"""One runner with scripted tools, everything that it says about them, and what is true of them.

The truth is kept by the bodies themselves (`Entry`) and by the fake processes; nothing in it comes from the runner.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self, cast, final

import anyio

from toolrunner import AbortSignal, Command, Policy, Runner, ToolCall, command_tool
from toolrunner.policy import Approver, Rule, Verdict
from toolrunner.records import CallEnded, CallRecorded, CallSettled, Record
from toolrunner.testing import Entry, FakeCommand, FakeSupervisor, Gate, Recorder, Script, ScriptedTool
from toolrunner.tools import AnyTool
from toolrunner.tools.options import RetryPolicy

BOUND = 20.0
"""Seconds that nothing here may take, on the slowest machine."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What really happened to one call."""

    entries: tuple[Entry, ...]
    """Its own bodies, one for each attempt that was entered."""
    made: tuple[str, ...]
    """Changes that were really made, its children's included."""
    running: bool


@final
class World:
    """`async with World([tool, ...]) as world: results = await world.runner.run_batch(...)`; then `check(world, results)`."""

    def __init__(
        self,
        tools: Iterable[ScriptedTool],
        *,
        command: FakeCommand | None = None,
        ask: bool = False,
        approver: Approver | None = None,
        **settings: Any,
    ) -> None:
        self.tools = {one.name: one for one in [*tools, ScriptedTool("probe", read_only=True)]}
        self.answers_are_replaced = False
        """Whether a hook or wrapper puts other values in the place of the bodies'."""
        self.probe_may_fail = False
        """Whether a hook or wrapper is in the way of every call, the next one too."""
        self.max_parallel: int = settings.get("max_parallel", 10)
        self.checks = 0
        self.caller: AbortSignal | None = None
        """The caller's signal of this round, if it is known: no body may be entered once that is aborted."""
        for one in self.tools.values():
            one.on_enter = self._entered
        self.is_one_batch = False
        """Whether all its calls belong to one batch, so that they are committed in the model's order."""
        self.then: dict[str, Truth] = {}
        """What was true of each call when it was settled, copied: what a body that runs on does later is in no result."""
        self.early: list[str] = []
        """What was said of a body while it was not true yet."""
        self.recorder = Recorder(self._look)
        self.processes = FakeSupervisor(command)

        @command_tool
        def command_(word: str = "") -> Command:
            """Run a fake process."""
            return Command(["fake", word])

        asked = [name for name in (*self.tools, "command_") if name != "probe"]
        policy = Policy([Rule(Verdict.ALLOW), Rule(Verdict.ASK, asked)]) if ask else None
        every: list[AnyTool] = [*(one.tool for one in self.tools.values()), cast(AnyTool, command_)]
        self.runner = Runner(every, supervisor=self.processes.made, policy=policy, approver=approver, **settings)
        self.runner.on_record(self.recorder)

    async def __aenter__(self) -> Self:
        await self.runner.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with anyio.fail_after(BOUND, shield=True):
            await self.runner.aclose()

    # The truth.

    @property
    def accepted(self) -> list[CallRecorded]:
        return self.recorder.of("call/recorded")

    def children(self, run_id: str) -> list[str]:
        return [one.run_id for one in self.accepted if one.parent_run_id == run_id]

    def truth(self, run_id: str) -> Truth:
        entries = tuple(entry for one in self.tools.values() for entry in one.entries_of(run_id))
        below = [self.truth(child) for child in self.children(run_id)]
        made = [target for entry in entries for target in entry.made] + [target for one in below for target in one.made]
        return Truth(entries, tuple(made), any(entry.running for entry in entries) or any(one.running for one in below))

    def _entered(self, entry: Entry) -> None:
        self.early += self._wrongly_together()
        # A thread may be stopped between the decision and its first line, so only bodies in the loop can be told from late ones.
        if self.caller is None or self.tools[entry.tool].script.sync or entry.tool == "probe":
            return
        # A drain lets a started call go on to its end, its children included.
        is_child = any(one.run_id == entry.run_id and one.parent_run_id is not None for one in self.accepted)
        if (self.caller.immediate() if is_child else self.caller).aborted:
            self.early.append(f"{entry.tool} was entered although its caller had aborted before (3)")

    def _look(self, record: Record) -> None:
        """What must be true at the very moment at which the runner says that a call is over."""
        if isinstance(record, CallSettled):
            truth = self.truth(record.run_id)
            entries = tuple(replace(entry, made=list(entry.made)) for entry in truth.entries)
            self.then[record.run_id] = replace(truth, entries=entries)
        if isinstance(record, CallSettled) and self.truth(record.run_id).running and not record.result.still_running:
            self.early.append(f"{record.result.name} was published while its body, or a child's, was running and not listed")
        self.early += self._wrongly_together()
        if isinstance(record, CallEnded) and self.truth(record.run_id).running:
            self.early.append(f"call/ended of {record.run_id} came while its body, or a child's, was running")

    def _wrongly_together(self) -> Iterator[str]:
        """Whatever runs at this moment must hold what it needs, and be allowed to run beside the rest."""
        running = [entry for one in self.tools.values() for entry in one.entries if entry.running]
        parts = self.runner._services
        if parts is not None and len(running) > parts.leases.held:
            yield f"{len(running)} bodies run, and {parts.leases.held} hold what they need (9)"
        top = {one.run_id for one in self.accepted if one.parent_run_id is None}
        beside = [entry for entry in running if entry.run_id in top]
        if not self.is_one_batch:
            return
        if len(beside) > self.max_parallel:
            yield f"{len(beside)} calls of the batch run at once; at most {self.max_parallel} may"
        if len(beside) > 1 and not all(self.tools[entry.tool].tool.is_parallel({}) for entry in beside):
            yield f"{[entry.tool for entry in beside]} run at once, and one of them wants to be alone"

    def forget(self) -> None:
        """Begin a new round with the same runner."""
        self.recorder.records.clear()
        self.early.clear()
        self.then.clear()
        for one in self.tools.values():
            one.entries.clear()


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of body: how its tool is made, and how it is called."""

    script: Callable[[Gate | None], Script]
    options: dict[str, Any] = field(default_factory=dict)

    def made(self, name: str, gate: Gate | None = None) -> ScriptedTool:
        return ScriptedTool(name, self.script(gate), **self.options)


class OwnError(Exception):
    """What a scripted body raises."""


def kind(options: dict[str, Any] | None = None, **script: Any) -> Kind:
    return Kind(lambda gate: Script(gate=gate, **script), options or {})


KINDS: dict[str, Kind] = {
    "reads": kind({"read_only": True}),
    "reads slowly": kind({"read_only": True}, pauses=8),
    "writes": kind(changes=["a"]),
    "writes twice": kind(changes=["a", "b"]),
    "shields": kind(changes=["a"], shield=True),
    "declares nothing": kind(changes=["a"], declares=False),
    "stubborn": kind(changes=["a"], stubborn=True),
    "cleans up": kind(changes=["a"], cleanup=2),
    "fails after its change": kind(changes=["a"], error=OwnError("no")),
    "fails": kind(error=OwnError("no")),
    "is tried again": kind({"retry": RetryPolicy(3, 0, 0), "idempotent": True}, changes=["a"], error=OwnError("no"), failures=1),
    "fails, reads, is tried again": kind({"retry": RetryPolicy(2, 0, 0), "read_only": True}, error=OwnError("no")),
    "must not be tried again": kind({"retry": RetryPolicy(3, 0, 0)}, changes=["a"], error=OwnError("no"), failures=1),
    "sync": kind(changes=["a"], sync=True),
    "sync and stubborn": kind(changes=["a"], sync=True, stubborn=True),
    "sync and declares nothing": kind(changes=["a"], sync=True, declares=False),
    "sync and fails": kind(changes=["a"], sync=True, error=OwnError("no")),
    "has one lock": kind({"resources": lambda _: ["r"], "max_concurrency": 1}, changes=["a"]),
}


def calls(*names: str) -> list[ToolCall]:
    return [ToolCall(name, {}, call_id=f"c{number}") for number, name in enumerate(names)]


def named(tools: Sequence[ScriptedTool]) -> dict[str, ScriptedTool]:
    return {one.name: one for one in tools}
