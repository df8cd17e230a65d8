"""What stays as it is below a write root although the root may be written: what other programs run or obey. Reads only."""

import os
from collections.abc import Iterable
from pathlib import Path

from toolrunner.sandbox.places import Places
from toolrunner.sandbox.view import Table, is_within, write_roots
from toolrunner.sandbox.words import Level

GIT = ("hooks", "config")
"""Inside a git folder, what git runs, and what names things to run (core.hooksPath, core.fsmonitor, filters, more files)."""

NAMES = (
    ".bash_login", ".bash_logout", ".bash_profile", ".bashrc", ".claude", ".codex", ".cursor", ".devcontainer", ".envrc",
    ".gitconfig", ".gitmodules", ".idea", ".mcp.json", ".pre-commit-config.yaml", ".profile", ".ripgreprc", ".toolrunner",
    ".vscode", ".zlogin", ".zprofile", ".zshenv", ".zshrc", "toolrunner.toml",
)  # fmt: skip
"""Shell start-up files, settings of editors and agents that name commands, and our own."""

LINE_LIMIT = 4096


def protected(given: Table, places: Places, *, names: bool) -> Table:
    """The table with everything taken back that no call may have: ours, the host's code, and with `names` what is above."""
    table = _with_worktrees(given) if names else given
    if names:
        table = table.capped(_existing(table), Level.READ)
    table = table.capped([path for path in places.code if table.level(path) is Level.WRITE], Level.READ)
    return table.capped(places.ours, Level.HIDDEN)


def absent(given: Table) -> list[str]:
    """What would be protected, were it there: a call can make it, since what does not exist cannot be mounted over."""
    return [path for path in _names(write_roots(given)) if not os.path.lexists(path) and _is_likely(path)]


def _is_likely(path: str) -> bool:
    """Whether its name could be made to count at once: the git folder it belongs to is there already."""
    return os.path.basename(os.path.dirname(path)) == ".git" and os.path.isdir(os.path.dirname(path))


def _existing(table: Table) -> list[str]:
    return [path for path in _names(write_roots(table)) if os.path.lexists(path) and not os.path.islink(path)]


def _names(roots: Iterable[str]) -> list[str]:
    found = []
    for root in roots:
        found += [os.path.join(root, name) for name in NAMES]
        git = os.path.join(root, ".git")
        # A root may be a git folder itself: that of a linked worktree.
        folders = [git, *([root] if os.path.isfile(os.path.join(root, "HEAD")) else [])]
        found += [os.path.join(folder, name) for folder in folders for name in GIT]
        if os.path.isfile(git):  # of a worktree: another file there would lead git elsewhere
            found.append(git)
    return found


def _with_worktrees(table: Table) -> Table:
    """A linked worktree has its git folder elsewhere, and a commit writes there."""
    levels = dict(table.levels)
    for root in write_roots(table):
        common = _common_folder(root)
        if common is not None and table.level(common) is not Level.HIDDEN:
            levels[common] = Level.WRITE
    return Table(levels)


def _common_folder(root: str) -> str | None:
    """The shared git folder of a linked worktree (gitrepository-layout(5)).

    The folder named by `.git` must name this worktree in turn: else a file in a workspace could open any folder.
    """
    line = _line(Path(root, ".git"))
    if line is None or not line.startswith("gitdir: "):
        return None
    own = os.path.realpath(os.path.join(root, line.removeprefix("gitdir: ")))
    back, common = _line(Path(own, "gitdir")), _line(Path(own, "commondir"))
    if back is None or common is None or os.path.realpath(back) != os.path.realpath(os.path.join(root, ".git")):
        return None
    shared = os.path.realpath(os.path.join(own, common))
    return shared if is_within(own, os.path.join(shared, "worktrees")) and os.path.isfile(os.path.join(shared, "HEAD")) else None


def _line(path: Path) -> str | None:
    try:
        if not path.is_file() or path.is_symlink():
            return None
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            return file.readline(LINE_LIMIT).rstrip("\n")
    except OSError:
        return None
