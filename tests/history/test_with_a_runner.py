"""A real runner's records, with a conversation around them: what it did is what the next request says, for every provider."""

import json
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from toolrunner import AbortController, MemoryJournal, Runner, ToolCall, tool
from toolrunner.facts import Text
from toolrunner.history import InterruptReason, check, fold, project
from toolrunner.records import AssistantMessage, Block, CallBlock, RequestSent, TextBlock, TurnEnded, TurnStarted, UserMessage
from toolrunner.testing import Gate
from toolrunner.wire import Provider

pytestmark = pytest.mark.anyio

CALLS = (
    CallBlock("look", '{"what":"a"}', "c1"),
    CallBlock("hang", "{}", "c2"),
    CallBlock("look", '{"what":"b"}', "c3"),
)


def spoken(journal: MemoryJournal, provider: Provider, calls: Sequence[CallBlock]) -> None:
    """What an engine writes before it runs the calls of a reply."""
    journal.append(TurnStarted(run_id="t"))
    journal.append(UserMessage(run_id="t", content=(Text("look at both"),)))
    journal.append(RequestSent(run_id="t", step=1, provider=provider, model="m", upto_seq=2))
    blocks: tuple[Block, ...] = (TextBlock("Looking."), *calls)
    journal.append(AssistantMessage(run_id="t", step=1, provider=provider, model="m", blocks=blocks))


def next_request(journal: MemoryJournal, provider: Provider, outcome: Any, interrupt: InterruptReason | None) -> list[Any]:
    journal.append(TurnEnded(run_id="t", outcome=outcome, source="caller" if interrupt else "", interrupt=interrupt))
    journal.append(TurnStarted(run_id="u"), UserMessage(run_id="u", content=(Text("and now?"),)))
    return project(fold(journal), provider)


def asked_for(calls: Sequence[CallBlock]) -> list[ToolCall]:
    return [ToolCall(call.name, call.arguments, call_id=call.call_id) for call in calls]


@pytest.mark.parametrize("provider", Provider)
async def test_a_batch_that_ran_is_answered_call_by_call(provider: Provider) -> None:
    @tool(read_only=True)
    async def look(what: str) -> str:
        return f"seen {what}"

    journal = MemoryJournal()
    spoken(journal, provider, (CALLS[0], CALLS[2]))
    with anyio.fail_after(5):
        async with Runner([look], journal=journal) as runner:
            await runner.run_batch(asked_for((CALLS[0], CALLS[2])))
    messages = next_request(journal, provider, "completed", None)
    assert check(messages, provider) == []
    said = json.dumps(messages)
    assert said.count("seen a") == said.count("seen b") == 1
    assert said.index("seen a") < said.index("seen b")
    assert "interrupted" not in said


@pytest.mark.parametrize("provider", Provider)
async def test_a_batch_that_was_stopped_says_what_is_true_of_each_call(provider: Provider) -> None:
    hangs = Gate()
    controller = AbortController()

    @tool(read_only=True)
    async def look(what: str) -> str:
        return f"seen {what}"

    @tool
    async def hang() -> None:
        await hangs.wait()

    journal = MemoryJournal()
    spoken(journal, provider, CALLS)
    with anyio.fail_after(5):
        async with Runner([look, hang], journal=journal) as runner, anyio.create_task_group() as tasks:

            async def stop() -> None:
                await hangs.reached()
                controller.abort("user")

            tasks.start_soon(stop)
            await runner.run_batch(asked_for(CALLS), signal=controller.signal)
    messages = next_request(journal, provider, "aborted", InterruptReason.USER)
    assert check(messages, provider) == []
    said = json.dumps(messages)
    told = ["seen a", "was stopped while it ran", "was stopped before it started", "[Request interrupted by user]", "and now?"]
    assert [said.count(one) for one in told] == [1] * 5
    places = [said.index(one) for one in told]
    assert places == sorted(places)
