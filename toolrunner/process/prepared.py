"""The contract of a prepared process: it exists, waits at its start gate, and nothing of the command has run yet."""

from typing import Protocol

from toolrunner.facts import ProcessIdentity
from toolrunner.process.ending import ProcessEnd
from toolrunner.process.plan import LaunchPlan, WindowSize


class Sink(Protocol):
    """Takes the output in full and in order, and holds the tool back while it is slow. (An observer never does.)

    Once the call is being stopped, one `write` may last `DRAIN_BOUND` seconds; then it is cancelled and gets no more.
    """

    async def write(self, stream: str, data: bytes) -> None:
        """Write all of `data`, which came on `stream` ("stdout" or "stderr")."""


class Observer(Protocol):
    """Sees each chunk of output right after it was kept. Must not block; what it raises is logged and dropped."""

    def __call__(self, stream: str, data: bytes, /) -> None:
        """One chunk of `stream` ("stdout" or "stderr"), undecoded."""


class Prepared(Protocol):
    """One process between its preparation and its end. Belongs to the event loop that prepared it."""

    @property
    def identity(self) -> ProcessIdentity | None:
        """Who waits at the gate. None under best_effort, where the process is made by `go` itself; known afterwards."""

    def go(self) -> None:
        """Release it: the moment of action. Never raises and never waits; what goes wrong is in `wait`'s answer."""

    async def abandon(self) -> None:
        """Give it up instead of `go`. Returns, shielded, once it is gone; that nothing ran is certain. Idempotent.

        After `go` it stops the process at once and waits for its end.
        """

    def stop(self, *, grace: float | None = None) -> None:
        """Ask for the ladder: stdin closed, SIGTERM, `grace` seconds (default: the plan's), SIGKILL. 0 = SIGKILL now.

        Idempotent; a later call can only shorten the grace. Before `go` it closes the gate.
        """

    async def write(self, data: bytes) -> int:
        """Write to the stdin of a plan that has it `OPEN`, waiting while it is full. How many bytes were taken.

        Fewer than all: nobody reads it (any more). Cancelled, a part may have been taken.
        """

    def close_stdin(self) -> None:
        """Say that no more input comes: the pipe is closed; at a terminal Ctrl-D is typed. Idempotent."""

    def resize(self, size: WindowSize) -> None:
        """Change the size of its terminal; the program gets SIGWINCH. Without a terminal, or after the end, it does nothing."""

    async def wait(self) -> ProcessEnd:
        """The end, once it is proven and the output is read. Cancelling the waiter loses nothing: call it again.

        While nobody waits, output is not read (the tool blocks on a full pipe) but clocks and ladder run on. With
        `Leftovers.KEEP` it is the end of the leader, and `facts.kept` names who outlives it: `stop`, `write` and `wait_rest` are
        about those from then on.
        """

    async def wait_rest(self) -> ProcessEnd:
        """The end of those who were kept, as `wait` tells it of a call; the same end as `wait`'s when nobody was.

        Somebody has to wait for it: it reads their output.
        """


class Processes(Protocol):
    """Where a runner gets its processes from: a `Supervisor`, or a stand-in for tests."""

    async def prepare(
        self, plan: LaunchPlan, *, dirfd: int | None = None, on_output: Observer | None = None, sink: Sink | None = None
    ) -> Prepared:
        """Make the process and hold it at its gate. Raises `SpawnRefused`: nothing was released."""

    async def aclose(self) -> None:
        """Stop and await every process that is still owned."""
