"""Asks for approvals: one question at a time, each with exactly one answer, whatever the approver does.

State: the asks that are open, by approval id, and whose turn it is. An ask is settled by the first of: the approver, `decide`,
an abort, the limit. Settling is one synchronous step on the loop, so two of them cannot both win; what comes later is discarded.
"""

import contextvars
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol, final
from uuid import uuid4

import anyio

from toolrunner.abort import AbortSignal
from toolrunner.errors import ConfigError
from toolrunner.loops import call_later
from toolrunner.policy.answers import Answer, AnswerKind, aborted, error_text, judged, nobody, timed_out, unavailable
from toolrunner.policy.decisions import ApprovalRequest, Approver, Decision
from toolrunner.records import CallAnswered, CallAsked, CallDecided, now

_logger = logging.getLogger("toolrunner")

RECORD_WAIT = 30.0
"""Seconds until a question, or its grant, must be durable. Far more than a slow disk's flush; after it the ask fails closed."""

ASKED_ELSEWHERE = "asked elsewhere"
"""Who says in a `call/decided` that the approver has handed the question on: the answer may come after this host is gone."""

LEAVE_WAIT = 5.0
"""Seconds that an approver gets to leave a settled question before the next one is asked all the same: a prompt needs a moment
to close, and an approver that ignores its cancel must not silence all later questions."""


class Cancellable(Protocol):
    """A task that the runner owns."""

    def cancel(self) -> object:
        """Ask it to end. Called at most once, on the loop."""
        ...


class Spawn(Protocol):
    """Starts a task that the runner owns, in a copy of the current context. `fn` is entered also when it is cancelled before."""

    def __call__(self, fn: Callable[[], Awaitable[None]], name: str, /) -> Cancellable: ...


@final
class _Ask:
    """One question on its way. Written by the desk alone; `answer` once, and then for good."""

    __slots__ = ("answer", "consulting", "context", "durable", "outlives", "request", "settled", "signal", "task", "timers")

    def __init__(self, request: ApprovalRequest, signal: AbortSignal, *, outlives: bool) -> None:
        self.request = request
        self.outlives = outlives
        self.signal = signal
        # The question of a call is asked in that call's context, whoever's end it was that made it its turn.
        self.context = contextvars.copy_context()
        self.answer: Answer | None = None
        self.settled = anyio.Event()
        self.consulting = False
        self.task: Cancellable | None = None
        self.durable: Awaitable[None] | None = None
        self.timers: list[Callable[[], None]] = []

    def stop_timers(self) -> None:
        while self.timers:
            self.timers.pop()()


@final
class ApprovalDesk:
    """Where one runner's questions are asked and answered.

    `limit` (seconds) bounds each question from the moment it is put to the approver; waiting for its turn before that is bounded
    by the limits of those ahead. `append` is the journal's. An approver of None means that nobody can be asked: denied.
    `boottime` (seconds of CLOCK_BOOTTIME) dates the end of a question for whoever opens the journal after this host.
    """

    def __init__(
        self,
        approver: Approver | None,
        *,
        append: Callable[..., Awaitable[None] | None],
        spawn: Spawn,
        limit: float,
        boottime: Callable[[], float] | None = None,
    ) -> None:
        if not math.isfinite(limit) or limit <= 0:
            raise ConfigError("the limit of an approval", limit, "a finite number of seconds, more than 0")
        self._approver = approver
        self._append = append
        self._spawn = spawn
        self._limit = limit
        self._boottime = boottime
        self._open: dict[str, _Ask] = {}
        self._line: deque[_Ask] = deque()
        self._turn: _Ask | None = None

    @property
    def pending(self) -> tuple[ApprovalRequest, ...]:
        """The questions that were asked and have no answer yet, oldest first."""
        return tuple(ask.request for ask in self._open.values())

    async def ask(self, request: ApprovalRequest, signal: AbortSignal, *, outlives: bool = False) -> Answer:
        """Put one question and wait for its end. Never raises for what the approver or the journal does; it fails closed.

        `outlives`: what is on record is enough to run the call, should its answer come from elsewhere after this host is gone.

        `request.approval_id` and `asked_at` are given here. An abort ends the wait at once, and wins over every answer that comes
        after it. Being cancelled settles the ask as aborted.
        """
        if signal.aborted:
            return aborted()
        if self._approver is None:
            return nobody(request.text)
        ask = _Ask(request, signal, outlives=outlives)
        unsubscribe = signal.on_abort(lambda: self._settle(ask, aborted()))
        try:
            self._line.append(ask)
            self._advance()
            await ask.settled.wait()
        finally:
            unsubscribe()
            self._settle(ask, aborted())
        return await _confirmed(ask)

    def decide(self, approval_id: str, decision: Decision) -> bool:
        """Answer an open question from elsewhere. True only for the first answer of a pending id; ConfigError for no Decision."""
        if not isinstance(decision, Decision):
            raise ConfigError("the answer to an approval", decision, "Decision.allow(), .deny() or .stop()")
        ask = self._open.get(approval_id)
        return ask is not None and self._settle(ask, judged(decision))

    def _advance(self) -> None:
        while self._line and self._turn is None:
            ask = self._line.popleft()
            if ask.answer is None:
                self._put(ask)

    def _put(self, ask: _Ask) -> None:
        approval_id = uuid4().hex
        ask.request = replace(ask.request, approval_id=approval_id, asked_at=now())
        self._open[approval_id] = ask
        asked = CallAsked(
            run_id=ask.request.run_id,
            approval_id=approval_id,
            text=ask.request.text,
            digest=ask.request.digest,
            expires=self._boottime() + self._limit if self._boottime is not None else None,
        )
        try:
            durable = self._append(asked)
        except Exception as error:  # noqa: BLE001  a question that cannot be recorded is not asked
            self._settle(ask, unavailable(f"Its approval could not be recorded ({error_text(error)})"))
            return
        ask.timers.append(call_later(self._limit, lambda: self._settle(ask, timed_out(self._limit))))
        if getattr(self._approver, "concurrent", False) is not True:
            self._turn = ask
        ask.consulting = True
        try:
            name = f"approval of {ask.request.tool}"
            ask.task = ask.context.run(self._spawn, lambda: self._consult(ask, durable), name)
        except Exception as error:  # noqa: BLE001  the runner takes no more tasks
            self._leave(ask)
            self._settle(ask, unavailable(f"Nobody could be asked ({error_text(error)})"))

    async def _consult(self, ask: _Ask, durable: Awaitable[None] | None) -> None:
        """The approver's task. Only cancellation and the like leave it; whatever comes after the settling is discarded."""
        doing = "Its approval could not be recorded"
        try:
            if durable is not None:
                with anyio.fail_after(RECORD_WAIT):
                    await durable
            doing = "The approver failed"
            answer = None
            if ask.answer is None and self._approver is not None:
                answer = await self._approver.decide(ask.request, ask.signal)
        except BaseException as error:
            self._leave(ask)
            self._settle(ask, unavailable(f"{doing} ({error_text(error)})"))
            if not isinstance(error, Exception):
                raise
        else:
            self._leave(ask)
            if answer is not None:
                self._settle(ask, judged(answer))
            elif ask.answer is None and ask.outlives:
                self._note_elsewhere(ask)
        finally:
            # Only now, with the answer recorded, so that the records of two questions never interleave.
            self._advance()

    def _note_elsewhere(self, ask: _Ask) -> None:
        """Without this record the question dies with this host, which is the safe side: so it is not waited for."""
        try:
            self._append(CallDecided(run_id=ask.request.run_id, decision="ask", by=ASKED_ELSEWHERE, text=ask.request.approval_id))
        except Exception:
            _logger.exception("that the question about %s is asked elsewhere could not be recorded", ask.request.tool)

    def _leave(self, ask: _Ask) -> None:
        ask.consulting = False
        if ask.answer is not None:
            ask.stop_timers()
        if self._turn is ask:
            self._turn = None

    def _settle(self, ask: _Ask, answer: Answer) -> bool:
        """Give the ask its one answer. True if it became this one."""
        if ask.answer is not None:
            return False
        settled = aborted() if ask.signal.aborted else answer
        ask.stop_timers()
        if self._open.pop(ask.request.approval_id, None) is not None:
            settled = self._recorded(ask, replace(settled, approval_id=ask.request.approval_id))
        ask.answer = settled
        ask.settled.set()
        if ask.consulting and ask.task is not None:
            ask.timers.append(call_later(LEAVE_WAIT, lambda: self._give_up(ask)))
            ask.task.cancel()
        return settled.kind is answer.kind

    def _recorded(self, ask: _Ask, answer: Answer) -> Answer:
        decision = answer.decision
        record = CallAnswered(
            run_id=ask.request.run_id,
            approval_id=answer.approval_id,
            answer=answer.kind.value,
            text=answer.text,
            for_=decision.for_ if decision is not None else "once",
        )
        try:
            ask.durable = self._append(record)
        except Exception as error:  # noqa: BLE001  a grant that cannot be recorded is none
            return _closed(answer, error)
        return answer

    def _give_up(self, ask: _Ask) -> None:
        """The approver did not leave in time: its task goes on in the runner, the next question is asked."""
        _logger.warning("the approver still runs %g s after its question about %s was settled", LEAVE_WAIT, ask.request.tool)
        self._leave(ask)
        self._advance()


async def _confirmed(ask: _Ask) -> Answer:
    """The ask's answer; a grant only when its record is durable."""
    answer = ask.answer
    assert answer is not None  # `settled` is set by `_settle` alone
    if answer.kind is not AnswerKind.ALLOW or ask.durable is None:
        return answer
    try:
        with anyio.fail_after(RECORD_WAIT):
            await ask.durable
    except Exception as error:  # noqa: BLE001  whatever the journal's failure is
        return _closed(answer, error)
    return answer


def _closed(answer: Answer, error: Exception) -> Answer:
    if answer.kind is not AnswerKind.ALLOW:
        return answer
    return replace(unavailable(f"Its approval could not be recorded ({error_text(error)})"), approval_id=answer.approval_id)
