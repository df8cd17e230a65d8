"""What Anthropic's server says, event by event (https://platform.claude.com/docs/en/build-with-claude/streaming). Pure."""

from typing import Any

START = {
    "type": "message_start",
    "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 12, "output_tokens": 1, "cache_read_input_tokens": 3},
    },
}  # fmt: skip


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any], closed: bool = True) -> list[dict[str, Any]]:
    events = [{"type": "content_block_start", "index": index, "content_block": start}]
    events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [*events, {"type": "content_block_stop", "index": index}] if closed else events


def text(*pieces: str, index: int = 0, closed: bool = True) -> list[dict[str, Any]]:
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return block(index, {"type": "text", "text": ""}, *deltas, closed=closed)


def call(name: str, *pieces: str, index: int = 0, call_id: str = "toolu_1", closed: bool = True) -> list[dict[str, Any]]:
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces)]
    return block(index, {"type": "tool_use", "id": call_id, "name": name, "input": {}}, *deltas, closed=closed)


def end(reason: str = "end_turn") -> list[dict[str, Any]]:
    usage = {"output_tokens": 9}
    return [
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
