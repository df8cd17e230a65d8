"""Lasting: what a runner has of its journal on disk: results of the whole session, keys, and questions from before a restart.

State: the questions that wait, by approval id, each taken out by whatever answers it first; and who waits for their calls.
Without a journal on disk there is nothing here.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import final

import anyio

from toolrunner.errors import ConfigError, NotSettled, RunnerClosed, UnknownRun
from toolrunner.facts import Annotations
from toolrunner.journal import SqliteJournal, boottime
from toolrunner.loops import call_later
from toolrunner.pipeline.services import Services
from toolrunner.policy import Answer, ApprovalRequest, Decision
from toolrunner.policy.answers import AnswerKind, judged
from toolrunner.recovery import PastCalls, PastKeys, Question, Recovered, recover
from toolrunner.results import ToolResult
from toolrunner.runner.hub import Hub
from toolrunner.runner.shelf import Shelf
from toolrunner.runner.submission import Submission
from toolrunner.tools import AnyTool

EXPIRED = Answer(AnswerKind.TIMEOUT, "Nobody answered in time, so the call was denied.")

LONGEST_TIMER = 86_400.0
"""Seconds of one timer at the most. A question that waits longer has its end looked at again then."""


async def open_lasting(hub: Hub, session: str | None) -> "Lasting":
    """Open the session's journal if one is named, and recover it before any call is taken. Raises JournalError.

    When it raises, the journal is closed, also one that was given: it is the runner's from here on.
    """
    journal = SqliteJournal.open(session=session) if session is not None else hub.journal
    if not isinstance(journal, SqliteJournal):
        return Lasting(None)
    try:
        lasting = Lasting(journal, await recover(journal))
    except BaseException:
        journal.close()
        raise
    hub.journal = journal
    return lasting


@final
class Lasting:
    """One per runner."""

    def __init__(self, journal: SqliteJournal | None, recovered: Recovered | None = None) -> None:
        self.recovered = recovered
        self._journal = journal
        self._calls = PastCalls(journal.reader()) if journal is not None else None
        self.keys = PastKeys(self._calls) if self._calls is not None else None
        self._questions: dict[str, tuple[Question, ApprovalRequest]] = {}
        self._timers: dict[str, Callable[[], None]] = {}
        self._answered: dict[str, anyio.Event] = {}
        """Run id of each call that waits -> set when its question has its answer, or the runner closes."""
        self._answer: Callable[[Question, Answer], None] | None = None

    @contextmanager
    def or_let_go(self) -> Iterator[None]:
        """While the runner is made: should that fail, nobody else would close the journal."""
        try:
            yield
        except BaseException:
            self.close()
            self.let_go()
            if self._journal is not None:
                self._journal.close()
            raise

    def know(self, services: Services, *tools: AnyTool) -> None:
        """Before any call of these tools: what of their arguments is secret, and what calls of earlier owners may have changed.

        Later writers are kept out of what a tool that can tell may have changed.
        """
        if self._journal is None or self._calls is None:
            return
        for tool in tools:
            self._journal.know_tool(tool.name, tool.parameters)
        telling = {tool.name: tool for tool in tools if tool.reconciler is not None}
        for result in self._calls.in_doubt() if telling else ():
            if result.name in telling:
                services.doubts.load(result, telling[result.name])

    def begin(self, services: Services, submission: Submission) -> None:
        """Before the first call: know the tools, and put up the questions of earlier owners, until each one's own end."""
        self.know(services, *(one.tool for one in services.catalogue))
        self._answer = submission.resume
        for question in self.recovered.questions if self.recovered is not None else ():
            registration = services.catalogue.find(question.story.name)
            request = _request(question, registration.tool.annotations if registration is not None else Annotations())
            self._questions[request.approval_id] = (question, request)
            self._answered[question.story.run_id] = anyio.Event()
            self._watch(question)

    @property
    def pending(self) -> tuple[ApprovalRequest, ...]:
        """The questions that wait, oldest first."""
        return tuple(request for _, request in self._questions.values())

    def decide(self, approval_id: str, decision: Decision) -> bool:
        """Answer one of them. True only for its first answer."""
        if not isinstance(decision, Decision):
            raise ConfigError("the answer to an approval", decision, "Decision.allow(), .deny() or .stop()")
        return self._settle(approval_id, judged(decision))

    def result(self, run_id: str, shelf: Shelf) -> ToolResult:
        """From the shelf, or from the journal when the shelf has let it go."""
        if run_id in self._answered and not self._answered[run_id].is_set():
            raise NotSettled(run_id)
        try:
            return shelf.result(run_id)
        except UnknownRun:
            if self._journal is None:
                raise
            # A reader of its own: this may be asked from another thread, and after the runner was closed.
            with self._journal.reader() as reader:
                found = PastCalls(reader).result(run_id)
            if found is None:
                raise
            return found

    async def wait(self, run_id: str, shelf: Shelf) -> ToolResult:
        """Wait for a call's answer, if it needs one, and for its result."""
        answered = self._answered.get(run_id)
        if answered is not None:
            await answered.wait()
            if any(question.story.run_id == run_id for question, _ in self._questions.values()):
                raise RunnerClosed("it was closed, and the call still waits for its approval")
        await shelf.wait(run_id)
        return self.result(run_id, shelf)

    def close(self) -> None:
        """Leave the questions to the journal's next owner."""
        for take_back in self._timers.values():
            take_back()
        self._timers.clear()
        for answered in self._answered.values():
            answered.set()

    def let_go(self) -> None:
        """Close the journal's reader. After the last call: a key that became free is looked up there again."""
        if self._calls is not None:
            self._calls.close()

    def _settle(self, approval_id: str, answer: Answer) -> bool:
        found = self._questions.pop(approval_id, None)
        if found is None or self._answer is None:
            return False
        question = found[0]
        self._timers.pop(approval_id, lambda: None)()
        self._answer(question, answer)
        self._answered[question.story.run_id].set()
        return True

    def _watch(self, question: Question) -> None:
        """The question's end: by the clock that goes on while the machine sleeps, which no timer of a loop does."""
        left = question.expires - boottime()
        approval_id = question.asked.approval_id
        if left > 0:
            self._timers[approval_id] = call_later(min(left, LONGEST_TIMER), lambda: self._watch(question))
        else:
            self._settle(approval_id, EXPIRED)


def _request(question: Question, annotations: Annotations) -> ApprovalRequest:
    story, asked = question.story, question.asked
    return ApprovalRequest(
        run_id=story.run_id,
        tool=story.name,
        arguments=story.arguments,
        digest=asked.digest,
        call_id=story.recorded.call_id if story.recorded is not None else None,
        text=asked.text,
        annotations=annotations,
        asked_at=asked.at,
        approval_id=asked.approval_id,
    )
