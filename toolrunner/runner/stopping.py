"""OwnStops: a way to stop one call among others, for those who look at a runner from outside (`control`).

State: run_id -> controller of the calls under way, changed by `begin` and `over` on the runner's loop. Empty until somebody asks
for it: a signal more for each call costs some microseconds, and most runners are asked for none.
"""

from typing import final

from toolrunner.abort import AbortController, AbortSignal


@final
class OwnStops:
    """One per runner."""

    def __init__(self) -> None:
        self._controllers: dict[str, AbortController] | None = None

    def enable(self) -> None:
        """From now on calls can be stopped one by one; those under way cannot."""
        self._controllers = self._controllers if self._controllers is not None else {}

    def begin(self, run_id: str) -> AbortSignal | None:
        """A call is taken: the signal that is its own, or None while nobody asked for one."""
        if self._controllers is None:
            return None
        controller = self._controllers[run_id] = AbortController()
        return controller.signal

    def over(self, run_id: str) -> None:
        """The call has settled."""
        if self._controllers is not None:
            self._controllers.pop(run_id, None)

    def stop(self, run_id: str, text: str) -> bool:
        """Abort this call. True if it is under way and this was the first request of this kind."""
        controller = self._controllers.get(run_id) if self._controllers is not None else None
        return controller is not None and controller.abort(text)
