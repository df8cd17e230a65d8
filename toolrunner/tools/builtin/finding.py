"""Finding the lines that match, in a process that is a job of the call: ripgrep, or our own program. No state.

Both say only in which lines of which files. The text of a line is read by us, by the way that never leaves the roots, so a file
that was swapped for a symlink while the process looked shows nothing of what it led to.
"""

import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from toolrunner.errors import ToolError
from toolrunner.process import Job, JobNotStarted, JobState, SpawnRefused
from toolrunner.tools.builtin.space import Space
from toolrunner.tools.command import Command
from toolrunner.tools.context import ToolContext

OWN = Path(__file__).with_name("own_search.py")
"""Our own program, started by its path, so that whatever the model's folder holds is not imported."""

LONGEST = 30.0
"""Seconds that a search may take: enough for a few gigabytes; what takes longer should be asked for more narrowly."""

MOST_PER_FILE = 1_000
"""Lines that are counted in one file: a log that matches everywhere must not push all else out."""

MOST_DEEP = 200
"""Folders in folders that are searched; no tree that people made is deeper."""

SKIPPED = (".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv")
"""Names that are left out below the folder that was asked for: what is in there was written by programs."""

READ = 1 << 20
"""Bytes taken from the job's log at a time."""


@final
@dataclass(frozen=True, slots=True)
class Wanted:
    """What to look for."""

    pattern: str
    literal: bool
    ignore_case: bool
    glob: str


@final
@dataclass(frozen=True, slots=True)
class Found:
    """The lines that matched: path from the folder that was searched, and number. `complete` is False with a reason in `why`."""

    lines: tuple[tuple[str, int], ...]
    why: str = ""

    @property
    def complete(self) -> bool:
        return not self.why


async def find(ctx: ToolContext[Any], space: Space, wanted: Wanted, folder: str, target: str) -> Found:
    """The lines in `target`, a name in `folder` or ".". Raises ToolError."""
    argv = _ripgrep(space.ripgrep, wanted, target) or _own(wanted, target)
    try:
        job = await ctx.jobs.start(Command(argv, cwd=folder, timeout=LONGEST), "search", read_only=True)
    except (SpawnRefused, JobNotStarted) as error:
        raise ToolError(f"the search was not started: {error}", kind="not_started") from error
    try:
        await job.wait()
    finally:
        if job.end is None:  # it only reads: there is nothing to give it time for
            with ctx.cleanup():
                await job.stop(0)
    return _found(job)


def _ripgrep(program: str | None, wanted: Wanted, target: str) -> tuple[str, ...] | None:
    path = shutil.which(program) if program is not None else None
    if path is None:
        return None
    globs = [*([wanted.glob] if wanted.glob else []), *(f"!{name}" for name in SKIPPED)]
    # --max-columns=1 keeps the text of lines out of what it prints; --encoding=none has it take files as they are.
    return (
        path,
        *("--no-config", "--color=never", "--no-heading", "--with-filename", "--line-number", "--null", "--max-columns=1"),
        *("--no-ignore", "--hidden", "--no-mmap", "--encoding=none", f"--max-count={MOST_PER_FILE}", f"--max-depth={MOST_DEEP}"),
        "--ignore-case" if wanted.ignore_case else "--case-sensitive",
        *(["--fixed-strings"] if wanted.literal else []),
        *(word for glob in globs for word in ("--glob", glob)),
        *("--regexp", wanted.pattern, "--", f"./{target}"),
    )


def _own(wanted: Wanted, target: str) -> tuple[str, ...]:
    if not sys.executable or getattr(sys, "frozen", False):
        raise ToolError("there is no ripgrep (rg) here and no Python to search with; use the shell", kind="not_started")
    regex = re.escape(wanted.pattern) if wanted.literal else wanted.pattern
    numbers = (str(MOST_PER_FILE), str(MOST_DEEP))
    case = "1" if wanted.ignore_case else "0"
    return (sys.executable, "-I", "-S", str(OWN), regex, case, *numbers, wanted.glob, "/".join(SKIPPED), f"./{target}")


def _found(job: Job) -> Found:
    text, skipped = _all(job, "stdout")
    lines = sorted({one for line in text.splitlines() if (one := _line(line)) is not None})
    if job.state is JobState.TIMED_OUT:
        return Found(tuple(lines), f"it took longer than {LONGEST:g} s and was ended; ask for less")
    assert job.end is not None
    if job.state is not JobState.EXITED or job.end.facts.exit_code not in (0, 1, 2):
        said, _ = _all(job, "stderr")
        raise ToolError(f"the search failed: {said.strip()[-500:] or job.state}", kind="search_failed")
    if job.end.facts.exit_code == 2 and not lines:  # noqa: PLR2004 - rg(1), EXIT STATUS
        said, _ = _all(job, "stderr")
        if "regex parse error" in said or "error: " in said:
            raise ToolError(f"pattern is not understood: {said.strip()[-500:]}", kind="bad_pattern")
    if skipped:
        return Found(tuple(lines), "there are more matches than could be kept; ask for less")
    return Found(tuple(lines), "some files or folders could not be read" if job.end.facts.exit_code == 2 else "")  # noqa: PLR2004


def _all(job: Job, stream: str) -> tuple[str, int]:
    """What is kept of a stream, and how many bytes before it are not."""
    parts, offset, skipped = [], 0, 0
    while True:
        piece = job.read(offset, stream, READ)
        parts.append(piece.text)
        skipped += piece.skipped
        if piece.eof or piece.next_offset == offset:
            return "".join(parts), skipped
        offset = piece.next_offset


def _line(said: str) -> tuple[str, int] | None:
    """`./path NUL number : ...`; None for what is something else: a warning, the rest of a line whose beginning is gone."""
    path, nul, rest = said.partition("\0")
    number = rest.partition(":")[0]
    return (path.removeprefix("./"), int(number)) if nul and path.startswith("./") and number.isdecimal() else None
