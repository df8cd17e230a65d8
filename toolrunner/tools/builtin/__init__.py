"""Tools that come with toolrunner: a shell, files, a search, jobs. A `Toolset`, to be taken whole or in part. No state.

    Runner(builtins("work").without("shell"))

The file tools follow a path one name at a time and never leave their roots; a write puts a whole new content in the place of the
old one in a single step. The shell and jobs are processes of this user and go where this user may: their roots are only where
they start. On Linux and other systems with openat(2); elsewhere `builtins` refuses.
"""

import os

from toolrunner.errors import ConfigError
from toolrunner.tools.builtin.edit_file import edit_file_tool
from toolrunner.tools.builtin.jobs import job_tools
from toolrunner.tools.builtin.list_dir import list_dir_tool
from toolrunner.tools.builtin.read_file import read_file_tool
from toolrunner.tools.builtin.roots import Folders, read_roots
from toolrunner.tools.builtin.search import search_tool
from toolrunner.tools.builtin.shell import shell_tool
from toolrunner.tools.builtin.space import DEFAULT_SHOWN, Space
from toolrunner.tools.builtin.write_file import write_file_tool
from toolrunner.tools.toolset import Toolset

__all__ = ["DEFAULT_SHOWN", "builtins"]


def builtins(
    roots: Folders = ".",
    *,
    readable: Folders = (),
    shown: int = DEFAULT_SHOWN,
    watch: bool = True,
    undo_on_abort: bool = False,
    ripgrep: str | None = "rg",
) -> Toolset:
    """The built-in tools: shell, read_file, write_file, edit_file, list_dir, search, job_start, job_read, job_write, job_wait,
    job_stop and job_list.

    Args:
        roots: the folders that the file tools may read and change; relative paths and commands begin in the first one.
        readable: more folders, to be read only. Give the runner's `spill_dir` here, so that the model can read the rest of an
            output of which a result names the file.
        shown: bytes of text that one result shows at most; of a command's output its head and its tail.
        watch: whether the shell's folder is scanned before and after, so that its result says what changed there. A scan is
            bounded (200,000 entries, 5 seconds).
        undo_on_abort: whether what a stopped call wrote is put back (`compensate="on_abort"`).
        ripgrep: the program that `search` runs if it is installed. None = only our own, slower, with the same output.

    Raises:
        ConfigError: no root, a root that is no folder, a system that cannot follow paths safely.
    """  # noqa: D205 - the list of names is the summary
    if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
        raise ConfigError("this system", os.name, "one with openat(2), so that paths can be followed safely")
    space = Space(read_roots(roots, readable), shown, watch, undo_on_abort, ripgrep)
    files = (read_file_tool(space), write_file_tool(space), edit_file_tool(space), list_dir_tool(space), search_tool(space))
    return Toolset((shell_tool(space), *files, *job_tools(space)), "builtin")
