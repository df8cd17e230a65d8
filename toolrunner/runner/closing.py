"""Closing a runner: everything that was started is awaited, then its parts are let go in the order in which they depend.

No state. An interrupted close goes on to its end: leaving half of it undone would leave processes and threads behind.
"""

import anyio

from toolrunner.facts import StillRunning, StillRunningKind
from toolrunner.pipeline.services import Services
from toolrunner.process import Processes
from toolrunner.runner.shelf import Shelf


async def close_runner(services: Services, supervisor: Processes | None, shelf: Shelf, limit: float | None) -> None:
    """Drain, and close processes, threads and journal. `limit` in seconds bounds the wait for in-process bodies."""
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
        await services.journal.aclose()


def _publish_the_rest(shelf: Shelf) -> None:
    """In-process bodies that run on are told as still running; processes always end by their ladder, so they are waited for."""
    for state in shelf.running():
        if state.lives and state.in_process:
            since = state.stop.delivered_at
            state.left_running = (StillRunning(what=state.name, kind=StillRunningKind.BODY, since=since),)
            state.published_early.set()
