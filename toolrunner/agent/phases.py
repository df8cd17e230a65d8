"""Phases of an agent: idle, running, maintenance; and the latch that keeps a wake which lands between an abort and idle. Pure.

State: the activity that is under way, if any, and its latch; changed by the methods here, synchronously. There is one driver at
the most: going idle at once when something is stopped would start a second one beside a body that still ends.
"""

from enum import StrEnum
from typing import final

from toolrunner.abort import AbortController, AbortSignal
from toolrunner.agent.inbox import Inbox, Message
from toolrunner.facts import AbortReason, Source
from toolrunner.tasks import Happening

__all__ = ["Activity", "Phase", "Phases", "Status", "Wake"]


class Phase(StrEnum):
    """What an agent does."""

    RUNNING = "running"
    MAINTENANCE = "maintenance"


class Status(StrEnum):
    """What is shown of it: maintenance is nobody's turn, so it looks idle."""

    IDLE = "idle"
    RUNNING = "running"


class Wake(StrEnum):
    """What became of a wake."""

    START = "start"
    """The agent was idle: whoever woke it starts a driver now, in this very stretch."""
    LATCHED = "latched"
    """Something that was stopped is still ending; the wake is kept until then."""
    TAKEN = "taken"
    """A driver is at work and will come to it by itself."""
    REFUSED = "refused"
    """The agent is closing."""


@final
class Activity:
    """One stay outside idle. `over` is set when it has ended, by `converge` alone."""

    __slots__ = ("controller", "over", "phase", "turn_id", "wake_requested")

    def __init__(self, phase: Phase) -> None:
        self.phase = phase
        self.controller = AbortController()
        self.turn_id: str | None = None
        """The turn that is open, from turn/start to turn/end."""
        self.wake_requested = False
        self.over = Happening()

    @property
    def signal(self) -> AbortSignal:
        """The signal of the turn (or maintenance) under way; another one for each turn."""
        return self.controller.signal

    @property
    def reason(self) -> AbortReason | None:
        return self.controller.signal.reason

    def renew(self) -> None:
        """Between two turns of one driver: a stop of the turn before says nothing of the next."""
        self.controller = AbortController()
        self.wake_requested = False


@final
class Phases:
    """One agent's."""

    def __init__(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self.activity: Activity | None = None
        """None: idle."""
        self.is_disposed = False

    @property
    def status(self) -> Status:
        busy = self.activity is not None and self.activity.phase is Phase.RUNNING
        return Status.RUNNING if busy else Status.IDLE

    @property
    def is_ending(self) -> bool:
        """Whether what is under way was stopped and has not ended yet."""
        return self.activity is not None and self.activity.signal.aborted

    def begin(self, phase: Phase) -> Activity:
        """Leave idle."""
        assert self.activity is None
        self.activity = Activity(phase)
        return self.activity

    def place(self, message: Message) -> Message:
        """The message as it is to be queued. One that wakes while a turn is being stopped is a turn of its own, not its step.

        Asked before anybody hears of the message: who does may cancel, and that must not make another message of it.
        """
        if message.wake and self.is_ending:
            return Message(message.id, message.content, "next-turn", message.wake, message.source)
        return message

    def wake(self, *, after_abort: bool) -> Wake:
        """Somebody wants work to be done. `after_abort`: what was under way had been stopped when the message was placed."""
        if self.is_disposed:
            return Wake.REFUSED
        if self.activity is None:
            return Wake.START
        if self.activity.phase is Phase.MAINTENANCE or after_abort:
            self.activity.wake_requested = True
            return Wake.LATCHED
        return Wake.TAKEN

    def cancel(self, reason: AbortReason, *, keep_inbox: bool) -> tuple[Message, ...]:
        """Stop what is under way; take back what waits, unless it is to be kept. First cause wins. Returns what was taken back.

        The latch goes with the inbox: a wake whose message is gone has nothing to wake for.
        """
        dropped: tuple[Message, ...] = ()
        if not keep_inbox:
            dropped = self.inbox.drop()
            if self.activity is not None:
                self.activity.wake_requested = False
        if self.activity is not None:
            self.activity.controller.abort(reason.text, source=reason.source)
        return dropped

    def dispose(self, text: str) -> None:
        """Stop for good: nothing is taken any more. What waits stays on record, for the session's next owner."""
        self.is_disposed = True
        if self.activity is not None:
            self.activity.wake_requested = False
            self.activity.controller.abort(text, source=Source.SHUTDOWN)

    def converge(self) -> Activity:
        """The activity has ended: idle from here on. Returns it, for whoever looks at its latch."""
        activity = self.activity
        assert activity is not None
        self.activity = None
        activity.over.set()
        return activity

    def must_start_again(self, ended: Activity) -> bool:
        """Whether a wake was kept for now, and what it was for still waits. Asked after everybody heard of idle."""
        waits = ended.wake_requested and bool(self.inbox.queued)
        return waits and self.activity is None and not self.is_disposed
