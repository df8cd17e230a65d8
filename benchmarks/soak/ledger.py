"""The truth about calls, told by files and lifelines, against what their results say.

State: counts, the lies found so far, and what is to be looked at once more because something might still happen to it; changed by
`body`, `process` and `look_again`.
"""

from collections import Counter
from pathlib import Path
from typing import final

from benchmarks.measure import Series, Trial
from benchmarks.victims.scene import Scene
from toolrunner import ToolResult
from toolrunner.facts import Containment

CERTAIN = ("reported", "observed")
"""Evidence on which a result may claim a change."""


@final
class Ledger:
    """One per soak. `stops` collects milliseconds from an abort to the result, for calls that had started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lies: list[str] = []
        self.counts: Counter[str] = Counter()
        self.stops = Series("toolrunner")
        self.left = 0
        self._again: dict[str, bool] = {}  # tag -> whether its effect was there when the result was

    def body(self, tag: str, result: ToolResult, waited: float | None) -> None:
        """Compare one in-process call. `waited`: seconds from the abort to the result."""
        entered, inside, done = ((self.folder / f"{tag}.{what}").exists() for what in ("entered", "inside", "done"))
        self._count(result, waited)
        self._lie(result, entered and not result.started, "said not started, and was entered")
        self._lie(result, result.started and not entered, "said started, and was never entered")
        self._lie(result, inside and result.still_running == (), "said nothing runs, and its body does")
        self._lie(result, done and result.effects.state == "none", "said no effects, and wrote")
        claims = result.effects.state == "completed" and result.effects.evidence in CERTAIN
        self._lie(result, claims and not done, "said it wrote, and did not")
        if not inside:
            self._again[tag] = done

    def process(self, scene: Scene, result: ToolResult, waited: float | None) -> None:
        """Compare one command, at once: its result has just come."""
        alive = scene.alive() if result.still_running == () else scene.left(0.05)
        self._count(result, waited)
        self._lie(result, alive > 0 and result.still_running == (), f"said nothing runs, and {alive} do")
        self._lie(result, alive == 0 and bool(result.still_running), "listed survivors, and nothing runs")
        if not result.started:
            self._lie(result, not alive and scene.was_entered(), "said not started, and ran")
        if result.process is not None and result.process.containment is Containment.KEEPER:
            self.left += alive

    def nobody(self, what: str, scene: Scene) -> None:
        """A call that nobody has a result of must have left nobody either."""
        self.counts[what] += 1
        if alive := scene.alive():
            self.lies.append(f"{scene.shape.name}: {what}, and {alive} ran on")

    def look_again(self) -> None:
        """What was over stays over: nothing was written after a result. Then the files go."""
        for tag, done in self._again.items():
            if not done and (self.folder / f"{tag}.done").exists():
                self.lies.append(f"{tag}: wrote after its result")
        self._again.clear()
        for path in self.folder.iterdir():
            path.unlink()

    def _count(self, result: ToolResult, waited: float | None) -> None:
        self.counts[result.outcome] += 1
        if waited is not None and result.started:
            self.stops.trials.append(Trial(waited * 1000))

    def _lie(self, result: ToolResult, is_one: bool, text: str) -> None:
        if is_one:
            self.lies.append(f"{result.name} {result.arguments}: {text} ({result.summary()})")
