"""A stream put together: whole, stopped, cut by the token limit, repeated by a reconnect."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrunner.history.assembler import StreamAssembler, TruncatedCall, UnfinishedBlock
from toolrunner.history.chunks import (
    BlockEnd,
    BlockKind,
    BlockStart,
    Chunk,
    Delta,
    Finish,
    SealDelta,
    Stop,
    Usage,
    packed,
    unpacked,
)
from toolrunner.records import CallBlock, ReasoningBlock, RedactedBlock, TextBlock, UnknownBlock

TEXT, REASONING, CALL = BlockKind.TEXT, BlockKind.REASONING, BlockKind.CALL
UNKNOWN, REDACTED = BlockKind.UNKNOWN, BlockKind.REDACTED


def assembled(*chunks: Chunk) -> StreamAssembler:
    assembler = StreamAssembler()
    for number, chunk in enumerate(chunks):
        assembler.push(chunk, number / 10)
    return assembler


def block(index: int, kind: BlockKind, *pieces: str, closed: bool = True, **start: Any) -> list[Chunk]:
    end: list[Chunk] = [BlockEnd(index)] if closed else []
    return [BlockStart(index, kind, **start), *(Delta(index, piece) for piece in pieces), *end]


def call(index: int, *pieces: str, closed: bool = True) -> list[Chunk]:
    return block(index, CALL, *pieces, closed=closed, name="read", call_id=f"c{index}")


def test_a_whole_response_gives_its_blocks_in_order() -> None:
    assembler = assembled(
        BlockStart(0, REASONING, item_id="rs_1"),
        Delta(0, "two "),
        Delta(0, "files"),
        SealDelta(0, "c2ln"),
        SealDelta(0, "YXQ="),
        BlockEnd(0),
        *block(1, TEXT, "Read", "ing."),
        *call(2, '{"pa', 'th":"a"}'),
        BlockStart(3, UNKNOWN, item={"type": "server_tool_use", "id": "s1"}),
        BlockEnd(3, item={"type": "server_tool_use", "id": "s1", "input": {}}),
        BlockStart(4, REDACTED, item="c2VhbGVk"),
        BlockEnd(4),
        Usage({"input_tokens": 7}),
        Usage({"output_tokens": 9}),
        Finish(Stop.TOOL_CALLS),
    )
    assert assembler.blocks() == (
        ReasoningBlock("two files", True, "c2lnYXQ=", None, "rs_1"),
        TextBlock("Reading."),
        CallBlock("read", '{"path":"a"}', "c2"),
        UnknownBlock({"type": "server_tool_use", "id": "s1", "input": {}}),
        RedactedBlock("c2VhbGVk"),
    )
    assert assembler.usage == {"input_tokens": 7, "output_tokens": 9}
    assert assembler.stop is Stop.TOOL_CALLS
    assert assembler.truncated_calls() == ()


@pytest.mark.case("B1", "C19")
def test_stopped_after_a_thought_and_in_a_text_both_are_kept_in_order() -> None:
    assembler = assembled(*block(0, REASONING, "hm"), *block(1, TEXT, "Firs", closed=False), Usage({"output_tokens": 3}))
    assert assembler.interrupted_blocks() == (ReasoningBlock("hm"), TextBlock("Firs", closed=False))
    assert assembler.usage == {"output_tokens": 3}


@pytest.mark.case("B2", "C20", "C24", "H37")
def test_stopped_behind_calls_whole_and_half_none_of_them_is_kept() -> None:
    assembler = assembled(*block(0, TEXT, "Reading."), *call(1, "{}"), *call(2, '{"pa', closed=False))
    assert assembler.interrupted_blocks() == (TextBlock("Reading."),)
    assert assembler.interrupted_blocks(calls=True) == (TextBlock("Reading."), CallBlock("read", "{}", "c1"))
    assert assembled(*call(1, '{"pa', closed=False)).interrupted_blocks() == ()
    assert '{\\"pa' in json.dumps(assembler.stream()), "the half call is there for whoever looks for a fault"


@pytest.mark.case("B3")
def test_stopped_before_anything_could_be_seen_nothing_is_kept() -> None:
    assembler = assembled(
        *block(0, TEXT, " \n"),
        *block(1, REASONING, closed=False),
        BlockStart(2, UNKNOWN, item={"type": "novelty"}),
    )
    assert assembler.interrupted_blocks() == ()
    with pytest.raises(UnfinishedBlock, match=r"block 2 \(novelty\) was never finished"):
        assembler.blocks()


@pytest.mark.case("B4")
def test_the_first_end_of_a_block_counts() -> None:
    assembler = assembled(*block(0, TEXT, "one"), BlockEnd(0, text="two"))
    assert assembler.blocks() == (TextBlock("one"),)


@pytest.mark.case("B5")
def test_what_comes_for_a_block_after_its_end_is_not_taken() -> None:
    assembler = assembled(*block(0, TEXT, "one"), Delta(0, " two"), SealDelta(0, "x"), Delta(9, "of no block"), BlockEnd(9))
    assert assembler.blocks() == (TextBlock("one"),)


@pytest.mark.case("B6", "H20")
def test_a_block_that_begins_twice_is_one_block() -> None:
    assembler = assembled(*block(0, TEXT, "one", closed=False), BlockStart(0, CALL, name="read"), Delta(0, " two"), BlockEnd(0))
    assert assembler.blocks() == (TextBlock("one two"),)


@pytest.mark.case("B7")
def test_at_the_token_limit_calls_go_and_what_stood_beside_them_too() -> None:
    assembler = assembled(*block(0, TEXT, "T"), *call(1, "{}"), *block(2, TEXT, "U"), Finish(Stop.MAX_TOKENS, ("r0", "r1", "r2")))
    assert assembler.blocks() == (TextBlock("T"), TextBlock("U"))
    assert assembler.replay() == ("r0", "r2")


@pytest.mark.case("B8")
@pytest.mark.parametrize("replay", [None, (), ("r0",), ("r0", "r1", "r2")])
def test_what_does_not_fit_the_blocks_is_not_sent_back(replay: tuple[str, ...] | None) -> None:
    assembler = assembled(*block(0, TEXT, "T"), *call(1, "{}"), Finish(Stop.TOOL_CALLS, replay))
    assert assembler.replay() is None


@pytest.mark.case("B9")
def test_calls_that_the_token_limit_cut_are_listed_and_never_blocks() -> None:
    parts = (*call(0, "{}"), *call(1, '{"pa', closed=False), *call(2, '{"pa'), *call(3), Finish(Stop.MAX_TOKENS))
    assembler = assembled(*parts)
    assert assembler.truncated_calls() == (TruncatedCall("read", "c1", '{"pa'), TruncatedCall("read", "c2", '{"pa'))
    assert assembler.blocks() == ()
    assert assembled(*parts[:-1], Finish(Stop.TOOL_CALLS)).truncated_calls() == ()


@pytest.mark.case("C18")
def test_a_stop_on_the_last_chunk_keeps_what_the_provider_wants_back() -> None:
    assembler = assembled(*block(0, TEXT, "T"), *call(1, "{}"), Finish(Stop.TOOL_CALLS, ("r0", "r1")))
    assert assembler.replay(interrupted=True) == ("r0",)
    assert assembler.replay(interrupted=True, calls=True) == ("r0", "r1")


@pytest.mark.case("H34")
def test_a_signature_counts_only_when_its_block_has_ended() -> None:
    half = assembled(BlockStart(0, REASONING), Delta(0, "hm"), SealDelta(0, "c2"))
    assert half.interrupted_blocks() == (ReasoningBlock("hm", closed=False),)
    whole = assembled(BlockStart(0, REASONING), Delta(0, "hm"), SealDelta(0, "c2"), BlockEnd(0))
    assert whole.interrupted_blocks() == (ReasoningBlock("hm", signature="c2"),)
    empty = assembled(BlockStart(0, REASONING), Delta(0, "hm"), BlockEnd(0, signature=""))
    assert empty.interrupted_blocks() == (ReasoningBlock("hm"),)
    unseen = assembled(BlockStart(0, REASONING, item_id="rs"), BlockEnd(0, encrypted="ZW5j"))
    assert unseen.interrupted_blocks() == (ReasoningBlock("", encrypted="ZW5j", item_id="rs"),)


KINDS = st.sampled_from(list(BlockKind))
JSON: st.SearchStrategy[Any] = st.sampled_from([None, True, 0, 7, "", "x", [], {}, {"a": [1, None]}])
METAS = st.dictionaries(st.sampled_from(["a", "b"]), JSON)
SAID = st.sampled_from(["", " ", "x", "{}"])
CHUNKS = st.one_of(
    st.builds(BlockStart, st.integers(0, 3), KINDS, SAID, st.none() | SAID, SAID, st.none() | SAID, JSON, METAS),
    st.builds(Delta, st.integers(0, 3), SAID),
    st.builds(SealDelta, st.integers(0, 3), SAID),
    st.builds(BlockEnd, st.integers(0, 3), st.none() | SAID, st.none() | SAID, st.none() | SAID, JSON, METAS),
    st.builds(Usage, METAS),
    st.builds(Finish, st.sampled_from(Stop), st.none() | st.lists(JSON).map(tuple)),
)
STREAMS = st.lists(st.tuples(st.integers(0, 10**7), CHUNKS), max_size=12)


@given(STREAMS)
def test_a_stream_that_was_packed_is_unpacked_as_it_was(steps: list[tuple[int, Chunk]]) -> None:
    at, stream = 0, list[tuple[float, Chunk]]()
    for wait, chunk in steps:
        at += wait
        stream.append((at / 1_000_000, chunk))
    assert list(unpacked(json.loads(json.dumps(packed(stream))))) == stream


@pytest.mark.parametrize("rows", [[["x"]], [[0, "z", 1]], [[0, "d"]], [7], [[0, "s", 0, "novelty"]], [[0, "s"]]])
def test_what_is_no_stream_is_told(rows: list[Any]) -> None:
    with pytest.raises(ValueError, match="no row of a stream"):
        list(unpacked(rows))


@given(STREAMS)
def test_whatever_comes_the_delivered_part_can_be_told_and_holds_no_half_call(steps: list[tuple[int, Chunk]]) -> None:
    assembler = assembled(*(chunk for _, chunk in steps))
    for calls in (False, True):
        kept = assembler.interrupted_blocks(calls=calls)
        assert all(one.closed for one in kept if not isinstance(one, TextBlock | ReasoningBlock))
        assert calls or not any(isinstance(one, CallBlock) for one in kept)
        assert all(one.text.strip() for one in kept if isinstance(one, TextBlock))
        replay = assembler.replay(interrupted=True, calls=calls)
        assert replay is None or len(replay) == len(kept)
        assert all(one.signature is None for one in kept if isinstance(one, TextBlock | ReasoningBlock) and not one.closed)
