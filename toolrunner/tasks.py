"""TaskRoot: the tasks that a runner owns, under no scope and no task of its callers.

Why not a task group: `async with Runner()` may be entered and left in different tasks, and a native `task.cancel()` or
`asyncio.wait_for` around the caller pierces an anyio shield. Tasks of the loop itself are out of reach of both.
State: the set of live tasks, changed by `spawn` and by each task's own end.
"""

import contextlib
import contextvars
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, final

import anyio
import anyio.lowlevel

from toolrunner.loops import NativeEvent, current_native_task, native_event, spawn_detached

_logger = logging.getLogger("toolrunner")


FOREIGN_BOUND = 5.0
"""Seconds that hooks and approvers get to end once no call is left; each was cancelled long before."""


class Waitable(Protocol):
    """What `wait_through` waits for: an `anyio.Event` or a `Happening`."""

    def is_set(self) -> bool:
        """Whether it happened."""
        ...

    async def wait(self) -> object:
        """Wait until it has."""
        ...


@final
class Happening:
    """An event that costs next to nothing until somebody waits for it; on the loop only.

    Each call has half a dozen of these, and waits for two: an `anyio.Event` asks for the running library, and makes two objects.
    """

    __slots__ = ("_event", "_happened")

    def __init__(self) -> None:
        self._happened = False
        self._event: NativeEvent | None = None

    def is_set(self) -> bool:
        """Whether it happened. Never goes back to False."""
        return self._happened

    def set(self) -> None:
        """It happened: all who wait go on. Called again it does nothing."""
        self._happened = True
        if self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        """Wait until it has happened; a cancellation point in any case, as for `anyio.Event`."""
        if self._happened:
            await anyio.lowlevel.checkpoint()
            return
        if self._event is None:
            self._event = native_event()
        await self._event.wait()


@final
class OwnedTask:
    """One task of the root."""

    __slots__ = ("_native", "_scope", "_shielded", "done", "name")

    def __init__(self, name: str, *, shielded: bool = False) -> None:
        self.name = name
        self._shielded = shielded
        self.done = Happening()
        self._native: Any = None
        self._scope: anyio.CancelScope | None = None

    def cancel(self) -> None:
        """Cancel what runs inside, once, so that its clean-up may await. Before its first step and after its end: nothing.

        asyncio: one native cancel of the task itself, because a scope's cancel is delivered again at every await. trio: its
        scope; clean-up that awaits there needs a shield.
        """
        if self._native is None or self.done.is_set():
            return
        if self._scope is not None:
            self._scope.cancel()
        else:
            self._native.cancel()

    async def absorb(self, *, delivered: bool) -> None:
        """Use the cancel up, so that the task's later waits are its own again. `delivered`: what ran inside ended by it.

        asyncio counts cancel requests per task, and `asyncio.timeout` as well as anyio's scopes look at the count. One that was
        made while the task ran its last step would be raised by the next wait: `uncancel` takes it back from 3.13 on only.
        """
        uncancel = getattr(self._native, "uncancel", None)
        if uncancel is None:
            return
        if not delivered:
            with contextlib.suppress(anyio.get_cancelled_exc_class()):
                await anyio.lowlevel.checkpoint()
        uncancel()

    def was_cancelled_from_outside(self, error: BaseException, *, told: bool) -> bool:
        """Whether `error` is a cancellation of this task that is not ours (`told`: ours was made).

        asyncio counts requests, so a CancelledError that the code inside made up is told apart; trio lets nobody make one up.
        """
        # By its real type: a foreign exception may raise when it is asked for its class.
        if not issubclass(type(error), anyio.get_cancelled_exc_class()):
            return False
        cancelling = getattr(self._native, "cancelling", None)
        return (cancelling() if cancelling is not None else 1) > told

    async def run(self, fn: Callable[[], Awaitable[object]], over: Callable[[], object] = lambda: None) -> None:
        """The task's whole life, and `over` at its end.

        Lets nothing out: on trio that would end the run, on asyncio nobody would hear it.
        """
        self._native = current_native_task()
        try:
            if hasattr(self._native, "cancel"):
                await fn()
            else:
                with anyio.CancelScope(shield=self._shielded) as self._scope:
                    await fn()
        except BaseException as error:  # whoever spawned it has put its own catch around fn; this is the last resort
            if not isinstance(error, anyio.get_cancelled_exc_class()):
                _logger.exception("task %s raised", self.name)
        finally:
            self.done.set()
            over()


@final
class TaskRoot:
    """Spawns and counts the runner's tasks. `torn_down` is told when the loop's tear-down took a task before its first step."""

    def __init__(self, torn_down: Callable[[], object] = lambda: None) -> None:
        self._torn_down = torn_down
        self._live: set[OwnedTask] = set()
        self._foreign: set[OwnedTask] = set()
        """Those of `_live` that nothing of a call depends on any more once its own tasks are done."""

    def spawn(
        self,
        fn: Callable[[], Awaitable[object]],
        name: str,
        *,
        context: contextvars.Context | None = None,
        foreign: bool = False,
        shielded: bool = False,
    ) -> OwnedTask:
        """Start `fn` in a task of its own, soon, in `context` (default: a copy of the current one).

        `foreign`: it runs a hook's or an approver's code and no body, so at the end it is not waited for without a bound.
        `shielded`: trio's tear-down, too, waits for it instead of cancelling it; asyncio's cancels every task once.
        """
        task = OwnedTask(name, shielded=shielded)
        self._live.add(task)
        if foreign:
            self._foreign.add(task)

        def over() -> None:
            self._live.discard(task)
            self._foreign.discard(task)

        spawn_detached(
            lambda: task.run(fn, over),
            name,
            context if context is not None else contextvars.copy_context(),
            torn_down=self._torn_down,
        )
        return task

    @property
    def live(self) -> tuple[str, ...]:
        """Names of the tasks that have not ended."""
        return tuple(task.name for task in self._live)

    async def wait_empty(self) -> None:
        """Wait until no task is left, those that are spawned meanwhile included.

        A hook or approver that swallows its cancellation gets `FOREIGN_BOUND`; then it is left, by name in the log: nothing of a
        call hangs on it, and a runner that cannot be closed helps nobody.
        """
        await self._wait_for_own()
        with anyio.move_on_after(FOREIGN_BOUND):
            while self._live:
                await next(iter(self._live)).done.wait()
        await self._wait_for_own()
        if self._live:
            _logger.warning("left running, as they swallow their cancellation: %s", ", ".join(self.live))

    async def _wait_for_own(self) -> None:
        while own := self._live - self._foreign:
            await next(iter(own)).done.wait()


async def wait_through(event: Waitable, on_cancelled: Callable[[], object] | None = None) -> None:
    """Wait for `event` whatever is cancelled meanwhile; the loop's own tear-down is told through `on_cancelled` once.

    A shield stops scopes; a native cancel goes through it, so it is caught and the wait goes on. The event's owner must set it.
    """
    if event.is_set():  # often so, and a scope is not cheap
        return
    told = False
    with anyio.CancelScope(shield=True):
        while not event.is_set():
            try:
                await event.wait()
            except anyio.get_cancelled_exc_class():
                if not told and on_cancelled is not None:
                    told = True
                    on_cancelled()


async def wait_in_own_task(event: Waitable, on_cancelled: Callable[[], object] | None = None) -> None:
    """As `wait_through`, in a task of the runner's own in which no code of others is around the wait, and so no scope of theirs.

    Only the loop's own tear-down can cancel it there, so the shield, which costs as much as several events, is put up after that.
    """
    if event.is_set():
        return
    try:
        await event.wait()
    except anyio.get_cancelled_exc_class():
        if on_cancelled is not None:
            on_cancelled()
        await wait_through(event)
