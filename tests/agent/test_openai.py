"""OpenAI's SDK, both of its APIs, against a server of ours that speaks their wire formats."""

from typing import Any

import anyio
import pytest
from agent.desk import at_work
from agent.loopback import Cut, Status, named, provider, unnamed

from toolrunner import tool
from toolrunner.agent import Retries
from toolrunner.agent.providers import open_model
from toolrunner.errors import ConfigError
from toolrunner.history import check
from toolrunner.history.chunks import Stop
from toolrunner.records import CallBlock, ReasoningBlock, TextBlock
from toolrunner.testing import Gate

pytest.importorskip("openai", reason="needs the extra agent")

pytestmark = pytest.mark.anyio

BOUND = 60
DONE = b"data: [DONE]\n\n"


@tool(read_only=True)
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


# --- Chat Completions


def piece(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def counted(sent: int, cached: int, made: int) -> dict[str, Any]:
    usage = {
        "prompt_tokens": sent, "completion_tokens": made, "total_tokens": sent + made,
        "prompt_tokens_details": {"cached_tokens": cached},
    }  # fmt: skip
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": usage}


def called(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": more.pop("name")} if "name" in more else {})}
    return piece(tool_calls=[{"index": index, "function": function, **more}])


async def test_chat_a_whole_turn_with_a_thought_and_two_calls() -> None:
    first = [
        piece(role="assistant", content=""),
        piece(reasoning_content="two sums"),
        piece(content="Adding."),
        called(0, "", id="call_1", type="function", name="add"),
        called(0, '{"a": 1, '),
        called(0, '"b": 2}'),
        called(1, '{"a": 3, "b": 4}', id="call_2", type="function", name="add"),
        piece("tool_calls"),
        counted(20, 5, 7),
    ]
    async with provider(first, [piece(content="3 and 7"), piece("stop")], encode=unnamed, last=DONE) as served:
        model = open_model("openai_chat", "m", base_url=f"{served.url}/v1", api_key="k")
        async with at_work(model=model, tools=[add], system="be brief") as desk:
            with anyio.fail_after(BOUND):
                result = await desk.agent.prompt("sums")
        await model.aclose()
    assert (result.outcome, result.text) == ("completed", "3 and 7")
    assert [one.value for one in result.results] == [3, 7]
    assert desk.of("assistant/message")[0].blocks == (
        ReasoningBlock("two sums"),
        TextBlock("Adding."),
        CallBlock("add", '{"a": 1, "b": 2}', "call_1"),
        CallBlock("add", '{"a": 3, "b": 4}', "call_2"),
    )
    assert (desk.session.spent.input, desk.session.spent.cache_read, desk.session.spent.output) == (15, 5, 7)
    one, two = (seen.body for seen in served.requests)
    assert served.requests[0].path == "/v1/chat/completions"
    assert one["messages"] == [{"role": "system", "content": "be brief"}, {"role": "user", "content": "sums"}]
    assert two["messages"][: len(one["messages"])] == one["messages"]
    assert check(two["messages"], "openai_chat") == []
    assert [message["role"] for message in two["messages"][2:]] == ["assistant", "tool", "tool"]


async def test_chat_a_stop_closes_the_response_and_keeps_what_was_read() -> None:
    gate = Gate()
    cut = [piece(content="First. "), piece(content="Seco"), called(0, '{"a": ', id="call_1", type="function", name="add"), gate]
    async with provider(cut, [piece(content="ok"), piece("stop")], encode=unnamed, last=DONE) as served:
        model = open_model("openai_chat", "m", base_url=f"{served.url}/v1")
        async with at_work(model=model, tools=[add]) as desk:
            with anyio.fail_after(BOUND):
                heard = desk.hear('{"a": ')
                desk.agent.send("A")
                await heard.wait()
                await desk.agent.cancel().settled()
                await served.requests[0].left.wait()
                await desk.agent.prompt("B")
        await model.aclose()
    one, two = (seen.body["messages"] for seen in served.requests)
    assert two == [
        *one,
        {"role": "assistant", "content": "First. Seco"},
        {"role": "user", "content": "[Request interrupted by user]"},
        {"role": "user", "content": "B"},
    ]
    assert not [kind for kind in desk.types if kind.startswith("call/")]


@pytest.mark.parametrize(
    "script",
    [
        [Status(503, {"error": {"message": "busy", "type": "server_error"}})],
        [piece(content="ha"), {"error": {"message": "busy", "type": "server_error", "code": "server_error"}}],
        [piece(content="ha"), Cut()],
        [piece(content="ha"), piece("error")],
    ],
    ids=["503", "an error in the stream", "a cut connection", "an error as the reason of the end"],
)
async def test_chat_what_may_pass_is_asked_again(script: list[Any]) -> None:
    async with provider(script, [piece(content="done"), piece("stop")], encode=unnamed, last=DONE) as served:
        model = open_model("openai_chat", "m", base_url=f"{served.url}/v1", api_key="k")
        async with at_work(model=model, retries=Retries(attempts=2, first_wait=0)) as desk:
            with anyio.fail_after(BOUND):
                result = await desk.agent.prompt("A")
        await model.aclose()
    assert (result.outcome, result.text) == ("completed", "done")
    assert desk.count("assistant/attempt") == 1


# --- Responses


class Sent:
    """Numbers the events, as the API does."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, kind: str, **fields: Any) -> dict[str, Any]:
        self.number += 1
        return {"type": f"response.{kind}", "sequence_number": self.number, **fields}


def response(status: str, **more: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 20, "output_tokens": 7, "total_tokens": 27, "input_tokens_details": {"cached_tokens": 5},
        "output_tokens_details": {"reasoning_tokens": 2},
    }  # fmt: skip
    return {"id": "resp_1", "object": "response", "status": status, "output": [], "usage": usage, **more}


def thought(event: Sent, index: int) -> list[dict[str, Any]]:
    item = {"type": "reasoning", "id": "rs_1", "summary": []}
    whole = {**item, "summary": [{"type": "summary_text", "text": "add"}], "encrypted_content": "c2VhbGVk"}
    return [
        event("output_item.added", output_index=index, item=item),
        event("reasoning_summary_text.delta", output_index=index, item_id="rs_1", summary_index=0, delta="add"),
        event("output_item.done", output_index=index, item=whole),
    ]


def message(event: Sent, index: int, *pieces: str, closed: bool = True) -> list[dict[str, Any]]:
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
    parts = [{"type": "output_text", "text": "".join(pieces), "annotations": []}]
    deltas = [
        event("output_text.delta", output_index=index, content_index=0, item_id="msg_1", delta=text, logprobs=[])
        for text in pieces
    ]
    events = [event("output_item.added", output_index=index, item=item), *deltas]
    whole = {**item, "status": "completed", "content": parts}
    return [*events, event("output_item.done", output_index=index, item=whole)] if closed else events


def function(event: Sent, index: int, arguments: str, *, closed: bool = True) -> list[dict[str, Any]]:
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "add", "arguments": "", "status": "in_progress"}
    half = len(arguments) // 2
    events = [
        event("output_item.added", output_index=index, item=item),
        event("function_call_arguments.delta", output_index=index, item_id="fc_1", delta=arguments[:half]),
        event("function_call_arguments.delta", output_index=index, item_id="fc_1", delta=arguments[half:]),
    ]
    whole = {**item, "arguments": arguments, "status": "completed"}
    return [*events, event("output_item.done", output_index=index, item=whole)] if closed else events


def spoken(text: str) -> list[dict[str, Any]]:
    event = Sent()
    return [*message(event, 0, text), event("completed", response=response("completed"))]


async def test_responses_a_whole_turn_with_a_sealed_thought_and_a_call() -> None:
    event = Sent()
    first = [
        event("created", response=response("in_progress")),
        *thought(event, 0),
        *function(event, 1, '{"a": 1, "b": 2}'),
        event("completed", response=response("completed")),
    ]
    async with provider(first, spoken("three"), encode=named) as served:
        model = open_model("openai_responses", "m", base_url=f"{served.url}/v1", api_key="k")
        async with at_work(model=model, tools=[add], system="be brief") as desk:
            with anyio.fail_after(BOUND):
                result = await desk.agent.prompt("sum")
        await model.aclose()
    assert (result.outcome, result.text, result.stop) == ("completed", "three", Stop.STOP)
    sealed, call = desk.of("assistant/message")[0].blocks
    assert (sealed.text, sealed.encrypted, sealed.item_id, sealed.closed) == ("add", "c2VhbGVk", "rs_1", True)
    assert (call.arguments, call.call_id, call.provider_meta["id"]) == ('{"a": 1, "b": 2}', "call_1", "fc_1")
    one, two = (seen.body for seen in served.requests)
    assert (one["store"], one["include"], one["instructions"]) == (False, ["reasoning.encrypted_content"], "be brief")
    assert two["input"][: len(one["input"])] == one["input"]
    assert [item["type"] for item in two["input"][len(one["input"]) :]] == ["reasoning", "function_call", "function_call_output"]
    assert two["input"][-3]["encrypted_content"] == "c2VhbGVk"
    assert check(two["input"], "openai_responses") == []
    assert (desk.session.spent.input, desk.session.spent.output) == (30, 14)


async def test_responses_a_stop_closes_the_response_and_sends_the_prefix_without_its_id() -> None:
    gate, event = Gate(), Sent()
    cut = [*thought(event, 0), *message(event, 1, "First. ", "Seco", closed=False), gate]
    async with provider(cut, spoken("ok"), encode=named) as served:
        model = open_model("openai_responses", "m", base_url=f"{served.url}/v1", api_key="k")
        async with at_work(model=model) as desk:
            with anyio.fail_after(BOUND):
                heard = desk.hear("Seco")
                desk.agent.send("A")
                await heard.wait()
                await desk.agent.cancel().settled()
                await served.requests[0].left.wait()
                await desk.agent.prompt("B")
        await model.aclose()
    one, two = (seen.body["input"] for seen in served.requests)
    assert two[: len(one)] == one
    prefix, *words = two[len(one) :]
    assert prefix == {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "First. Seco"}]}
    assert [item["role"] for item in words] == ["user", "user"]


@pytest.mark.parametrize(
    "end, stop",
    [
        ({"incomplete_details": {"reason": "max_output_tokens"}}, Stop.MAX_TOKENS),
        ({"incomplete_details": {"reason": "content_filter"}}, Stop.REFUSAL),
    ],
)
async def test_responses_one_that_was_cut_runs_no_call(end: dict[str, Any], stop: Stop) -> None:
    event = Sent()
    cut = [
        *message(event, 0, "so"),
        *function(event, 1, '{"a": 1, "b": 2}'),
        event("incomplete", response=response("incomplete", **end)),
    ]
    async with provider(cut, encode=named) as served:
        model = open_model("openai_responses", "m", base_url=f"{served.url}/v1", api_key="k")
        async with at_work(model=model, tools=[add]) as desk:
            with anyio.fail_after(BOUND):
                result = await desk.agent.prompt("A")
        await model.aclose()
    assert (result.outcome, result.stop, result.results) == ("completed", stop, ())


async def test_responses_a_failure_that_may_pass_is_asked_again() -> None:
    event = Sent()
    failed = [
        *message(event, 0, "ha", closed=False),
        event("failed", response=response("failed", error={"code": "server_error", "message": "x"})),
    ]
    async with provider(failed, spoken("done"), encode=named) as served:
        model = open_model("openai_responses", "m", base_url=f"{served.url}/v1", api_key="k")
        async with at_work(model=model, retries=Retries(attempts=2, first_wait=0)) as desk:
            with anyio.fail_after(BOUND):
                result = await desk.agent.prompt("A")
        await model.aclose()
    assert result.text == "done"
    assert desk.of("assistant/attempt")[0].text == "server_error: x"


@pytest.mark.parametrize("name", ["previous_response_id", "conversation"])
async def test_responses_a_conversation_that_the_server_holds_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="store=False"):
        open_model("openai_responses", "m", base_url="http://127.0.0.1:9", api_key="k", options={name: "x"})
