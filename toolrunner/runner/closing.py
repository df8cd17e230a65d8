"""Closing a runner: everything that was started is awaited, then its parts are let go in the order in which they depend.

No state. An interrupted close goes on to its end: leaving half of it undone would leave processes and threads behind.
"""

import contextlib
import contextvars
from collections.abc import Callable

import anyio

from toolrunner.effects import DURABLE_WAIT
from toolrunner.loops import spawn_detached
from toolrunner.pipeline.live import leave_running
from toolrunner.pipeline.services import Services
from toolrunner.process import Processes
from toolrunner.runner.shelf import Shelf


async def close_runner(
    services: Services, supervisor: Processes | None, shelf: Shelf, limit: float | None, let_go: Callable[[], object]
) -> None:
    """Drain, and close processes, threads and journal. `limit` in seconds bounds the wait for in-process bodies.

    `let_go` is called when no call is left to read the journal.

    Done in a task of its own: a native cancel of whoever waits goes through every shield. A second one ends the wait, not the
    close.
    """
    over, errors = anyio.Event(), list[BaseException]()

    async def close() -> None:
        try:
            await _close(services, supervisor, shelf, limit)
            let_go()
        except BaseException as error:  # noqa: BLE001 - raised below, in the task that closes
            errors.append(error)
        finally:
            over.set()

    spawn_detached(close, "close", contextvars.copy_context())
    with anyio.CancelScope(shield=True):
        try:
            await over.wait()
        except anyio.get_cancelled_exc_class():
            with contextlib.suppress(anyio.get_cancelled_exc_class()):
                await over.wait()
            raise
    if errors:
        raise errors[0]


async def _close(services: Services, supervisor: Processes | None, shelf: Shelf, limit: float | None) -> None:
    with anyio.CancelScope(shield=True):
        with anyio.move_on_after(limit):
            await services.root.wait_empty()
        if limit is not None:
            _publish_the_rest(shelf)
            for state in shelf.running():
                await state.settled.wait()
        await services.shells.aclose()  # no call needs them any more
        if supervisor is not None:
            await supervisor.aclose()
        services.threads.close()
        with anyio.move_on_after(DURABLE_WAIT):  # a disk that never answers must not keep a runner from closing
            await services.journal.aclose()


def _publish_the_rest(shelf: Shelf) -> None:
    """In-process bodies that run on are told as still running; processes always end by their ladder, so they are waited for."""
    for state in shelf.running():
        # One that was not started by now finds the abort at its gate.
        if state.started and state.lives and state.in_process:
            leave_running(state)
