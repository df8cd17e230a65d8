"""The crash matrix: runs killed at random, at a write or at any moment, under load, over many openings of the same journals.

    python tests/recovery/matrix.py --runs 500 --load 2

Each journal is opened, killed and opened again two to five times, then recovered and held against what the bodies really did.
Any lie is an AssertionError with the seed and the folder, which is kept. Prints what came of the calls.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import anyio
from recovery.crash_host import JOURNAL
from recovery.crashes import MODES, CrashHost, check, crash_host, starts_per_name

from toolrunner import Runner, SqliteJournal
from toolrunner.journal import check as check_file

LAST_WRITE = 45
"""Appends of one whole run, about."""

LAST_MOMENT = 0.15
"""Seconds that one run takes, about, on a busy machine."""

BUSY = "import time\nwhile True: pass"


@dataclass
class Figures:
    """What came of all runs."""

    runs: int = 0
    killed: int = 0
    journals: int = 0
    slowest: float = 0.0
    """Seconds of the slowest recovery, the opening included."""
    calls: Counter[str] = field(default_factory=Counter)

    def text(self) -> str:
        """For people."""
        told = ", ".join(f"{count} {what}" for what, count in self.calls.most_common())
        return (
            f"{self.runs} runs of {self.journals} journals, {self.killed} killed; every story is what the bodies did, or says"
            f" that it is not known; no call was started twice. Slowest recovery {self.slowest * 1000:.0f} ms. Calls: {told}."
        )


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Others that want the same processors."""
    with ExitStack() as stack:
        for _ in range(processes):
            stack.callback(stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY])).kill)
        yield


async def recover_and_check(folder: Path, figures: Figures) -> None:
    """Open it as an owner that nobody kills: what it says is true, whole, and says the same once more."""
    began = time.perf_counter()
    with anyio.fail_after(60):
        async with Runner(journal=SqliteJournal.open(folder / JOURNAL)):
            figures.slowest = max(figures.slowest, time.perf_counter() - began)
        results = check(folder)
        async with Runner(journal=SqliteJournal.open(folder / JOURNAL)) as runner:
            assert runner.recovery is not None
            assert runner.recovery.plan.records == ()
    assert check(folder) == results
    assert check_file(folder / JOURNAL).problems == ()
    assert set(starts_per_name(folder).values()) <= {1}
    figures.calls.update(
        "replayed" if one.replayed else str(one.code or one.outcome).lower().replace("_", " ") for one in results.values()
    )


def crash_once(host: CrashHost, folder: Path, dice: random.Random, backend: str) -> bool:
    """One run, killed at one of its writes or at any moment."""
    if dice.random() < 0.5:
        return host.crash(folder, backend, dice.randint(1, LAST_WRITE), dice.choice(MODES))
    return host.crash(folder, backend, dice.uniform(0, LAST_MOMENT), "moment")


def matrix(runs: int, folder: Path, *, seed: int = 0, load: int = 0) -> Figures:
    """Make that many runs. Raises AssertionError at the first untruth."""
    figures = Figures()
    with crash_host() as host, busy(load):
        while figures.runs < runs:
            dice = random.Random(f"{seed}/{figures.journals}")  # noqa: S311 - repeatable, and no secret
            place = folder / str(figures.journals)
            place.mkdir()
            backend = dice.choice(("asyncio", "trio"))
            for _ in range(min(dice.randint(2, 5), runs - figures.runs)):
                figures.killed += crash_once(host, place, dice, backend)
                figures.runs += 1
            try:
                anyio.run(recover_and_check, place, figures, backend=backend)
            except AssertionError as error:
                error.add_note(f"seed {seed}, journal {figures.journals}, in {place}")
                raise
            figures.journals += 1
            shutil.rmtree(place)
    return figures


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--load", type=int, default=2, help="busy processes beside it")
    parser.add_argument("--seed", type=int, default=0)
    wish = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="crash-matrix-"))
    print(matrix(wish.runs, folder, seed=wish.seed, load=wish.load).text())  # on a failure the folder stays
    folder.rmdir()


if __name__ == "__main__":
    main()
