"""How a caller waits for calls that the runner owns, and what it means when the caller's own task is cancelled.

`settle`: abort with source `host`, wait without burning CPU until what was started ended, then raise the cancellation on,
unchanged. `detach`: raise it on at once. Either way the calls are the runner's and go on in it. No state.
"""

import contextlib
from collections.abc import Callable
from enum import StrEnum

import anyio

from toolrunner.tasks import Waitable


class OnHostCancel(StrEnum):
    """What the cancellation of the awaiting task means for the calls."""

    SETTLE = "settle"
    DETACH = "detach"


async def wait_as_host(done: Waitable, on_cancel: OnHostCancel, abort: Callable[[], object], limit: float) -> None:
    """Wait for `done` in the host's own task. If it is cancelled, `abort` is called; `limit` (seconds) bounds the wait then."""
    try:
        await done.wait()
    except anyio.get_cancelled_exc_class():
        # The first exception is raised on as it is, whatever the wait below meets: it may carry the host's message.
        if on_cancel is OnHostCancel.SETTLE:
            abort()
            # A shield holds scopes; a second native cancel goes through it, which is the host insisting: stop waiting.
            with contextlib.suppress(anyio.get_cancelled_exc_class()), anyio.move_on_after(limit, shield=True):
                await done.wait()
        raise
