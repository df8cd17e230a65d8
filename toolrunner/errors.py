"""Everything toolrunner raises: misuse and broken configuration only.

A call that fails, is stopped, denied or rejected is a `ToolResult`, never an exception (DESIGN: results are values).
Messages are built here, in the class, so that every place that raises says the same thing in the same words.
"""

from typing import Any


class ToolrunnerError(Exception):
    """Base of everything this package raises."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls the class with the finished message, which is not what its __init__ takes; a pool of processes that
        # cannot read an error back hangs or breaks.
        return _read_back, (type(self), self.args, dict(vars(self)))


def _read_back(kind: type[ToolrunnerError], args: tuple[object, ...], facts: dict[str, Any]) -> ToolrunnerError:
    error = kind.__new__(kind)
    error.args = args
    vars(error).update(facts)
    return error


class DuplicateTool(ToolrunnerError):
    """Two tools of one runner have the same name. (A name nobody registered is a result, `UNKNOWN_TOOL`.)"""

    def __init__(self, name: str) -> None:
        super().__init__(f"a tool named {name!r} is already registered; unregister it first or rename one of the two")
        self.name = name


class ToolDefinitionError(ToolrunnerError):
    """A tool cannot be registered as it was declared; says which tool, which part, and what to do."""

    def __init__(self, tool: str, problem: str) -> None:
        super().__init__(f"tool {tool!r}: {problem}")
        self.tool = tool
        self.problem = problem


class ConfigError(ToolrunnerError, ValueError):
    """An argument of the library's own API has a value it cannot work with."""

    def __init__(self, what: str, value: object, expected: str) -> None:
        super().__init__(f"{what} is {value!r}; expected {expected}")
        self.what = what
        self.value = value


class PolicyError(ToolrunnerError):
    """A policy contradicts itself or names something unknown. Nothing is run under a policy that does not load."""


class RunnerClosed(ToolrunnerError):
    """The runner takes no calls: never entered, closing, closed, or inherited by a forked process."""

    def __init__(self, why: str) -> None:
        super().__init__(f"this runner takes no calls: {why}")
        self.why = why


class NestedRun(ToolrunnerError):
    """A tool body used `run_batch` of the runner it runs in; it would wait for its own slot. Use `ctx.run`."""

    def __init__(self) -> None:
        super().__init__(
            "run_batch of the same runner inside a tool body would wait for its own slot; use ctx.run(name, arguments)"
        )


class NestedClose(ToolrunnerError):
    """A tool body tried to close the runner it runs in, which waits until all bodies have ended."""

    def __init__(self) -> None:
        super().__init__("closing the runner inside one of its own tool bodies would wait for that body; close it outside")


class CallOver(ToolrunnerError):
    """`ctx.run` was used after the body had ended, by a task that it left behind."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the call of {name!r} is over, so no child call can be made in it; await ctx.run inside the body")
        self.name = name


class NotSettled(ToolrunnerError):
    """`Runner.result` was asked for a call that has not settled yet. (An id nobody knows is `UnknownRun`.)"""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"call {run_id!r} has not settled yet")
        self.run_id = run_id


class UnknownRun(ToolrunnerError, LookupError):
    """No call with this run_id is kept: never submitted here, or older than the retention of results."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"no call with run_id {run_id!r} is known here (results are kept for 1,000 calls or 1 h)")
        self.run_id = run_id


class ToolrunnerInternalError(ToolrunnerError):
    """A bug in toolrunner itself. Started calls were drained and every call was closed truthfully before this was raised."""


class UntrueResult(ToolrunnerInternalError, ValueError):
    """A result that cannot be true was about to be built, or was read from somewhere. (Read, it is a `ValidationError`.)"""

    def __init__(self, run_id: str, why: str) -> None:
        super().__init__(f"the result of call {run_id} cannot be true: {why}")
        self.run_id = run_id
        self.why = why


class ToolError(Exception):
    """Raised by a tool's body: it failed for a reason of its own. The model reads `message`; `kind` is for programs.

    Not a `ToolrunnerError`: it is the tool speaking, not the library.
    """

    def __init__(self, message: str, *, kind: str = "tool_error") -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
