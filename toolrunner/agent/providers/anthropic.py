"""Anthropic's Messages API through its SDK (extra `agent`). Events: https://platform.claude.com/docs/en/build-with-claude/streaming.

State: the SDK's client, which `aclose` closes; one reading per response.
"""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Self, final

import anthropic

from toolrunner.agent.model import ModelRequest, Prices
from toolrunner.agent.providers.sdk import LONGEST_SILENCE, failure, streamed
from toolrunner.history.chunks import BlockEnd, BlockKind, BlockStart, Chunk, Delta, Finish, SealDelta, Stop, Usage
from toolrunner.wire import Provider, call_from_item
from toolrunner.wire.reading import loaded

__all__ = ["AnthropicModel", "AnthropicReading"]

DEFAULT_MAX_TOKENS = 16_384
"""Tokens of one response, unless told otherwise. The API wants a number; this is one that every current model takes."""

_STOPS = {
    "end_turn": Stop.STOP,
    "stop_sequence": Stop.STOP,
    "tool_use": Stop.TOOL_CALLS,
    "max_tokens": Stop.MAX_TOKENS,
    "model_context_window_exceeded": Stop.MAX_TOKENS,
    "pause_turn": Stop.PAUSE,
    "refusal": Stop.REFUSAL,
}

_COUNTS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}


@final
class AnthropicModel:
    """One model. `options` are more parameters of `messages.create`; `cache` asks the API to keep the prefix of each request."""

    def __init__(
        self,
        name: str,
        *,
        client: "anthropic.AsyncAnthropic | None" = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        prices: Prices | None = None,
        cache: bool = True,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        # Its own retries are off: each attempt is to be on record.
        self._client = client if client is not None else anthropic.AsyncAnthropic(max_retries=0, timeout=LONGEST_SILENCE)
        self.provider, self.name, self.prices = str(Provider.ANTHROPIC), name, prices
        self._options = {
            "max_tokens": max_tokens,
            **({"cache_control": {"type": "ephemeral"}} if cache else {}),
            **(options or {}),
        }

    @classmethod
    def at(cls, name: str, base_url: str | None = None, api_key: str | None = None, **settings: Any) -> Self:
        """A model at this address; what is None the SDK finds for itself (ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL)."""
        client = anthropic.AsyncAnthropic(api_key=api_key, base_url=base_url, max_retries=0, timeout=LONGEST_SILENCE)
        return cls(name, client=client, **settings)

    async def aclose(self) -> None:
        """Close the client's connections."""
        await self._client.close()

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncIterator[Chunk]]:
        """See `Model`."""
        body: dict[str, Any] = {"model": self.name, "messages": list(request.messages), **self._options, **request.options}
        if request.system.strip():
            body["system"] = request.system
        if request.tools:
            body["tools"] = list(request.tools)
        return streamed(lambda: self._client.messages.with_streaming_response.create(stream=True, **body), AnthropicReading())


@final
class AnthropicReading:
    """One response."""

    def __init__(self) -> None:
        self._stop: Stop | None = None
        self._inputs: dict[int, list[str]] = {}
        """Arguments in pieces, of blocks whose object is told at their start: the provider's own calls."""
        self._items: dict[int, dict[str, Any]] = {}

    def feed(self, event: Mapping[str, Any]) -> Iterator[Chunk]:
        """See `Reading`."""
        match event.get("type"):
            case "message_start":
                yield from _usage(event["message"].get("usage"))
            case "content_block_start":
                yield from self._start(event["index"], event["content_block"])
            case "content_block_delta":
                yield from self._delta(event["index"], event["delta"])
            case "content_block_stop":
                yield self._end(event["index"])
            case "message_delta":
                told = event["delta"].get("stop_reason")
                self._stop = _STOPS.get(told, Stop.STOP) if told else self._stop
                yield from _usage(event.get("usage"))
            case "error":
                raise failure(event.get("error") or {})
            case "message_stop":
                yield Finish(self._stop or Stop.STOP)

    def end(self) -> Iterator[Chunk]:
        """`message_stop` says it."""
        return iter(())

    def _start(self, index: int, block: Mapping[str, Any]) -> Iterator[Chunk]:
        match block.get("type"):
            case "text":
                yield BlockStart(index, BlockKind.TEXT)
                if block.get("text"):
                    yield Delta(index, block["text"])
            case "thinking":
                yield BlockStart(index, BlockKind.REASONING)
                if block.get("thinking"):
                    yield Delta(index, block["thinking"])
                if block.get("signature"):
                    yield SealDelta(index, block["signature"])
            case "redacted_thinking":
                yield BlockStart(index, BlockKind.REDACTED, item=block.get("data", ""))
            case "tool_use":
                call = call_from_item(Provider.ANTHROPIC, {**block, "input": {}})
                self._inputs[index] = []
                self._items[index] = {"input": block.get("input") or {}}
                meta = dict(call.provider_meta)
                yield BlockStart(index, BlockKind.CALL, call.name, call.call_id, call.kind, provider_meta=meta)
            case _:
                self._inputs[index], self._items[index] = [], dict(block)
                yield BlockStart(index, BlockKind.UNKNOWN, item=dict(block))

    def _delta(self, index: int, delta: Mapping[str, Any]) -> Iterator[Chunk]:
        match delta.get("type"):
            case "text_delta":
                yield Delta(index, delta["text"])
            case "thinking_delta":
                yield Delta(index, delta["thinking"])
            case "signature_delta":
                yield SealDelta(index, delta["signature"])
            case "input_json_delta":
                if index in self._inputs:
                    self._inputs[index].append(delta["partial_json"])
                yield Delta(index, delta["partial_json"])

    def _end(self, index: int) -> Chunk:
        item = self._items.get(index)
        if item is None:
            return BlockEnd(index)
        said = "".join(self._inputs[index])
        if "type" not in item:  # a call of ours
            # Some servers send the whole input at the start, and no delta.
            whole = item["input"] if not said.strip() else None
            return BlockEnd(index, text=json.dumps(whole, ensure_ascii=False) if whole is not None else None)
        read = loaded(said) if said.strip() else None
        return BlockEnd(index, item={**item, "input": read} if isinstance(read, dict) else item)


def _usage(usage: Mapping[str, Any] | None) -> Iterator[Chunk]:
    counts = {ours: usage[theirs] for theirs, ours in _COUNTS.items() if usage.get(theirs) is not None} if usage else {}
    if counts:
        yield Usage(counts)
