"""AgentLoop: takes messages, makes turns of them, stops them when asked. The front door of this package.

State: whether it is open; what goes on is the driver's. All of it is changed on the loop, by synchronous stretches. Turns run in
tasks of the agent's own: nothing that cancels a caller reaches one.
"""

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Self, TypeVar, final
from uuid import uuid4

from toolrunner.abort import AbortSignal
from toolrunner.agent.driver import Driver
from toolrunner.agent.frames import Frame
from toolrunner.agent.hooks import Hooks
from toolrunner.agent.inbox import Inbox, Message, MessageSource, MessageState, Target, content_of
from toolrunner.agent.limits import DEFAULT_STEPS, Limits, Retries
from toolrunner.agent.model import Model
from toolrunner.agent.outcomes import StopHandle, TurnResult
from toolrunner.agent.parts import Calls, Parts
from toolrunner.agent.phases import Phase, Phases, Status
from toolrunner.agent.session import Session
from toolrunner.agent.streaming import Shows
from toolrunner.errors import ToolrunnerError
from toolrunner.facts import AbortReason, Content, Source
from toolrunner.runner.waiting import OnHostCancel, wait_as_host

__all__ = ["AgentBusy", "AgentClosed", "AgentLoop"]

T = TypeVar("T")

HOST_CANCEL_WAIT = 30.0
"""Seconds that a cancelled `prompt` waits for its turn to settle: as long as a runner does for its calls."""


class AgentClosed(ToolrunnerError):
    """The agent takes no messages: it was not entered, or is closing."""

    def __init__(self, why: str) -> None:
        super().__init__(f"this agent takes no messages: {why}")


class AgentBusy(ToolrunnerError):
    """Maintenance was to begin while a turn (or other maintenance) is under way."""

    def __init__(self) -> None:
        super().__init__("a turn is under way; wait_idle() first")


@final
class AgentLoop:
    """An agent: `async with AgentLoop(model, runner, session) as agent: await agent.prompt("...")`.

    Enter it inside its runner, whose journal is the session's.

    Args:
        model: who is asked.
        runner: runs the calls (`Calls`: three methods of `Runner`).
        session: the conversation; in memory by default.
        system: the system prompt.
        max_steps: requests of one turn. With this and the two others a turn that reaches it is stopped with source `cost`.
        max_cost: what the session may cost in all, in the currency of the model's prices.
        max_tokens: what it may use in all.
        hooks: where the host takes part.
        retries: how often a failing request is made again.

    Raises:
        ConfigError: a limit is none, or cannot be kept.
    """

    def __init__(  # noqa: PLR0913 - the front door: each is a setting people look for by name
        self,
        model: Model,
        runner: Calls,
        session: Session | None = None,
        *,
        system: str = "",
        max_steps: int | None = DEFAULT_STEPS,
        max_cost: float | None = None,
        max_tokens: int | None = None,
        hooks: Hooks | None = None,
        retries: Retries | None = None,
    ) -> None:
        limits = Limits(max_steps=max_steps, max_cost=max_cost, max_tokens=max_tokens)
        limits.require_prices(model.prices)
        self.session = session if session is not None else Session()
        self._parts = Parts(
            model=model, runner=runner, session=self.session, phases=Phases(Inbox()), shows=Shows(), system=system,
            hooks=hooks if hooks is not None else Hooks(), limits=limits, retries=retries if retries is not None else Retries(),
        )  # fmt: skip
        self._phases = self._parts.phases
        self._driver = Driver(self._parts)
        self._leave: Callable[[], None] | None = None
        self._entered = False
        """Whether the log has been read: nothing is taken before."""

    # Open and close.

    async def __aenter__(self) -> Self:
        if self._leave is not None or self._phases.is_disposed:
            raise AgentClosed("it was entered before; make a new one")
        self._leave = self._parts.runner.on_record(self.session.take)
        try:
            for message in await self.session.begin(self._parts.model.provider, self._parts.model.name):
                self._phases.inbox.queue(message)  # parked: nobody has woken this agent yet
            self._entered = True
        except BaseException:
            self._let_go()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    def dispose(self, text: str = "the agent was closed") -> None:
        """Take nothing more and stop what is under way, with source `shutdown`. Sync; `aclose` waits for the end.

        What waits in the inbox stays on record, for the session's next owner.
        """
        self._phases.dispose(text)

    async def aclose(self) -> None:
        """`dispose`, and wait until everything has ended. Any number of times."""
        self.dispose()
        await self.wait_idle()
        await self._driver.wait_ended()
        self._let_go()

    def _let_go(self) -> None:
        if self._leave is not None:
            self._leave()
            self._leave = None
            self.session.end()

    # Messages.

    def send(
        self,
        said: str | Content | Iterable[Content],
        *,
        target: Target = "next-turn",
        wake: bool = True,
        source: MessageSource = "human",
    ) -> Message:
        """Queue a message, and wake the agent if it is to. Sync: an idle agent has claimed it when this returns.

        Raises `AgentClosed`, or `ConfigError` for a message with nothing in it.
        """
        return self._take(Message(uuid4().hex, content_of(said), target, wake, source))

    def _take(self, message: Message) -> Message:
        if not self._entered or self._phases.is_disposed:
            raise AgentClosed("it is closed" if self._phases.is_disposed else "it was not entered")
        after_abort = self._phases.is_ending
        placed = self._phases.place(message)
        self._phases.inbox.queue(placed)
        self.session.append(placed.record())
        if placed.wake:
            self._driver.wake(after_abort=after_abort)
        return placed

    def follow_up(self, said: str | Content | Iterable[Content]) -> Message:
        """A message for a turn of its own, behind those that wait."""
        return self.send(said)

    def steer(self, said: str | Content | Iterable[Content]) -> Message:
        """A message for the turn that is under way: its next request carries it. Idle: a turn of its own."""
        return self.send(said, target="next-step", source="steer")

    def inject(self, said: str | Content | Iterable[Content], *, source: MessageSource = "note") -> Message:
        """Something the model should know with its next request, whenever that is; it wakes nobody.

        `source="host"`: an event, which no cancel takes back: it stands behind the marker then.
        """
        return self.send(said, target="next-step", wake=False, source=source)

    def wake(self) -> None:
        """Start on what waits, if anything does."""
        if self._phases.inbox.queued:
            self._driver.wake(after_abort=self._phases.is_ending)

    def take_back(self, message_id: str) -> Message | None:
        """Take a message back that nobody has claimed yet; None: it is too late."""
        message = self._phases.inbox.remove(message_id)
        if message is not None:
            self._driver.drop((message,), "taken back")
        return message

    def state(self, message_id: str) -> MessageState | None:
        """How far a message has come; None: it is gone, or was never here."""
        return self._phases.inbox.state(message_id)

    @property
    def queued(self) -> tuple[Message, ...]:
        """What waits."""
        return self._phases.inbox.queued

    async def prompt(self, said: str | Content | Iterable[Content]) -> TurnResult:
        """Send a message and wait for the end of the turn that takes it.

        Cancelled while it waits, it stops that turn with source `host`, waits until it has settled, and is cancelled then.

        Raises:
            JournalError: the turn could not be recorded. KeyboardInterrupt, SystemExit: a tool's body raised it.
        """
        message = Message(uuid4().hex, content_of(said))
        with self._driver.waiting_for(message) as waiter:  # before it is sent: whoever hears of it may take it back
            self._take(message)
            await wait_as_host(waiter.done, OnHostCancel.SETTLE, partial(self._host_left, message), HOST_CANCEL_WAIT)
        return waiter.told()

    def _host_left(self, message: Message) -> None:
        turn = self._driver.turn
        if self.take_back(message.id) is None and turn is not None and message in turn.taken:
            self.cancel("the task that awaited the turn was cancelled", source=Source.HOST, keep_inbox=True)

    # Stops.

    def cancel(self, text: str = "user", *, source: str = Source.CALLER, keep_inbox: bool = False) -> StopHandle:
        """Stop the turn that is under way. Sync; the first cause wins. Idle: nothing is stopped, no history is touched.

        Args:
            text: why.
            source: who asks (`toolrunner.facts.Source`).
            keep_inbox: leave what waits where it is, until the next wake; else it is taken back, and in the handle.
        """
        activity, turn = self._phases.activity, self._driver.turn
        dropped = self._phases.cancel(AbortReason(source, text), keep_inbox=keep_inbox)
        self._driver.drop(dropped, text)

        async def settled() -> TurnResult | None:
            if activity is None:
                return None
            await (turn.over if turn is not None else activity.over).wait()
            return turn.result if turn is not None else None

        return StopHandle(dropped, settled)

    # What goes on.

    @property
    def status(self) -> Status:
        return self._phases.status

    @property
    def turn_id(self) -> str | None:
        """The turn that is open; None: none is."""
        return self._driver.turn.turn_id if self._driver.turn is not None else None

    async def wait_idle(self) -> None:
        """Wait until nothing is under way, what was latched included."""
        while (activity := self._phases.activity) is not None:
            await activity.over.wait()

    def on_status(self, listener: Callable[[Status], object]) -> Callable[[], None]:
        """Hear of each change. Sync, in the very stretch of the change: it may send and cancel. What it raises is logged."""
        return self._driver.listen(listener)

    def on_stream(self, observer: Callable[[Frame], object]) -> Callable[[], None]:
        """Hear of what comes from the model while it comes. Sync, must not block."""
        return self._parts.shows.observe(observer)

    async def maintain(self, work: Callable[[AbortSignal], Awaitable[T]]) -> T | None:
        """Do something between turns (compaction, say); what wakes the agent meanwhile is kept until it is over.

        A cancel stops it, and gives None. Raises `AgentBusy`, `AgentClosed`.
        """
        if not self._entered or self._phases.is_disposed:
            raise AgentClosed("it is closed" if self._phases.is_disposed else "it was not entered")
        if self._phases.activity is not None:
            raise AgentBusy
        activity = self._phases.begin(Phase.MAINTENANCE)
        try:
            async with activity.signal.scope():
                return await work(activity.signal)
        finally:
            self._driver.converge()
        return None  # it was stopped
