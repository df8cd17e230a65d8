"""What `toolrunner run` was asked for, and the one command tool through which it becomes a call like any other. No state."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from toolrunner.calls import ToolCall
from toolrunner.cli.words import Word, from_json, to_json
from toolrunner.policy import Policy
from toolrunner.process import DEFAULT_GRACE, DEFAULT_OUTPUT_LIMIT, Leftovers, Sink, Stdin, WindowSize
from toolrunner.sandbox import Sandbox
from toolrunner.tools import AnyTool, Command, command_tool

NAME = "command"


@final
@dataclass(frozen=True, slots=True)
class Wish:
    """One command line and how to run it. Nothing is checked here: rows 0 to 2 do that, and say so in a result."""

    argv: tuple[str, ...]
    timeout: float | None = None
    kill_after: float = DEFAULT_GRACE
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    watch: tuple[str, ...] = ()
    output_limit: int = DEFAULT_OUTPUT_LIMIT
    stdin: Stdin | Path = Stdin.NULL
    tty: WindowSize | None = None
    leftovers: Leftovers = Leftovers.KILL
    policy: Policy | None = None
    sandbox: Sandbox | None = None

    def call(self) -> ToolCall:
        """The call. Values of `env` are in no record (they are where people put secrets); their names are."""
        arguments: dict[str, Any] = {"argv": [to_json(word) for word in self.argv]}
        if self.cwd is not None:
            arguments["cwd"] = to_json(self.cwd)
        if self.env:
            arguments["env"] = [to_json(name) for name in self.env]
        if self.watch:
            arguments["watch"] = [to_json(root) for root in self.watch]
        return ToolCall(NAME, arguments | self._more(), timeout=self.timeout)

    def _more(self) -> dict[str, Any]:
        """What is not as usual."""
        arguments: dict[str, Any] = {}
        if self.stdin is not Stdin.NULL:
            arguments["stdin"] = to_json(str(self.stdin))
        if self.kill_after != DEFAULT_GRACE:
            arguments["kill_after"] = self.kill_after
        if self.output_limit != DEFAULT_OUTPUT_LIMIT:
            arguments["output_limit"] = self.output_limit
        if self.tty is not None:
            arguments["tty"] = True
        if self.leftovers is not Leftovers.KILL:
            arguments["leftovers"] = str(self.leftovers)
        if self.sandbox is not None:
            arguments["sandbox"] = self.sandbox.name
        return arguments

    def tool(self, sink: Sink | None) -> AnyTool:
        """The tool that runs it. `sink` takes the output while it comes."""
        wish = self

        # Exclusive: nobody can tell from a command line what it touches.
        @command_tool(name=NAME, destructive=True, open_world=True, parallel_safe=False)
        def command(  # noqa: PLR0913, PLR0917 - the fields of its record
            argv: list[Word],
            cwd: Word | None = None,
            env: list[Word] | None = None,
            watch: list[Word] | None = None,
            stdin: Word | None = None,
            kill_after: float = DEFAULT_GRACE,
            output_limit: int = DEFAULT_OUTPUT_LIMIT,
            tty: bool = False,  # noqa: FBT002 - a field of its record
            leftovers: Leftovers = Leftovers.KILL,
            sandbox: str | None = None,
        ) -> Command:
            """Run one command and pass its output on."""
            names = map(from_json, env or ())
            return Command(
                [from_json(word) for word in argv],
                cwd=None if cwd is None else from_json(cwd),
                env={name: wish.env[name] for name in names},
                stdin=wish.stdin if stdin is not None else None,
                kill_after=kill_after,
                output_limit=output_limit,
                watch=[from_json(root) for root in watch or ()],
                sink=sink,
                leftovers=leftovers,
                sandbox=wish.sandbox if sandbox is not None else None,
                tty=tty and (wish.tty or True),
            )

        return command
