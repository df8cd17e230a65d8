"""Turn: steps of one request each, from the messages that a turn took to its last record. Order of records: the class below.

State: one `Turn`, changed by its own task. Wherever a stop may come it is looked for again, in the same stretch as the act that
it forbids. However the turn ends, what it opened is closed, in one commit.
"""

from typing import Literal, final
from uuid import uuid4

import anyio

from toolrunner.agent.asking import Asking
from toolrunner.agent.hooks import StepView
from toolrunner.agent.inbox import Message, followed_up
from toolrunner.agent.outcomes import TurnResult
from toolrunner.agent.parts import Parts
from toolrunner.agent.phases import Activity
from toolrunner.agent.streaming import Ending, Received
from toolrunner.calls import ToolCall
from toolrunner.errors import ToolrunnerError
from toolrunner.facts import Source
from toolrunner.history.chunks import Stop
from toolrunner.markers import interrupt_reason
from toolrunner.records import (
    CallBlock,
    InboxClaimed,
    StepEnded,
    StepStarted,
    TextBlock,
    TurnEnded,
    UserMessage,
)
from toolrunner.results import ToolResult
from toolrunner.tasks import Happening
from toolrunner.wire import CallKind

__all__ = ["TruncatedCalls", "Turn"]


class TruncatedCalls(ToolrunnerError):
    """The model's token limit cut calls; none of them was run, because nobody knows how they would have gone on."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(f"the response reached its token limit inside calls of {', '.join(names)}; they were not run")
        self.names = names


@final
class Turn:
    """One turn: turn/start, inbox/claimed, and for each step: step/start, user/message, request/sent, what came back, its calls,
    step/end; then turn/end. A turn that is stopped early has a part of that, in this order.
    """  # noqa: D205 - the order is one sentence

    def __init__(self, parts: Parts, activity: Activity, turn_id: str) -> None:
        self._parts, self._activity, self.turn_id = parts, activity, turn_id
        self._session, self._inbox = parts.session, parts.phases.inbox
        self._controller = activity.controller
        self.signal = activity.signal
        self.taken: list[Message] = []
        """Every message that it claimed, for whoever waits for one."""
        self.over = Happening()
        self.result: TurnResult | None = None
        """Set before `over`."""
        self._asking = Asking(parts, turn_id, self.signal)
        self._system: str | None = None
        self._step = 0
        self._open_step = False
        self._calls: list[ToolResult] = []
        self._text = ""
        self._stop: Stop | None = None

    def claim(self, *, opens_turn: bool) -> None:
        """Take what waits. Nothing undoes this."""
        taken = self._inbox.claim(opens_turn=opens_turn)
        self.taken += taken
        if taken:
            self._session.append(InboxClaimed(run_id=self.turn_id, message_ids=tuple(message.id for message in taken)))

    async def run(self) -> TurnResult:
        """Its whole life. Everything that happens is a value of the result, but the loop's own tear-down, which is raised on."""
        error: BaseException | None = None
        torn: BaseException | None = None
        try:
            await self._live()
        except anyio.get_cancelled_exc_class() as cancelled:
            self._controller.abort("the event loop was torn down", source=Source.HOST)
            torn = cancelled
        except BaseException as raised:  # noqa: BLE001 - told in the result, and raised by whoever waits where it is no value
            error = raised
        self.result = self._close(error)
        if torn is None:
            self.result = await self._kept(self.result)
        self.over.set()
        if torn is not None:
            raise torn
        return self.result

    async def _live(self) -> None:
        while True:
            if not await self._prepare():
                return
            reply = await self._one_step()
            if reply is None or self.signal.aborted or not await self._goes_on(reply):
                return

    # Before a step.

    async def _prepare(self) -> bool:
        """Whether there is to be another step."""
        self._look_at_limits()
        if self.signal.aborted:
            return False
        hooks, view = self._parts.hooks, StepView(self.turn_id, self._step + 1)
        async with self.signal.scope():
            if self._system is None:
                self._system = await hooks.system(view, self.signal) if hooks.system is not None else self._parts.system
            if hooks.pre_step is not None and not self.signal.aborted:
                await hooks.pre_step(view, self.signal)
        return not self.signal.aborted

    def _look_at_limits(self) -> None:
        parts = self._parts
        limit = parts.limits.reached(self._step, self._session.spent, parts.model.prices)
        if limit is not None:
            self._controller.abort(limit, source=Source.COST)

    # One step.

    async def _one_step(self) -> Received | None:
        """From step/start to step/end; None: the turn is not to go on."""
        self._step += 1
        self._open_step = True
        self._session.append(StepStarted(run_id=self.turn_id, step=self._step))
        reply = await self._ask()
        if reply is not None:
            self._note(reply)
            await self._run_calls(reply)
        self._end_step()
        if reply is not None and reply.truncated and not self.signal.aborted:
            raise TruncatedCalls(reply.truncated)
        return reply

    def _end_step(self) -> None:
        if self._open_step:
            self._open_step = False
            self._session.append(StepEnded(run_id=self.turn_id, step=self._step))

    async def _ask(self) -> Received | None:
        options = await self._asking.options(self._step)
        if self.signal.aborted:
            return None
        self._admit()
        return await self._asking.reply(self._step, self._system or "", options)

    def _admit(self) -> None:
        """What was claimed is said. Behind the step's last hook: what was stopped before was never part of the history."""
        said = [
            UserMessage(run_id=self.turn_id, content=message.content, source=message.source, message_id=message.id)
            for message in self._inbox.admit()
        ]
        if said:
            self._session.append(*said)

    def _note(self, reply: Received) -> None:
        said = "".join(block.text for block in reply.blocks if isinstance(block, TextBlock))
        self._text, self._stop = said or self._text, reply.stop

    # Calls.

    async def _run_calls(self, reply: Received) -> None:
        """Run what the model asked for. A stop that came since is told to the runner, which answers each call truthfully."""
        calls = _calls(reply)
        if not calls:
            return
        self._look_at_limits_of_costs()
        batch = await self._parts.runner.run_batch(calls, signal=self.signal)
        self._calls += batch
        for result in batch:
            self._queue_follow_ups(result)
        if batch.stopped is not None:  # by a hook or an approver: whoever denies and stops does not want the model to go on
            self._controller.abort(batch.stopped.reason, source=batch.stopped.source)

    def _look_at_limits_of_costs(self) -> None:
        """What the answers would be for will not be asked, so nothing is run for it. (Steps are counted before the next one.)"""
        parts = self._parts
        limit = parts.limits.reached(0, self._session.spent, parts.model.prices)
        if limit is not None:
            self._controller.abort(limit, source=Source.COST)

    def _queue_follow_ups(self, result: ToolResult) -> None:
        """What tools add behind their results, in model order, for the next step; after a stop it waits for the next wake."""
        for value in result.follow_up:
            message = Message(uuid4().hex, followed_up(value), "next-step", wake=False, source="note")
            self._inbox.queue(message)
            self._session.append(message.record())

    async def _goes_on(self, reply: Received) -> bool:
        """Whether there is more to ask. After the last look nothing awaits until turn/end, so a stop marks no finished turn."""
        if not _calls(reply) and reply.stop is not Stop.PAUSE and not self._inbox.has_steer:
            hook = self._parts.hooks.turn_stopping
            if hook is not None:
                async with self.signal.scope():
                    await hook(StepView(self.turn_id, self._step), self.signal)
            if self.signal.aborted or not self._inbox.has_steer:
                return False
        self.claim(opens_turn=False)
        return True

    # The end.

    def _close(self, error: BaseException | None) -> TurnResult:
        """Step and turn in order. Sync: nobody can come in between."""
        unadmitted = self._inbox.end_turn()
        self._end_step()
        reason = self.signal.reason
        outcome: Literal["completed", "aborted", "error"] = "completed"
        if reason is not None:
            outcome = "aborted"
        elif error is not None:
            outcome = "error"
        self._activity.turn_id = None
        self._session.append(
            TurnEnded(
                run_id=self.turn_id,
                outcome=outcome,
                source=reason.source if reason is not None else "",
                reason=reason.text if reason is not None else _told(error),
                interrupt=interrupt_reason(reason.source) if reason is not None else None,
            )
        )
        return TurnResult(
            turn_id=self.turn_id, outcome=outcome, text=self._text, stop=self._stop, reason=reason,
            error=_told(error), failure=error, steps=self._step, results=tuple(self._calls),
            unadmitted=unadmitted,
        )  # fmt: skip

    async def _kept(self, result: TurnResult) -> TurnResult:
        """Wait until all of it is on disk; the draft goes only then."""
        try:
            await self._session.durable()
        except Exception as error:  # noqa: BLE001 - JournalError: the turn is over all the same, and not on record
            return TurnResult(
                turn_id=self.turn_id, outcome="error", text=self._text, stop=self._stop, reason=result.reason,
                error=str(error), failure=error, steps=self._step, results=result.results, unadmitted=result.unadmitted,
            )  # fmt: skip
        self._session.draft(None)
        return result


def _calls(reply: Received) -> list[ToolCall]:
    """The calls of a whole response. Of two with one id the first is the call: a reconnect may repeat it.

    A refusal may have cut the last one; calls of it are answered as not started when the turn ends.
    """
    if reply.ending is not Ending.WHOLE or reply.stop is Stop.REFUSAL:
        return []
    calls, seen = list[ToolCall](), set[str]()
    for block in reply.blocks:
        if isinstance(block, CallBlock) and (block.call_id is None or block.call_id not in seen):
            seen.add(block.call_id or "")
            given = {"input": block.arguments} if block.kind == CallKind.CUSTOM else block.arguments or "{}"
            calls.append(ToolCall(block.name, given, block.call_id, block.kind, provider_meta=dict(block.provider_meta)))
    return calls


def _told(error: BaseException | None) -> str:
    return "" if error is None else str(error) or type(error).__name__
