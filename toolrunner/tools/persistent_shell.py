"""A shell that lives on between calls, as a tool: one process per tool and runner, so folder, variables and functions are kept.

No state here: the runner owns the process. What one call changes, the next one finds, also what nobody approved anew (a PATH, an
alias, an exported variable): a policy that judges command lines one by one should give out `shell` instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, final
from uuid import uuid4

from pydantic import Field

from toolrunner.facts import Annotations
from toolrunner.process import DEFAULT_OUTPUT_LIMIT
from toolrunner.tools.bodies import BodyKind
from toolrunner.tools.command import Command
from toolrunner.tools.docstring import read_docstring
from toolrunner.tools.problems import InvalidArguments
from toolrunner.tools.schema import read_signature
from toolrunner.tools.tool import Tool


@final
@dataclass(frozen=True, slots=True, eq=False)
class ShellSpec:
    """Which shell a tool has. `id` is one per tool: two tools never share a shell, and one under two names has one."""

    program: str
    cwd: str | None
    env: Mapping[str, str | None]
    output_limit: int
    id: str = field(default_factory=lambda: uuid4().hex)


@final
@dataclass(frozen=True, slots=True)
class ShellLine:
    """What one call wants to have run in it. `timeout` is in seconds and wins over the tool's."""

    shell: ShellSpec
    text: str
    timeout: float | None


def persistent_shell(  # noqa: PLR0913 - each is a setting people look for by name
    name: str = "shell",
    cwd: str | Path | None = None,
    env: Mapping[str, str | None] | None = None,
    *,
    program: str = "/bin/sh",
    timeout: float | None = None,
    kill_after: float | None = None,
    output_limit: int = DEFAULT_OUTPUT_LIMIT,
) -> Tool[..., Any]:
    """Make a tool whose calls all run in one shell, one after the other.

    `program` is a POSIX shell, `cwd` where it starts (default: the runner's), `env` is laid over the runner's environment (None
    removes a name). It is started by the first call and ended with the runner. `exit`, a time limit and an abort end it with all
    it started; the next call gets a new one, and its result the note `shell_restarted`. What a call leaves in the background is
    ended with that call. Times are seconds; the time limit of a call is the runner's own clock, not a keeper's.

    Raises:
        ToolDefinitionError: a name no provider takes, or a time that is none. ConfigError: what no process can be started with.
    """
    plan = Command((program,), cwd=cwd, env=env or {}, kill_after=kill_after, output_limit=output_limit)  # checks and copies
    spec = ShellSpec(program, None if cwd is None else str(cwd), MappingProxyType(dict(plan.env)), output_limit)

    def run(
        command: Annotated[str, Field(min_length=1)],
        timeout: Annotated[float | None, Field(gt=0, allow_inf_nan=False)] = None,
    ) -> ShellLine:
        """Run a command line in a shell that lives on: working directory, variables and functions are kept between calls.

        Standard input is empty. Whatever the command leaves running in the background is ended with it. After a time limit, and
        after `exit`, the next call gets a new shell.

        Args:
            command: The command line.
            timeout: Seconds after which the shell is ended. Default: no limit of its own.
        """
        if "\0" in command:
            raise InvalidArguments("command: holds a NUL character, which no shell takes")
        try:
            command.encode()
        except UnicodeEncodeError:
            raise InvalidArguments("command: holds a lone surrogate, which cannot be encoded") from None
        return ShellLine(spec, command, timeout)

    doc = read_docstring(run.__doc__)
    return Tool(
        name=name,
        description=doc.description,
        kind=BodyKind.SHELL,
        fn=run,
        signature=read_signature(name, run, doc.parameters),
        annotations=Annotations(destructive=True, open_world=True),
        parallel_safe=False,
        # By the shell and not by the name: the tool may be known under several.
        resources=lambda _: [f"shell:{spec.id}"],
        timeout=timeout,
        kill_after=kill_after,
    )
