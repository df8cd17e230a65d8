"""Anthropic's SDK against a server of ours that speaks its wire format: what is read, what is sent, and that a stop closes it."""

from typing import Any

import anyio
import pytest
from agent.anthropic_words import START, block, call, end, text
from agent.desk import at_work
from agent.loopback import Cut, Status, provider

from toolrunner import tool
from toolrunner.agent import Retries
from toolrunner.agent.providers import open_model
from toolrunner.history import check
from toolrunner.records import CallBlock, ReasoningBlock, RedactedBlock, TextBlock, UnknownBlock
from toolrunner.testing import Gate

pytest.importorskip("anthropic", reason="needs the extra agent")

pytestmark = pytest.mark.anyio

BOUND = 60


@tool(read_only=True)
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def test_a_whole_turn_with_thoughts_calls_and_the_provider_s_own_tools() -> None:
    thinking = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "add them"},
        {"type": "signature_delta", "signature": "c2ln"},
    )
    redacted = block(1, {"type": "redacted_thinking", "data": "b3BhcXVl"})
    search = block(
        2,
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"query": "sum"}'},
    )
    found = block(3, {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []})
    first = [
        START,
        *thinking,
        *redacted,
        *search,
        *found,
        *text("Adding.", index=4),
        *call("add", '{"a": 1,', ' "b": 2}', index=5),
    ]
    async with provider([*first, *end("tool_use")], [START, *text("three"), *end()]) as served:
        model = open_model("anthropic", "claude-test", base_url=served.url, api_key="k")
        async with at_work(model=model, tools=[add], system="be brief") as desk:
            with anyio.fail_after(BOUND):
                result = await desk.agent.prompt("1 + 2?")
        await model.aclose()
    assert (result.outcome, result.text) == ("completed", "three")
    assert result.results[0].value == 3
    assert desk.of("assistant/message")[0].blocks == (
        ReasoningBlock("add them", signature="c2ln"),
        RedactedBlock("b3BhcXVl"),
        UnknownBlock({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "sum"}}),
        UnknownBlock({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}),
        TextBlock("Adding."),
        CallBlock("add", '{"a": 1, "b": 2}', "toolu_1"),
    )
    assert (desk.session.spent.input, desk.session.spent.output, desk.session.spent.cache_read) == (24, 18, 6)
    one, two = (seen.body for seen in served.requests)
    assert (one["system"], one["model"], one["stream"]) == ("be brief", "claude-test", True)
    assert [entry["name"] for entry in one["tools"]] == ["add"]
    assert two["messages"][: len(one["messages"])] == one["messages"]
    assert check(two["messages"], "anthropic") == []
    assert two["messages"][-1]["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "3"}]}
    ]


async def test_a_stop_in_mid_sentence_closes_the_response_and_the_next_request_extends_the_bytes_of_the_last() -> None:
    gate = Gate()
    async with provider(
        [START, *text("First, apples. ", "Second, pe", closed=False), gate], [START, *text("ars"), *end()]
    ) as served:
        model = open_model("anthropic", "claude-test", base_url=served.url, api_key="k")
        async with at_work(model=model) as desk:
            with anyio.fail_after(BOUND):
                heard = desk.hear("Second, pe")
                desk.agent.send("list fruit")
                await heard.wait()
                report = await desk.agent.cancel().settled()
                await served.requests[0].left.wait()
                assert report.turn is not None
                assert report.turn.text == "First, apples. Second, pe"
                await desk.agent.prompt("expand on your second point")
        await model.aclose()
    one, two = (seen.body["messages"] for seen in served.requests)
    assert two[: len(one)] == one
    assert two[len(one) :] == [
        {"role": "assistant", "content": [{"type": "text", "text": "First, apples. Second, pe"}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[Request interrupted by user]"},
                {"type": "text", "text": "expand on your second point"},
            ],
        },
    ]


@pytest.mark.parametrize(
    "script, told",
    [
        ([Status(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})], "529"),
        ([Status(429, {"error": {"type": "rate_limit_error"}}, {"retry-after": "0"})], "429"),
        (
            [START, *text("ha", closed=False), {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}],
            "Overloaded",
        ),
        ([START, *text("ha", closed=False), Cut()], ""),
        ([START, *text("half")], "the response ended before its end"),
    ],
    ids=["529", "429", "an error in the stream", "a cut connection", "an early end"],
)
async def test_what_may_pass_is_asked_again_and_leaves_an_attempt(script: list[Any], told: str) -> None:
    async with provider(script, [START, *text("done"), *end()]) as served:
        model = open_model("anthropic", "claude-test", base_url=served.url, api_key="k")
        async with at_work(model=model, retries=Retries(attempts=2, first_wait=0)) as desk:
            with anyio.fail_after(BOUND):
                result = await desk.agent.prompt("A")
        await model.aclose()
    assert (result.outcome, result.text) == ("completed", "done")
    (attempt,) = desk.of("assistant/attempt")
    assert told in attempt.text
    assert len(desk.of("assistant/message")) == 1


async def test_what_cannot_pass_is_not_asked_again() -> None:
    bad = Status(400, {"type": "error", "error": {"type": "invalid_request_error", "message": "no such model"}})
    async with provider([bad]) as served:
        model = open_model("anthropic", "claude-test", base_url=served.url, api_key="k")
        async with at_work(model=model, retries=Retries(attempts=3, first_wait=0)) as desk:
            with anyio.fail_after(BOUND):
                result = await desk.agent.prompt("A")
        await model.aclose()
    assert result.outcome == "error"
    assert "no such model" in result.error
    assert len(served.requests) == 1


async def test_a_server_that_hangs_before_its_first_byte_is_left_at_once_by_a_stop() -> None:
    gate = Gate()
    async with provider([gate]) as served:
        model = open_model("anthropic", "claude-test", base_url=served.url, api_key="k")
        async with at_work(model=model) as desk:
            with anyio.fail_after(BOUND):
                desk.agent.send("A")
                await gate.reached(1)
                await desk.agent.cancel().settled()
                await served.requests[0].left.wait()
        await model.aclose()
    assert desk.of("assistant/attempt")[0].cause == "cancelled"
    assert desk.count("assistant/message") == 0
