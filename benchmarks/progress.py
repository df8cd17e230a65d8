"""Progress on a terminal; nothing where there is none. State: the bar."""

import sys
from types import TracebackType
from typing import Self, final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


@final
class Watching:
    """Shows which benchmark runs and how many trials it has done. Writes to stderr, which `--json` leaves free."""

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(file=sys.stderr),
            disable=not sys.stderr.isatty(),
            # No thread that redraws while something is being measured; each trial that is over moves the bar itself.
            auto_refresh=False,
            transient=True,
        )
        self._task = self._bar.add_task("", total=None)

    def begin(self, name: str) -> None:
        """The next benchmark."""
        self._bar.reset(self._task, description=name, total=None)
        self._bar.refresh()

    def tick(self) -> None:
        """One more trial is over."""
        self._bar.advance(self._task)
        self._bar.refresh()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.stop()
