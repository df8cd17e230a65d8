"""Driver: turns messages into turns, one after the other, and goes idle when nothing is left to do.

State: the turn that is open, who waits for which message, who hears of the status; changed on the loop. A turn is opened, and has
claimed, in the very stretch in which somebody woke us; what follows runs in a task of our own.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import final
from uuid import uuid4

from toolrunner.agent.inbox import Message
from toolrunner.agent.outcomes import TurnResult
from toolrunner.agent.parts import Parts
from toolrunner.agent.phases import Activity, Phase, Status, Wake
from toolrunner.agent.turn import Turn
from toolrunner.errors import JournalError
from toolrunner.records import InboxCancelled, TurnStarted
from toolrunner.tasks import Happening, TaskRoot

__all__ = ["Driver", "Waiter"]

_logger = logging.getLogger("toolrunner")


@final
class Waiter:
    """Somebody waits for what becomes of a message."""

    def __init__(self) -> None:
        self.done = Happening()
        self._result: TurnResult | None = None

    def settle(self, result: TurnResult) -> None:
        """The first result counts."""
        if self._result is None:
            self._result = result
            self.done.set()

    def told(self) -> TurnResult:
        """What became of it. Raises what is no value: a journal that fails, a body's KeyboardInterrupt or SystemExit."""
        assert self._result is not None
        failure = self._result.failure
        if isinstance(failure, JournalError) or (failure is not None and not isinstance(failure, Exception)):
            raise failure
        return self._result


@final
class Driver:
    """One agent's."""

    def __init__(self, parts: Parts) -> None:
        self._parts, self._session, self._phases = parts, parts.session, parts.phases
        self._root = TaskRoot()
        self.turn: Turn | None = None
        """The turn that is open."""
        self._waiters: dict[str, Waiter] = {}
        self._listeners: tuple[Callable[[Status], object], ...] = ()

    def wake(self, *, after_abort: bool) -> None:
        """Somebody wants work to be done."""
        if self._phases.wake(after_abort=after_abort) is Wake.START:
            self._start()

    def _start(self) -> None:
        activity = self._phases.begin(Phase.RUNNING)
        self._tell(Status.RUNNING)
        turn = self._open_turn(activity)
        self._root.spawn(partial(self._drive, activity, turn), "agent")

    def _open_turn(self, activity: Activity) -> Turn | None:
        """Open a turn and let it claim; None: it was stopped before, or what it was for is gone."""
        if activity.signal.aborted or not self._phases.inbox.queued:
            return None
        activity.turn_id = uuid4().hex
        self.turn = turn = Turn(self._parts, activity, activity.turn_id)
        session = self._session
        session.append(TurnStarted(run_id=turn.turn_id, cut_calls=session.cut_calls, marker=session.marker))
        turn.claim(opens_turn=True)
        return turn

    async def _drive(self, activity: Activity, turn: Turn | None) -> None:
        """One turn after the other, until one is stopped or nothing waits. There is one driver at the most."""
        try:
            while turn is not None:
                await turn.run()
                self._turn_over(turn)
                # From here to idle, or to the next turn, nothing awaits: a wake is either claimed or finds us idle.
                if activity.signal.aborted:
                    return
                activity.renew()
                turn = self._open_turn(activity) if self._phases.inbox.has_work else None
        finally:
            if turn is not None and turn is self.turn:  # the loop was torn down under it
                self._turn_over(turn)
            self.converge()

    def _turn_over(self, turn: Turn) -> None:
        self.turn = None
        assert turn.result is not None
        for message in turn.taken:
            self._settle(message, turn.result)

    def converge(self) -> None:
        """Idle, and out of it again at once if a wake was kept for now."""
        ended = self._phases.converge()
        if ended.phase is Phase.RUNNING:
            self._tell(Status.IDLE)
        if self._phases.must_start_again(ended):
            self._start()

    async def wait_ended(self) -> None:
        """After the last turn of a closed agent: no task of ours is left, and nobody waits."""
        await self._root.wait_empty()
        for waiter in list(self._waiters.values()):
            waiter.settle(TurnResult(outcome="waiting"))

    # Who waits, who listens.

    @contextmanager
    def waiting_for(self, message: Message) -> Iterator[Waiter]:
        """While the block lasts, somebody waits for this message."""
        self._waiters[message.id] = waiter = Waiter()
        try:
            yield waiter
        finally:
            del self._waiters[message.id]

    def drop(self, dropped: Iterable[Message], reason: str) -> None:
        """These messages were taken out of the inbox: write it down, and tell who waits."""
        gone = tuple(dropped)
        if not gone:
            return
        turn_id = self.turn.turn_id if self.turn is not None else ""
        self._session.append(InboxCancelled(run_id=turn_id, message_ids=tuple(one.id for one in gone), reason=reason))
        for message in gone:
            self._settle(message, TurnResult(outcome="dropped"))

    def _settle(self, message: Message, result: TurnResult) -> None:
        waiter = self._waiters.get(message.id)
        if waiter is not None:
            waiter.settle(result)

    def listen(self, listener: Callable[[Status], object]) -> Callable[[], None]:
        """Hear of each change of the status, in the stretch of the change; returns the way to stop."""
        self._listeners = (*self._listeners, listener)

        def stop() -> None:
            self._listeners = tuple(one for one in self._listeners if one is not listener)

        return stop

    def _tell(self, status: Status) -> None:
        for listener in self._listeners:
            try:
                listener(status)
            except Exception:
                _logger.exception("a listener raised at %s", status)
