"""An agent at work on a scripted model, and what it wrote: for tests that look at turns from the outside."""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import anyio

from toolrunner import Runner
from toolrunner.agent import AgentLoop, Frame, Session, Status, StreamChunk
from toolrunner.history.chunks import Delta
from toolrunner.records import Record, TurnEnded, UserMessage
from toolrunner.results import plain_text
from toolrunner.testing import Gate, ScriptedModel


@dataclass
class Desk:
    agent: AgentLoop
    runner: Runner
    session: Session
    model: Any
    records: list[Record]
    stop_listening: list[Callable[[], None]] = field(default_factory=list)

    @property
    def types(self) -> list[str]:
        return [record.type for record in self.records]

    def count(self, kind: str) -> int:
        return self.types.count(kind)

    @property
    def ends(self) -> list[tuple[str, str, str]]:
        """(outcome, source, reason) of each turn."""
        return [(one.outcome, one.source, one.reason) for one in self.records if isinstance(one, TurnEnded)]

    @property
    def outcomes(self) -> list[str]:
        return [outcome for outcome, _, _ in self.ends]

    @property
    def said(self) -> list[str]:
        """What users and hosts said, as far as the log admits it."""
        return [plain_text(one.content) for one in self.records if isinstance(one, UserMessage)]

    def of(self, kind: str) -> list[Any]:
        return [record for record in self.records if record.type == kind]

    def when(self, kind: str, act: Callable[[], object], *, times: int = 1) -> None:
        """Do something in the very stretch in which a record of this type is shown."""
        left = [times]

        def look(record: Record) -> None:
            if record.type == kind and left[0]:
                left[0] -= 1
                act()

        self.stop_listening.append(self.session.observe(look))

    def hear(self, wanted: str) -> anyio.Event:
        """Set once the model's words have come that far. Asked for before they are spoken."""
        came, so_far = anyio.Event(), list[str]()

        def look(frame: Frame) -> None:
            if isinstance(frame, StreamChunk) and isinstance(frame.chunk, Delta):
                so_far.append(frame.chunk.text)
                if "".join(so_far).endswith(wanted):
                    came.set()

        self.stop_listening.append(self.agent.on_stream(look))
        return came

    def on_status(self, wanted: Status, act: Callable[[], object], *, times: int = 1) -> None:
        left = [times]

        def look(status: Status) -> None:
            if status is wanted and left[0]:
                left[0] -= 1
                act()

        self.stop_listening.append(self.agent.on_status(look))


@contextlib.asynccontextmanager
async def at_work(
    *replies: Any,
    tools: Iterable[Any] = (),
    model: Any = None,
    session: Session | None = None,
    runner: dict[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[Desk]:
    model = model if model is not None else ScriptedModel(*replies)
    session = session if session is not None else Session()
    records: list[Record] = []
    stop = session.observe(lambda record: None if record.transient else records.append(record))
    async with (
        Runner(tools, journal=session.journal, **(runner or {})) as running,
        AgentLoop(model, running, session, **settings) as agent,
    ):
        yield Desk(agent, running, session, model, records)
    stop()


def hanging(*pieces: Any) -> tuple[list[Any], Gate]:
    """A reply that says this and then hangs, and the gate that it waits at."""
    gate = Gate()
    return [*pieces, gate], gate


def last_words(messages: Any) -> list[str]:
    """The text parts of a request's last message (anthropic's shape)."""
    return [part["text"] for part in messages[-1]["content"] if part["type"] == "text"]
