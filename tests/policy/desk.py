"""What the tests of approvals share: a desk with its journal and its tasks, and an approver that answers when it is let."""

import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import anyio.abc
from stillness import all_blocked

from toolrunner.abort import AbortController
from toolrunner.policy import Answer, AnswerKind, ApprovalDesk, ApprovalRequest

ALLOW, DENY, STOP = AnswerKind.ALLOW, AnswerKind.DENY, AnswerKind.STOP

ABORTED, TIMEOUT, UNAVAILABLE = AnswerKind.ABORTED, AnswerKind.TIMEOUT, AnswerKind.UNAVAILABLE


def question(tool: str = "shell", **fields: Any) -> ApprovalRequest:
    return ApprovalRequest(run_id=f"run-{tool}", tool=tool, arguments={"cmd": "ls"}, digest="d1", text="it writes", **fields)


class Journal:
    """Takes records. `fail` names the type whose append raises, `gates` those that become durable later."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.fail = ""
        self.gates: dict[str, Callable[[], Awaitable[None]]] = {}

    def append(self, record: Any) -> Awaitable[None] | None:
        if record.type == self.fail:
            raise OSError("disk full")
        self.records.append(record)
        gate = self.gates.get(record.type)
        return gate() if gate is not None else None

    def told(self) -> list[tuple[str, str]]:
        return [(record.type, getattr(record, "answer", "")) for record in self.records]


class Approver:
    """Asked questions wait in `asked`; each is answered by setting a value, or an exception, in `answers`."""

    def __init__(self, answer: Any = None, *, concurrent: bool = False) -> None:
        self.concurrent = concurrent
        self.asked: list[tuple[ApprovalRequest, Any]] = []
        self.arrived = anyio.Event()
        self.release = anyio.Event()
        self.ended: list[str] = []
        self.answer = answer
        self.cancels = 0

    async def decide(self, request: ApprovalRequest, signal: Any) -> Any:
        self.asked.append((request, signal))
        self.arrived.set()
        try:
            await self.release.wait()
        except anyio.get_cancelled_exc_class():
            self.cancels += 1
            raise
        finally:
            self.ended.append(request.tool)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class Tasks:
    """Tasks that the "runner" owns: not those of whoever asks."""

    def __init__(self, group: anyio.abc.TaskGroup) -> None:
        self._group = group
        self.cancels: Counter[str] = Counter()

    def spawn(self, fn: Callable[[], Awaitable[None]], name: str) -> Any:
        tasks, scope = self, anyio.CancelScope()

        async def run() -> None:
            with scope:
                await fn()

        class Task:
            def cancel(self) -> None:
                tasks.cancels[name] += 1
                scope.cancel()

        self._group.start_soon(run, name=name)
        return Task()


class Bench:
    def __init__(self, approver: Any, group: anyio.abc.TaskGroup, limit: float) -> None:
        self.journal = Journal()
        self.tasks = Tasks(group)
        self.controller = AbortController()
        self.group = group
        self.desk = ApprovalDesk(approver, append=self.journal.append, spawn=self.tasks.spawn, limit=limit)
        self.answers: dict[str, Answer] = {}
        self.answered: dict[str, anyio.Event] = {}

    def ask(self, tool: str = "shell", controller: AbortController | None = None) -> None:
        async def run() -> None:
            self.answers[tool] = await self.desk.ask(question(tool), (controller or self.controller).signal)
            self.answered[tool].set()

        self.answered[tool] = anyio.Event()
        self.group.start_soon(run)


@contextlib.asynccontextmanager
async def bench(approver: Any, limit: float = 60) -> AsyncIterator[Bench]:
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            yield Bench(approver, group, limit)


settle = all_blocked
