"""The journal of a program's own calls, opened before anything runs, and its control socket. No state.

The command line's default is on disk: a fresh session of its own for each program. A journal that cannot be had means that
nothing runs; a control socket that cannot be had means only that `ps` and `cancel` do not know of this program.
"""

import contextlib
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import final

from toolrunner import control
from toolrunner.errors import ConfigError, JournalError, ToolrunnerError
from toolrunner.journal import SqliteJournal


@final
class NoJournal(ToolrunnerError):
    """The journal cannot be opened for writing, so nothing ran."""

    def __init__(self, why: object) -> None:
        super().__init__(f"{why}; nothing ran")


@final
@dataclass(frozen=True, slots=True)
class Where:
    """The journal that was asked for: by file, by session, or neither: a fresh session."""

    journal: Path | None = None
    session: str | None = None

    def open(self) -> SqliteJournal:
        """As its owner. Raises `NoJournal`."""
        try:
            return SqliteJournal.open(self.journal, session=self.session)
        except (JournalError, ConfigError) as error:
            raise NoJournal(error) from error


@contextlib.asynccontextmanager
async def controlled(
    runner: control.Controlled, journal: SqliteJournal, stop_all: Callable[[str], object]
) -> AsyncGenerator[None]:
    """Let `ps` and `cancel` know of this runner while the block lasts, if there is a safe place for a socket."""
    about = {"journal": str(journal.path)} | ({"session": journal.session} if journal.session is not None else {})
    async with contextlib.AsyncExitStack() as stack:
        with contextlib.suppress(control.NoPlace, OSError):
            await stack.enter_async_context(control.serve(runner, about=about, stop_all=stop_all))
        yield
