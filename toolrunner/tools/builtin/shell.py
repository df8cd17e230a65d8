"""The tool `shell` of a set: the command line tool, in the set's first root, with a look at what it changed there. No state."""

from typing import Annotated, Any

from pydantic import Field

from toolrunner.tools.builtin.roots import PathText
from toolrunner.tools.builtin.space import Space
from toolrunner.tools.command import Command
from toolrunner.tools.decorator import command_tool
from toolrunner.tools.tool import Tool


def shell_tool(space: Space) -> Tool[..., Any]:
    """`shell`, started in the first root. With `watch` the folder it runs in is scanned before and after."""

    # Exclusive: nobody can tell from a command line what it touches.
    @command_tool(destructive=True, open_world=True, parallel_safe=False)
    def shell(
        command: Annotated[str, Field(min_length=1)],
        cwd: PathText = ".",
        timeout: Annotated[float | None, Field(gt=0, allow_inf_nan=False)] = None,
    ) -> Command:
        """Run a command line with /bin/sh and return its output and exit status.

        Standard input is empty. Whatever the command leaves running in the background is ended with it: for a server, or
        anything else that is to run on, use job_start.

        Args:
            command: The command line.
            cwd: Folder to run it in.
            timeout: Seconds after which it is ended. Default: no limit of its own.
        """
        folder = space.roots.absolute(cwd)
        watch = (folder,) if space.watch else ()
        argv = ("/bin/sh", "-c", command)
        return Command(argv, cwd=folder, timeout=timeout, output_limit=space.shown, watch=watch)

    return shell
