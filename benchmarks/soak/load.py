"""The load: what workers do at random until a phase is over. State: none beyond the dice and the counter of tags."""

import itertools
import random
import time
from collections.abc import Awaitable, Callable
from typing import final

import anyio

from benchmarks.soak.bodies import BODIES
from benchmarks.soak.ledger import Ledger
from benchmarks.victims.scene import Scene
from benchmarks.victims.shapes import FOURTEEN, ONE, STUBBORN, TREE, Shape
from toolrunner import AbortController, Runner, ToolCall

LONGEST = 0.08
"""Seconds that a body takes at most, and after which an abort comes at the latest: aborts hit all phases of a call."""

KILLER = Shape(
    "killer",
    "kills its keeper",
    1,
    lambda folder, token: [
        ("/bin/sh", "-c", 'exec 3>"$1"; echo >&3; kill -9 $PPID; exec sleep "$2"', "sh", f"{folder}/0", token)
    ],
)
SHAPES = (ONE, TREE, STUBBORN, KILLER, *FOURTEEN)
HEAVY = ("e1", "e2", "e5")
"""200 processes each: one time in ten of what the dice say."""


@final
class Load:
    """`turn` does one random thing and has its truth checked."""

    def __init__(self, keeper: Runner, loose: Runner, ledger: Ledger, dice: random.Random) -> None:
        self._keeper = keeper
        self._loose = loose
        self._ledger = ledger
        self._dice = dice
        self._tags = itertools.count()

    async def work(self, until: float) -> None:
        """Take turns until the clock says so (monotonic)."""
        while time.monotonic() < until:
            await self.turn()

    async def turn(self) -> None:
        """One random thing."""
        turns: tuple[Callable[[], Awaitable[None]], ...] = (self._body, self._batch, self._process, self._cancelled)
        await self._dice.choices(turns, weights=(6, 2, 4, 1))[0]()

    def _call(self) -> tuple[str, ToolCall]:
        tag = f"t{next(self._tags)}"
        arguments = {"folder": str(self._ledger.folder), "tag": tag, "seconds": self._dice.uniform(0, LONGEST)}
        return tag, ToolCall(self._dice.choice(BODIES).name, arguments)

    async def _body(self) -> None:
        tag, call = self._call()
        signal = Abort(self._dice)
        async with signal:
            result = await self._keeper.run(call, signal=signal.signal)
        self._ledger.body(tag, result, signal.waited)

    async def _batch(self) -> None:
        made = [self._call() for _ in range(self._dice.randint(2, 12))]
        signal = Abort(self._dice)
        async with signal:
            results = await self._keeper.run_batch([call for _, call in made], signal=signal.signal)
        for (tag, _), result in zip(made, results, strict=True):
            self._ledger.body(tag, result, None)

    def _shape(self) -> Shape:
        shape = self._dice.choice(SHAPES)
        return ONE if shape.name in HEAVY and self._dice.random() > 0.1 else shape  # noqa: PLR2004 - see HEAVY

    async def _process(self) -> None:
        shape = self._shape()
        # A fifth without keepers; not the one that kills its parent, which there is the host, as nobody promised otherwise.
        loose = self._dice.random() < 0.2 and shape is not KILLER  # noqa: PLR2004
        with Scene(shape) as scene:
            await self.process(scene, self._loose if loose else self._keeper)

    async def process(self, scene: Scene, runner: Runner) -> None:
        """One command, aborted some time after it was called: at its start, or when it is all there."""
        signal = Abort(self._dice, always=True)
        async with signal:
            result = await runner.run("launch", {"argv": list(scene.commands[0])}, signal=signal.signal)
        self._ledger.process(scene, result, signal.waited)

    async def _cancelled(self) -> None:
        """The host's own task is cancelled: it gets its cancellation when the call is over, so nobody may be left then."""
        with Scene(self._shape_that_ends()) as scene:
            with anyio.move_on_after(self._dice.uniform(0, LONGEST)):
                await self._keeper.run("launch", {"argv": list(scene.commands[0])})
            self._ledger.nobody("cancelled", scene)

    def _shape_that_ends(self) -> Shape:
        return self._dice.choice((ONE, TREE, STUBBORN))


@final
class Abort:
    """A signal that is aborted at some random time while the block runs; one time in four never, unless `always`."""

    def __init__(self, dice: random.Random, *, always: bool = False) -> None:
        self._controller = AbortController()
        self.signal = self._controller.signal
        self._seconds = dice.uniform(0, LONGEST) if always or dice.random() < 0.75 else None  # noqa: PLR2004 - see above
        self._at: float | None = None
        self.waited: float | None = None
        """Seconds from the abort to the end of the block."""

    async def _later(self, seconds: float) -> None:
        await anyio.sleep(seconds)
        self._at = time.perf_counter()
        self._controller.abort("soak")

    async def __aenter__(self) -> "Abort":
        self._tasks = await anyio.create_task_group().__aenter__()
        if self._seconds is not None:
            self._tasks.start_soon(self._later, self._seconds)
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._at is not None:
            self.waited = time.perf_counter() - self._at
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(*error)  # type: ignore[arg-type]
