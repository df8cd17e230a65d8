"""How a stream ends and what is on record of it then (the table F, C17 to C24), and what the next request carries."""

from typing import Any

import anyio
import pytest
from agent.desk import Desk, at_work, hanging, last_words

from toolrunner import tool
from toolrunner.agent import Frame, Hooks, ModelError, Retries, Session, StreamChunk, StreamEnded, StreamStarted
from toolrunner.history.chunks import BlockKind, BlockStart, Delta, Finish, Stop, Usage, unpacked
from toolrunner.records import ReasoningBlock, TextBlock
from toolrunner.testing import Gate, call_chunks, said_chunks, thought_chunks

pytestmark = pytest.mark.anyio

BOUND = 60
AT_ONCE = Retries(attempts=3, first_wait=0)


async def stopped_in(desk: Desk, gate: Gate) -> None:
    desk.agent.send("A")
    await gate.reached(1)
    await desk.agent.cancel().settled()
    await desk.agent.wait_idle()


@pytest.mark.case("C17")
async def test_the_prefix_that_was_read_is_the_model_s_message_in_the_next_request() -> None:
    reply, gate = hanging(*said_chunks("First, apples. ", "Second, pe", closed=False))
    async with at_work(reply, "b") as desk:
        frames: list[Frame | str] = []
        desk.agent.on_stream(frames.append)
        desk.session.observe(lambda record: frames.append(record.type))
        with anyio.fail_after(BOUND):
            await stopped_in(desk, gate)
            await desk.agent.prompt("expand on your second point")
        (message,) = desk.of("assistant/message")[:1]
        assert message.interrupted
        assert message.blocks == (TextBlock("First, apples. Second, pe", closed=False),)
        kept = [chunk for _, chunk in unpacked(message.stream)]
        assert kept == [BlockStart(0, BlockKind.TEXT), Delta(0, "First, apples. "), Delta(0, "Second, pe")]
        order = [one if isinstance(one, str) else type(one).__name__ for one in frames]
        came = ["StreamStarted", *["StreamChunk"] * 3]
        assert order[order.index("StreamStarted") :][:8] == [*came, "assistant/message", "StreamEnded", "step/end", "turn/end"]
        before, after = (request.messages for request in desk.model.requests)
        assert list(after[: len(before)]) == list(before)
        assert after[len(before)]["content"] == [{"type": "text", "text": "First, apples. Second, pe"}]
        assert last_words(after) == ["[Request interrupted by user]", "expand on your second point"]


@pytest.mark.case("C18")
async def test_a_stop_on_the_very_last_chunk_interrupts_and_keeps_what_the_provider_wants_back() -> None:
    finish = Finish(Stop.STOP, replay=("sealed",))
    async with at_work([*said_chunks("all of it"), finish]) as desk:

        def look(frame: Frame) -> None:
            if isinstance(frame, StreamChunk) and frame.chunk == finish:
                desk.agent.cancel()

        desk.agent.on_stream(look)
        with anyio.fail_after(BOUND):
            assert (await desk.agent.prompt("A")).outcome == "aborted"
        (message,) = desk.of("assistant/message")
        assert (message.interrupted, message.replay, message.stop) == (True, ("sealed",), "stop")


@pytest.mark.case("C19")
async def test_a_thought_alone_is_kept_with_what_was_counted() -> None:
    reply, gate = hanging(*thought_chunks("hm"), Usage({"output_tokens": 7}))
    async with at_work(reply) as desk:
        with anyio.fail_after(BOUND):
            await stopped_in(desk, gate)
        (message,) = desk.of("assistant/message")
        assert message.blocks == (ReasoningBlock("hm", signature="sealed"),)
        assert message.usage == {"output_tokens": 7}
        assert desk.session.spent.output == 7


@pytest.mark.case("C20", "H37")
async def test_of_a_text_and_half_a_call_the_text_is_kept_and_nothing_is_called() -> None:
    reply, gate = hanging(*said_chunks("I will write it."), *call_chunks("write", '{"path":"a', index=1, closed=False))
    async with at_work(reply) as desk:
        with anyio.fail_after(BOUND):
            await stopped_in(desk, gate)
        (message,) = desk.of("assistant/message")
        assert message.blocks == (TextBlock("I will write it."),)
        assert not [kind for kind in desk.types if kind.startswith("call/")]


@pytest.mark.case("C24")
async def test_half_a_call_alone_leaves_an_attempt_and_no_message() -> None:
    reply, gate = hanging(*call_chunks("write", '{"path":"a', closed=False))
    async with at_work(reply, "b") as desk:
        with anyio.fail_after(BOUND):
            await stopped_in(desk, gate)
            await desk.agent.prompt("B")
        (attempt,) = desk.of("assistant/attempt")
        assert attempt.cause == "cancelled"
        assert [type(chunk) for _, chunk in unpacked(attempt.stream)] == [BlockStart, Delta, Delta]
        assert [message["role"] for message in desk.model.requests[-1].messages] == ["user"]


async def test_with_the_other_switch_whole_calls_of_a_stopped_stream_stay_and_are_answered_not_started() -> None:
    whole, half = call_chunks("one", {}, call_id="c1"), call_chunks("two", '{"x', index=1, closed=False)
    reply, gate = hanging(*whole, *half)
    async with at_work(reply, "b", session=Session(cut_calls="answer", marker="off")) as desk:
        with anyio.fail_after(BOUND):
            await stopped_in(desk, gate)
            await desk.agent.prompt("B")
        messages = desk.model.requests[-1].messages
        assert [part["type"] for part in messages[1]["content"]] == ["tool_use"]
        assert [part["type"] for part in messages[2]["content"]] == ["tool_result", "text"]
        assert messages[2]["content"][0]["is_error"]


@pytest.mark.case("C21")
@pytest.mark.parametrize("end", [Finish(Stop.ERROR), ModelError("400: no", retryable=False)], ids=["may pass", "cannot pass"])
async def test_a_stop_by_who_hears_of_a_provider_s_error_leaves_no_message(end: Any) -> None:
    async def stop(*_: object) -> None:
        assert desk.count("assistant/attempt") == 1  # on record before anybody is asked
        desk.agent.cancel()

    async with at_work([*said_chunks("half"), end], hooks=Hooks(request_error=stop)) as desk:
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
        assert (result.outcome, result.error) == ("aborted", "")
        assert desk.count("assistant/message") == 0
        assert desk.of("assistant/attempt")[0].cause == "error"
        assert len(desk.model.requests) == 1


@pytest.mark.case("C22")
async def test_an_attempt_that_failed_is_no_part_of_the_message_that_came_then() -> None:
    failed = [*said_chunks("wro"), Finish(Stop.ERROR)]
    dropped = [*said_chunks("ng", closed=False), ModelError("connection reset", retryable=True)]
    async with at_work(failed, dropped, "right", "b", retries=AT_ONCE) as desk:
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
            await desk.agent.prompt("B")
        assert (result.outcome, result.text, result.steps) == ("completed", "right", 1)
        first = desk.of("assistant/message")[0]
        assert not first.interrupted
        assert "wro" not in str(first.stream)
        assert [one.cause for one in desk.of("assistant/attempt")] == ["error", "error"]
        assert [record.step for record in desk.of("request/sent")][:3] == [1, 1, 1]
        assert desk.model.requests[-1].messages[1]["content"] == [{"type": "text", "text": "right"}]


@pytest.mark.case("C23")
async def test_what_raises_in_mid_stream_leaves_an_attempt_and_ends_the_turn_with_its_error() -> None:
    async with at_work([*said_chunks("half", closed=False), RuntimeError("middleware broke")], "b") as desk:
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
            assert (result.outcome, result.error) == ("error", "middleware broke")
            assert (await desk.agent.prompt("B")).outcome == "completed"
        (attempt,) = desk.of("assistant/attempt")
        assert (attempt.cause, attempt.text) == ("thrown", "middleware broke")
        assert "half" in str(attempt.stream)
        assert desk.types.index("assistant/attempt") < desk.types.index("step/end") < desk.types.index("turn/end")


@pytest.mark.case("B9")
async def test_calls_that_the_token_limit_cut_are_not_run_and_the_turn_says_so() -> None:
    cut = [*said_chunks("so"), *call_chunks("write", '{"path": "a', index=1, closed=False), Finish(Stop.MAX_TOKENS)]
    async with at_work(cut) as desk:
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
        assert (result.outcome, result.stop, result.text) == ("error", Stop.MAX_TOKENS, "so")
        assert "write" in result.error
        assert not [kind for kind in desk.types if kind.startswith("call/")]
        assert desk.of("assistant/message")[0].blocks == (TextBlock("so"),)


@pytest.mark.case("H20")
async def test_a_call_that_a_reconnect_repeats_runs_once() -> None:
    ran: list[int] = []

    @tool
    async def order() -> str:
        """Order."""
        ran.append(1)
        return "ordered"

    twice = [*call_chunks("order", {}, call_id="c1"), *call_chunks("order", {}, call_id="c1", index=1)]
    async with at_work(twice, "done", tools=[order]) as desk:
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
        assert ran == [1]
        assert len(result.results) == 1
        assert len(desk.model.requests[-1].messages[-1]["content"]) == 1


async def test_a_response_that_pauses_goes_on_with_no_words_of_the_user() -> None:
    async with at_work([*said_chunks("half"), Finish(Stop.PAUSE)], "whole") as desk:
        with anyio.fail_after(BOUND):
            result = await desk.agent.prompt("A")
        assert (result.steps, result.text) == (2, "whole")
        assert [message["role"] for message in desk.model.requests[-1].messages] == ["user", "assistant"]


async def test_frames_are_numbered_and_name_the_record_that_holds_the_stream() -> None:
    async with at_work("a", [ModelError("no", retryable=False)]) as desk:
        frames: list[Frame] = []
        desk.agent.on_stream(frames.append)
        with anyio.fail_after(BOUND):
            await desk.agent.prompt("A")
            await desk.agent.prompt("B")
        assert [frame.revision for frame in frames] == list(range(1, len(frames) + 1))
        ends = [frame.committed for frame in frames if isinstance(frame, StreamEnded)]
        seqs = {record.type: record.seq for record in desk.records if record.type.startswith("assistant/")}
        assert ends == [(kind, seqs[kind]) for kind in ("assistant/message", "assistant/attempt")]
        assert sum(isinstance(frame, StreamStarted) for frame in frames) == 2
