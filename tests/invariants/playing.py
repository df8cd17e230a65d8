"""One random schedule, played: calls whose bodies, hooks and approvals all wait for the schedule to let them go on."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import anyio
import trio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint, current_token
from invariants.checking import check
from invariants.world import KINDS, World, kind

from toolrunner import AbortController, Decision, ToolCall
from toolrunner.runner.batch import Batch
from toolrunner.testing import Gate, Script, ScriptedApprover, ScriptedTool

GATED = {**KINDS, "calls a child": kind(children=[("child", {})], changes=["a"])}
"""Kinds of bodies; each call of a schedule has a tool, and so a gate, of its own."""

MOST_ROUNDS = 400
"""Looks at whether a batch is over, once everything is open; far more than any schedule needs."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """What is set up, and what happens in which order. Everything in it is a plain value, so that a failure can be read."""

    bodies: tuple[str, ...]
    around: tuple[str, ...] = ()
    ask: bool = False
    max_parallel: int = 2
    settle_timeout: float | None = None
    timeout: float | None = None
    deadline: float | None = None
    detach: bool = False
    actions: tuple[tuple[str, Any], ...] = ()


@final
@dataclass(eq=False)
class Play:
    """A schedule under way."""

    schedule: Schedule
    world: World
    gates: list[Gate]
    around: dict[str, Gate]
    caller: AbortController = field(default_factory=AbortController)
    wrapper: AbortController = field(default_factory=AbortController)
    host: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    batch: Batch | None = None
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Every question that was ever seen: its id and its call."""
    said_no: set[str] = field(default_factory=set)
    """Calls that were denied, by an answer that was taken."""
    results: Any = None
    tasks: TaskGroup | None = None

    async def act(self, action: str, value: Any) -> None:
        self.note_questions()
        await getattr(self, f"_{action.replace(' ', '_')}")(value)

    async def _open(self, number: int) -> None:
        self.gates[number % len(self.gates)].open()

    async def _open_around(self, number: int) -> None:
        if self.around:
            sorted(self.around.items())[number % len(self.around)][1].open()

    async def _abort(self, mode: str) -> None:
        self.caller.abort("schedule", mode=mode)

    async def _wrapper_aborts(self, _: None) -> None:
        self.wrapper.abort("schedule")

    async def _answer(self, word: str) -> None:
        self.answer(word, late=False)

    async def _answer_again(self, word: str) -> None:
        self.answer(word, late=True)

    async def _cancel_host(self, _: None) -> None:
        self.host.cancel()

    async def _pass_time(self, seconds: float) -> None:
        pass_time(seconds)

    async def _close(self, limit: float | None) -> None:
        if self.tasks is not None:
            self.tasks.start_soon(self.world.runner.aclose, limit)

    async def _steps(self, number: int) -> None:
        for _ in range(number):
            await checkpoint()

    def note_questions(self) -> None:
        for one in self.world.runner.pending_approvals:
            if (one.approval_id, one.run_id) not in self.asked:
                self.asked.append((one.approval_id, one.run_id))

    def answer(self, word: str, *, late: bool) -> None:
        pending = {one.approval_id for one in self.world.runner.pending_approvals}
        for approval_id, run_id in self.asked:
            if (approval_id in pending) is late:
                continue
            decision = {"allow": Decision.allow(), "deny": Decision.deny("no"), "stop": Decision.stop("no more")}[word]
            taken = self.world.runner.decide(approval_id, decision)
            assert not (late and taken), "an answer to a question that was settled is said to have been taken"
            if taken and word != "allow":
                self.said_no.add(run_id)
            return

    def open_all(self) -> None:
        for gate in [*self.gates, *self.around.values()]:
            gate.open()
        self.note_questions()
        while self.world.runner.pending_approvals:
            self.answer("allow", late=False)
            self.note_questions()


async def play(schedule: Schedule) -> None:
    """Play it, let everything end, and ask for every invariant."""
    gates = [Gate() for _ in schedule.bodies]
    tools = [GATED[body].made(f"t{number}", gates[number]) for number, body in enumerate(schedule.bodies)]
    child = ScriptedTool("child", Script(changes=["of the child"], gate=gates[0]))
    world = World(
        [*tools, child],
        ask=schedule.ask,
        approver=ScriptedApprover([None] * 100),
        max_parallel=schedule.max_parallel,
        settle_timeout=schedule.settle_timeout,
        on_host_cancel="detach" if schedule.detach else "settle",
    )
    world.is_one_batch = True
    this = Play(schedule, world, gates, {name: Gate() for name in schedule.around})
    for name, gate in this.around.items():
        AROUND[name](this, gate)
    async with world:
        await _played(this)
        await check(world, this.results)
        for run_id in this.said_no:
            assert not world.truth(run_id).entries, "a call was started although it had been denied"


async def _played(this: Play) -> None:
    plan, runner = this.schedule, this.world.runner
    made = [ToolCall(f"t{number}", {}, timeout=plan.timeout) for number in range(len(plan.bodies))]
    batch = this.batch = runner.start_batch(made, signal=this.caller.signal, deadline=plan.deadline)

    async def host() -> None:
        with this.host:
            this.results = await batch.results()

    async with anyio.create_task_group() as tasks:
        this.tasks = tasks
        tasks.start_soon(host)
        for action, value in plan.actions:
            await this.act(action, value)
            for _ in range(4):
                await checkpoint()
        await _ended(this, batch)


async def _ended(this: Play, batch: Batch) -> None:
    """Let everything go on until the batch is over. No time-out does that here: on trio it would be a virtual one."""
    for number in range(MOST_ROUNDS):
        this.open_all()
        if batch._run.done.is_set():
            return
        for _ in range(10):
            await checkpoint()
        if number > MOST_ROUNDS // 2:
            time.sleep(0.002)  # a thread may need the interpreter
            pass_time(1)
    raise AssertionError("the batch does not end although everything is open")


def pass_time(seconds: float) -> None:
    """On trio's mock clock; asyncio has none, so nothing of a schedule depends on time there."""
    if not hasattr(current_token().native_token, "call_soon"):
        clock = trio.lowlevel.current_clock()
        assert isinstance(clock, trio.testing.MockClock)
        clock.jump(seconds)


# What stands around the calls. Each waits at its own gate; `probe` passes them all.


def _pre(this: Play, gate: Gate, answer: Callable[[], Any]) -> None:
    async def pre(call: Any, signal: Any) -> Any:
        if call.name == "probe":
            return None
        await gate.wait()
        return answer()

    this.world.runner.pre_execute(pre)


def _post(this: Play, gate: Gate, answer: Callable[[], Any]) -> None:
    async def post(call: Any, result: Any, signal: Any) -> Any:
        if call.name == "probe":
            return None
        await gate.wait()
        return answer()

    this.world.runner.post_execute(post)


def _fail() -> None:
    raise OSError("of the hook")


def _wrap(this: Play, gate: Gate, after: Callable[[], Any]) -> None:
    async def wrapper(call: Any, next_: Any) -> Any:
        if call.name == "probe":
            return await next_(call)
        await gate.wait()
        result = await next_(call, signal=this.wrapper.signal)
        after()
        return result

    this.world.runner.use(wrapper)


AROUND: dict[str, Callable[[Play, Gate], None]] = {
    "pre hook": lambda this, gate: _pre(this, gate, lambda: None),
    "pre hook that fails": lambda this, gate: _pre(this, gate, _fail),
    "post hook": lambda this, gate: _post(this, gate, lambda: None),
    "post hook that fails": lambda this, gate: _post(this, gate, _fail),
    "wrapper": lambda this, gate: _wrap(this, gate, lambda: None),
    "wrapper that fails": lambda this, gate: _wrap(this, gate, _fail),
}
