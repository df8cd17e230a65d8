"""The built-in `shell` tool: a command line for /bin/sh, run as a supervised process. No state."""

from typing import Annotated

from pydantic import Field

from toolrunner.tools.command import Command
from toolrunner.tools.decorator import command_tool


# Exclusive: nobody can tell from a command line what it touches.
@command_tool(destructive=True, open_world=True, parallel_safe=False)
def shell(
    command: Annotated[str, Field(min_length=1)],
    cwd: str | None = None,
    timeout: Annotated[float | None, Field(gt=0, allow_inf_nan=False)] = None,
) -> Command:
    """Run a command line with /bin/sh and return its output and exit status.

    Standard input is empty. Whatever the command leaves running in the background is ended with it.

    Args:
        command: The command line.
        cwd: Folder to run it in. Default: the runner's working directory.
        timeout: Seconds after which it is ended. Default: no limit of its own.
    """
    return Command(("/bin/sh", "-c", command), cwd=cwd, timeout=timeout)
