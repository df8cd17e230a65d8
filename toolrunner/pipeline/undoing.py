"""One undo: run in a task or thread of its own, within its bound, and told by what is known of it afterwards.

State: one UndoRun each; changed by its task and by its clock. Nobody stops an undo but its clock: not the abort that made it
necessary, not a second one, not the cancellation of whoever waits.
"""

import contextvars
import inspect
from collections.abc import Callable
from typing import final

import anyio
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from toolrunner.effects import OpenUndo, Undoing
from toolrunner.facts import EffectStage, StillRunning, StillRunningKind
from toolrunner.loops import call_later
from toolrunner.pipeline.foreign import error_fact, interrupt_in, is_a
from toolrunner.pipeline.nesting import body_context
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.pipeline.watching import in_thread
from toolrunner.records import now
from toolrunner.tasks import OwnedTask, wait_through

UNDO_LIMIT = 30.0
"""Seconds for one undo, its further tries included: as long as a hook gets, since somebody waits for the result of the call."""

UNDO_STOP_BOUND = 1.0
"""Seconds that an undo gets to end after it was cancelled; then the result is published and lists it as still running."""

UNDO_TRIES = 3
"""How often an undo that was declared idempotent is tried: what is wrong for longer than their pauses is not mended by more."""

_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
"""Seconds between two tries: short, because a stopped call waits."""


@final
class UndoRun:
    """One undo of one effect. `stage` and `error` are what is known of the effect once `over`."""

    def __init__(self, state: ActiveCall, services: Services, due: OpenUndo) -> None:
        self._state, self._services = state, services
        self._effect, self._undo = due.effect, due.undo
        self.running = StillRunning(what=f"undo of {due.effect.target}", kind=StillRunningKind.BODY, since=now())
        """How a result lists it."""
        self.stage = EffectStage.UNKNOWN
        self.error: str | None = "its undo did not end"
        self.fatal: BaseException | None = None
        """A KeyboardInterrupt or SystemExit that came out of it."""
        self._over = anyio.Event()
        self._ended = False
        self._in_thread = False
        self._doubtful = False
        """A try failed without saying that it did nothing, so something of the change may be gone."""
        self._expired = False
        self._task: OwnedTask | None = None

    async def run(self) -> None:
        """Run it and wait until it is over, or ran over its bound; then it is `left`, and nobody waits for it."""
        context = body_context(self._state, self._services)
        self._task = self._services.root.spawn(self._live, self.running.what, context=context, foreign=True, shielded=True)
        timers = [call_later(UNDO_LIMIT, self._expire), call_later(UNDO_LIMIT + UNDO_STOP_BOUND, self._over.set)]
        await wait_through(self._over)
        for take_back in timers:
            take_back()
        if self.is_left:
            self.error = f"its undo did not end within {UNDO_LIMIT:g} s"

    @property
    def effect_id(self) -> str:
        """Which effect it is of."""
        return self._effect.effect_id

    @property
    def is_left(self) -> bool:
        """It ran over its bound and still runs."""
        return not self._ended

    async def wait_ended(self) -> None:
        """Wait for one that was left."""
        assert self._task is not None
        await wait_through(self._task.done)

    def _expire(self) -> None:
        self._expired = True
        if not self._in_thread and self._task is not None:  # a thread cannot be told
            self._task.cancel()

    async def _live(self) -> None:
        retrying = AsyncRetrying(
            sleep=anyio.sleep,
            stop=stop_after_attempt(UNDO_TRIES if self._undo.idempotent else 1),
            wait=wait_random_exponential(_PAUSE, _LONGEST_PAUSE),
            retry=retry_if_exception(self._may_be_mended),
            reraise=True,
        )
        try:
            async for attempt in retrying:
                with attempt:
                    await self._try()
        except BaseException as error:  # noqa: BLE001 - foreign code; whatever it raised is what became of its undo
            self._failed(error)
        finally:
            self._ended = True
            self._over.set()

    def _may_be_mended(self, error: BaseException) -> bool:
        """Its clock was not it, and nobody wants to leave. asyncio's tear-down cancels each task once, and waits for it then."""
        return not self._expired and is_a(error, Exception, anyio.get_cancelled_exc_class())

    async def _try(self) -> None:
        given = Undoing(self._effect)
        try:
            await self._call(given)
        except BaseException as error:
            self._doubtful = self._doubtful or not given.was_not_applied
            if is_a(error, anyio.get_cancelled_exc_class()) and self._task is not None:
                await self._task.absorb(delivered=True)
            raise
        if not given.was_not_applied:
            self.stage, self.error = EffectStage.UNDONE, None
        elif not self._doubtful:
            self.stage, self.error = self._effect.stage, "its undo says that it did nothing"
        else:
            self.error = "its undo failed, and a later try did nothing"

    def _failed(self, error: BaseException) -> None:
        if not self._doubtful:
            self.stage = self._effect.stage
        self.fatal = error if interrupt_in(error) is not None else None
        why = f"did not end within {UNDO_LIMIT:g} s" if self._expired else f"failed: {error_fact(error).message}"
        self.error = f"its undo {why}"

    async def _call(self, given: Undoing) -> None:
        fn = self._undo.fn
        returned = fn(given) if inspect.iscoroutinefunction(fn) else await self._in_worker_thread(lambda: fn(given))
        if inspect.isawaitable(returned):
            if self._expired:  # in the thread; what it left to be awaited was not begun
                getattr(returned, "close", lambda: None)()
                raise TimeoutError
            await returned

    async def _in_worker_thread(self, fn: Callable[[], object]) -> object:
        """A plain function may block, so it runs in a thread of the runner's, to its end."""
        context = contextvars.copy_context()  # a thread has none of its own
        self._in_thread = True
        try:
            return await in_thread(self._services, lambda: context.run(fn))
        finally:
            self._in_thread = False
