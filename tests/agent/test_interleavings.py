"""A whole turn stopped before each of its steps in turn, and its log cut behind each record: what is left is always true."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import anyio
import pytest
from agent.desk import Desk, at_work

from toolrunner import tool
from toolrunner.agent import ModelError, Retries, Session
from toolrunner.facts import Text
from toolrunner.history import check, closing_records, fold, project
from toolrunner.memory import MemoryJournal
from toolrunner.records import AssistantMessage, CallBlock, Record, UserMessage
from toolrunner.testing import ScriptedModel, before_step, call_chunks, said_chunks, thought_chunks
from toolrunner.wire import Provider

pytestmark = pytest.mark.anyio

BOUND = 60
MOST_STEPS = 3_000
"""Of one scenario; a sweep that does not end is a defect of its own."""


@tool(read_only=True, parallel_safe=True)
async def look(name: str) -> str:
    """Look."""
    await anyio.lowlevel.checkpoint()
    return name


@tool
async def write(name: str) -> str:
    """Write."""
    await anyio.lowlevel.checkpoint()
    return f"wrote {name}"


def script() -> ScriptedModel:
    """Thoughts and text, three calls, an attempt that fails, an end; then as many replies as a next turn may need."""
    calls = [
        *call_chunks("look", {"name": "a"}, call_id="c1", index=2),
        *call_chunks("look", {"name": "b"}, call_id="c2", index=3),
        *call_chunks("write", {"name": "c"}, call_id="c3", index=4),
    ]
    first = [*thought_chunks("hm"), *said_chunks("I will ", "look.", index=1), *calls]
    failed = [*said_chunks("wro", closed=False), ModelError("reset", retryable=True)]
    return ScriptedModel(first, failed, "done", *["later"] * 6)


async def scenario(stop: Callable[[Desk], object], at: int | None, **options: Any) -> tuple[Desk, bool]:
    """One prompt that is stopped before step `at`, and one that is not. Whether the stop came."""
    fired = False
    session = Session(MemoryJournal(), **options)
    async with at_work(model=script(), session=session, tools=[look, write], retries=Retries(first_wait=0)) as desk:
        with anyio.fail_after(BOUND):
            with before_step(at, lambda: stop(desk)) as steps:
                await desk.agent.prompt("A")
                await desk.agent.wait_idle()
            fired = steps.fired
            result = await desk.agent.prompt("B")
            assert result.outcome == "completed"
    return desk, fired


def require_true(desk: Desk) -> None:
    require_balanced(desk.types)
    require_one_answer_each(desk.records)
    bodies = [request.messages for request in desk.model.requests]
    for messages in bodies:
        assert check(messages, Provider.ANTHROPIC) == []
    for before, after in pairwise(bodies):
        require_extended(before, after)


def require_balanced(types: list[str]) -> None:
    for kind in ("turn", "step"):
        open_ = 0
        for one in types:
            open_ += (one == f"{kind}/start") - (one == f"{kind}/end")
            assert open_ in (0, 1), types
        assert open_ == 0, types
    assert types.count("request/sent") == types.count("assistant/message") + types.count("assistant/attempt")


def require_one_answer_each(records: Iterable[Record]) -> None:
    history = fold(records)
    assert history.unanswered == ()
    assert history.surplus == 0
    for message in records:
        if isinstance(message, AssistantMessage) and not message.interrupted:
            calls = [block.call_id for block in message.blocks if isinstance(block, CallBlock)]
            settled = [record.result.call_id for record in records if record.type == "call/settled"]
            assert [settled.count(call_id) for call_id in calls] == [1] * len(calls)


def require_extended(before: Any, after: Any) -> None:
    """All but the last message are the very same; that one may have grown at its end."""
    assert list(after[: len(before) - 1]) == list(before[:-1])
    last, now = before[-1], after[len(before) - 1]
    assert now["role"] == last["role"]
    assert now["content"][: len(last["content"])] == last["content"]


STOPS: dict[str, Callable[[Desk], object]] = {
    "cancel": lambda desk: desk.agent.cancel(),
    "keep the inbox": lambda desk: desk.agent.cancel(keep_inbox=True),
    "cancel and send": lambda desk: (desk.agent.cancel(), desk.agent.send("at once")),
    "steer": lambda desk: desk.agent.steer("and this"),
}


@pytest.mark.parametrize("how", STOPS)
async def test_whenever_a_turn_is_stopped_its_log_is_whole_and_what_is_sent_next_is_accepted(how: str) -> None:
    outcomes = set[str]()
    for at in range(1, MOST_STEPS):
        desk, fired = await scenario(STOPS[how], at)
        require_true(desk)
        outcomes.add(desk.outcomes[0] if desk.outcomes else "none")
        if not fired:
            break
    else:
        pytest.fail("the scenario never came to its end")
    assert outcomes >= ({"completed"} if how == "steer" else {"aborted", "completed"})


async def test_the_same_with_calls_of_a_stopped_response_answered_and_without_a_marker() -> None:
    for at in range(1, MOST_STEPS):
        desk, fired = await scenario(STOPS["cancel"], at, cut_calls="answer", marker="off")
        require_true(desk)
        if not fired:
            break


async def test_a_log_that_ends_behind_any_of_its_records_is_closed_and_accepted_by_every_provider() -> None:
    desk, _ = await scenario(STOPS["cancel"], None)
    numbered = list(desk.session.journal)  # type: ignore[call-overload]
    assert len(numbered) > 30
    for end in range(1, len(numbered) + 1):
        records = numbered[:end]
        closed = [*records, *closing_records(records)]
        assert closing_records(closed) == []
        history = fold(closed)
        assert (history.open_turn, history.unanswered) == (None, ())
        history = fold([*closed, UserMessage(run_id="next", content=(Text("and then?"),), seq=closed[-1].seq + 1)])
        for provider in Provider:
            assert check(project(history, provider), provider) == [], (end, provider)
