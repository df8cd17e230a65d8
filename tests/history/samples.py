"""One small whole conversation in each provider's shape, and ways to break it. Pure; built anew each time."""

import copy
import json
from collections.abc import Callable
from typing import Any

from toolrunner.wire import Provider

Items = list[dict[str, Any]]
SIGNATURE = "c2lnbmF0dXJl"


def anthropic() -> Items:
    return [
        {"role": "user", "content": "read both"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "two files", "signature": SIGNATURE},
                {"type": "text", "text": "Reading."},
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}},
                {"type": "tool_use", "id": "t2", "name": "read", "input": {"path": "b"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "A"},
                {"type": "tool_result", "tool_use_id": "t2", "content": "B"},
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
        {"role": "user", "content": [{"type": "text", "text": "thanks"}]},
    ]


def openai_chat() -> Items:
    def call(call_id: str, path: str) -> dict[str, Any]:
        return {"id": call_id, "type": "function", "function": {"name": "read", "arguments": json.dumps({"path": path})}}

    return [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "read both"},
        {"role": "assistant", "content": None, "tool_calls": [call("t1", "a"), call("t2", "b")]},
        {"role": "tool", "tool_call_id": "t1", "content": "A"},
        {"role": "tool", "tool_call_id": "t2", "content": "B"},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "thanks"},
    ]


def openai_responses() -> Items:
    def call(call_id: str, path: str) -> dict[str, Any]:
        return {
            "type": "function_call",
            "id": f"fc_{call_id}",
            "call_id": call_id,
            "name": "read",
            "arguments": json.dumps({"path": path}),
            "status": "completed",
        }

    return [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "read both"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SIGNATURE},
        call("t1", "a"),
        call("t2", "b"),
        {"type": "function_call_output", "call_id": "t1", "output": "A"},
        {"type": "function_call_output", "call_id": "t2", "output": "B"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
        {"role": "user", "content": "thanks"},
    ]


def gemini() -> Items:
    return [
        {"role": "user", "parts": [{"text": "read both"}]},
        {
            "role": "model",
            "parts": [
                {"text": "Reading."},
                {"functionCall": {"id": "t1", "name": "read", "args": {"path": "a"}}, "thoughtSignature": SIGNATURE},
                {"functionCall": {"id": "t2", "name": "read", "args": {"path": "b"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "t1", "name": "read", "response": {"output": "A"}}},
                {"functionResponse": {"id": "t2", "name": "read", "response": {"output": "B"}}},
            ],
        },
        {"role": "model", "parts": [{"text": "Done."}]},
        {"role": "user", "parts": [{"text": "thanks"}]},
    ]


def gemini_interactions() -> Items:
    return [
        {"type": "user_input", "content": [{"type": "text", "text": "read both"}]},
        {"type": "thought", "signature": SIGNATURE},
        {"type": "function_call", "id": "t1", "name": "read", "arguments": {"path": "a"}},
        {"type": "function_call", "id": "t2", "name": "read", "arguments": {"path": "b"}},
        {"type": "function_result", "call_id": "t1", "name": "read", "result": "A"},
        {"type": "function_result", "call_id": "t2", "name": "read", "result": "B"},
        {"type": "model_output", "content": [{"type": "text", "text": "Done."}]},
        {"type": "user_input", "content": [{"type": "text", "text": "thanks"}]},
    ]


WHOLE: dict[Provider, Callable[[], Items]] = {
    Provider.ANTHROPIC: anthropic,
    Provider.OPENAI_CHAT: openai_chat,
    Provider.OPENAI_RESPONSES: openai_responses,
    Provider.GEMINI: gemini,
    Provider.GEMINI_INTERACTIONS: gemini_interactions,
}


def drop(*path: int | str) -> Callable[[Items], Items]:
    """Leave out what stands at this path."""

    def change(items: Items) -> Items:
        items = copy.deepcopy(items)
        here: Any = items
        for step in path[:-1]:
            here = here[step]
        del here[path[-1]]
        return items

    return change


def put(value: Any, *path: int | str) -> Callable[[Items], Items]:
    """Put a value at this path; a number one behind the last appends, an existing one replaces."""

    def change(items: Items) -> Items:
        items = copy.deepcopy(items)
        here: Any = items
        for step in path[:-1]:
            here = here[step]
        if isinstance(here, list) and isinstance(path[-1], int) and path[-1] >= len(here):
            here.append(copy.deepcopy(value))
        else:
            here[path[-1]] = copy.deepcopy(value)
        return items

    return change


def insert(value: Any, *path: int | str) -> Callable[[Items], Items]:
    """Insert a value before what stands at this path."""

    def change(items: Items) -> Items:
        items = copy.deepcopy(items)
        here: Any = items
        for step in path[:-1]:
            here = here[step]
        here.insert(path[-1], copy.deepcopy(value))
        return items

    return change


def cut(end: int) -> Callable[[Items], Items]:
    """Only the first items."""
    return lambda items: copy.deepcopy(items[:end])


def swap(index: int, *path: int | str) -> Callable[[Items], Items]:
    """Exchange an item of the list at `path` with the one behind it."""

    def change(items: Items) -> Items:
        items = copy.deepcopy(items)
        here: Any = items
        for step in path:
            here = here[step]
        here[index], here[index + 1] = here[index + 1], here[index]
        return items

    return change
