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


class ProfileError(ToolrunnerError):
    """A sandbox profile contradicts itself or names something unknown. Nothing is run under a profile that does not load."""


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


class JournalError(ToolrunnerError):
    """A journal on disk cannot be opened, written or read. Each kind has a class, so that programs need not read the text.

    Raised by `SqliteJournal.open` and the readers before anything runs, and by waits for records of a journal that failed since.
    """

    def __init__(self, path: object, problem: str, advice: str) -> None:
        super().__init__(f"the journal {path}: {problem}; {advice}")
        self.path = str(path)
        self.problem = problem


class JournalOwned(JournalError):
    """Another process, or another journal object of this one, owns it. (Locked by somebody else: `JournalLocked`.)"""

    def __init__(self, path: object, pid: int) -> None:
        owner = f"process {pid} owns it" if pid else "a process that cannot be seen from here owns it"
        super().__init__(path, owner, "read it meanwhile, use another session, or wait until its owner is over")
        self.pid = pid


class JournalLocked(JournalError):
    """A program that is not its owner keeps the file locked, a database browser say."""

    def __init__(self, path: object, waited: float) -> None:
        super().__init__(path, f"another program has kept it locked for {waited:g} s", "close that program and try again")


class JournalFull(JournalError):
    """No room: the disk is full, or a quota or a limit of file sizes is reached."""

    def __init__(self, path: object, problem: str) -> None:
        super().__init__(path, problem, "make room (or raise the limit) and open it again")


class JournalReadOnly(JournalError):
    """File or folder may not be written by this user, or the file system is read-only."""

    def __init__(self, path: object, problem: str) -> None:
        super().__init__(path, problem, "choose a place that you may write to, or read it only")


class JournalMissing(JournalError):
    """There is no such journal. Readers never make one."""

    def __init__(self, path: object) -> None:
        super().__init__(path, "there is no such file", "name an existing journal or session")


class JournalUnreadable(JournalError):
    """It is there, and may not be read by this user; or what belongs to it is missing."""

    def __init__(self, path: object, problem: str) -> None:
        super().__init__(path, problem, "read it as its owner, and together with its -wal and -shm files")


class JournalNotLocal(JournalError):
    """Its file system is not of this machine, so neither locks nor shared memory can be trusted."""

    def __init__(self, path: object, kind: str) -> None:
        super().__init__(path, f"its file system is {kind}, which is not a local disk", "choose a place on a local disk")
        self.kind = kind


class JournalNoWal(JournalError):
    """SQLite does not answer `wal` there, and without it readers would block the owner."""

    def __init__(self, path: object, answer: str) -> None:
        super().__init__(path, f"SQLite answered {answer!r} when asked for write-ahead logging", "choose a place on a local disk")


class JournalTooNew(JournalError):
    """A later version of toolrunner made it; nothing is guessed about what that one wrote."""

    def __init__(self, path: object, found: int, known: int) -> None:
        super().__init__(
            path,
            f"it has schema version {found}, this version of toolrunner knows {known}",
            f"use a version of toolrunner that knows schema version {found}",
        )
        self.found = found


class JournalDamaged(JournalError):
    """It is no journal of toolrunner, or not whole."""

    def __init__(self, path: object, problem: str) -> None:
        super().__init__(path, problem, "keep the file, look at it with `toolrunner journal check`, and use another session")


class JournalFailed(JournalError):
    """A write failed for another reason, or could not keep up. What was waited for may be on disk or not."""

    def __init__(self, path: object, problem: str) -> None:
        super().__init__(path, problem, "find out why and open it again")


class JournalForked(JournalError):
    """A forked process uses the journal object of its parent, which goes on writing."""

    def __init__(self, path: object) -> None:
        super().__init__(path, "it was inherited by a forked process", "open one of its own there")


class JournalClosed(JournalError):
    """It was closed."""

    def __init__(self, path: object) -> None:
        super().__init__(path, "it is closed", "open it again")


class ToolError(Exception):
    """Raised by a tool's body: it failed for a reason of its own. The model reads `message`; `kind` is for programs.

    Not a `ToolrunnerError`: it is the tool speaking, not the library.
    """

    def __init__(self, message: str, *, kind: str = "tool_error") -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
