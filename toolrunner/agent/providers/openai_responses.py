"""OpenAI's Responses API through its SDK (extra `agent`), the whole history in each request and nothing held by the server.

State: the SDK's client, which `aclose` closes; one reading per response. An output item is one block, under its `output_index`.
Events: https://platform.openai.com/docs/api-reference/responses-streaming.
"""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Self, final

import openai

from toolrunner.agent.model import ModelRequest, Prices
from toolrunner.agent.providers.openai_chat import openai_client
from toolrunner.agent.providers.sdk import failure, streamed
from toolrunner.errors import ConfigError
from toolrunner.history import CHAINED_REFUSED
from toolrunner.history.chunks import BlockEnd, BlockKind, BlockStart, Chunk, Delta, Finish, Stop, Usage
from toolrunner.wire import CallKind, Provider, WireCall, call_from_item

__all__ = ["OpenAIResponsesModel", "OpenAIResponsesReading"]

_CALLS = frozenset({"function_call", "custom_tool_call", "shell_call", "local_shell_call", "apply_patch_call"})

_DELTAS = frozenset(
    {"output_text", "refusal", "reasoning_summary_text", "reasoning_text", "function_call_arguments", "custom_tool_call_input"}
)
"""Events `response.NAME.delta` whose `delta` is more of their item's text."""

_CHAINS = ("previous_response_id", "conversation")


@final
class OpenAIResponsesModel:
    """One model. `options` are more parameters of `responses.create`.

    `encrypted_reasoning` asks for thoughts in the sealed form that can be sent back; models that do not think refuse it.
    """

    def __init__(
        self,
        name: str,
        *,
        client: "openai.AsyncOpenAI | None" = None,
        encrypted_reasoning: bool = True,
        prices: Prices | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._client = client if client is not None else openai_client(None, None)
        self.provider, self.name, self.prices = str(Provider.OPENAI_RESPONSES), name, prices
        include = {"include": ["reasoning.encrypted_content"]} if encrypted_reasoning else {}
        self._options = {"store": False, **include, **_unchained(options or {})}

    @classmethod
    def at(cls, name: str, base_url: str | None = None, api_key: str | None = None, **settings: Any) -> Self:
        """A model at this address; what is None the SDK finds for itself (OPENAI_API_KEY, OPENAI_BASE_URL)."""
        return cls(name, client=openai_client(base_url, api_key), **settings)

    async def aclose(self) -> None:
        """Close the client's connections."""
        await self._client.close()

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncIterator[Chunk]]:
        """See `Model`. Raises ConfigError: a conversation that the server holds was asked for."""
        more = _unchained(request.options)
        body: dict[str, Any] = {"model": self.name, "input": list(request.messages), **self._options, **more}
        if request.system.strip():
            body["instructions"] = request.system
        if request.tools:
            body["tools"] = list(request.tools)
        return streamed(
            lambda: self._client.responses.with_streaming_response.create(stream=True, **body), OpenAIResponsesReading()
        )


def _unchained(options: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in _CHAINS:
        if options.get(name) is not None:
            raise ConfigError(name, options[name], f"None: {CHAINED_REFUSED}")
    return options


@final
class OpenAIResponsesReading:
    """One response."""

    def __init__(self) -> None:
        self._called = False
        self._parts: dict[int, object] = {}
        """The part of an item that is spoken, of items that have several."""

    def feed(self, event: Mapping[str, Any]) -> Iterator[Chunk]:
        """See `Reading`. Raises ModelError: the provider says that it failed."""
        kind = str(event.get("type"))
        match kind:
            case "response.output_item.added":
                yield self._start(event["output_index"], event["item"])
            case "response.output_item.done":
                yield _end(event["output_index"], event["item"])
            case "response.completed" | "response.incomplete":
                yield from self._over(event["response"])
            case "response.failed":
                raise failure((event.get("response") or {}).get("error") or {})
            case "error":
                raise failure(event.get("error") or {**event, "type": None})
            case _ if kind.endswith(".delta") and kind.removeprefix("response.").removesuffix(".delta") in _DELTAS:
                yield from self._delta(event)

    def end(self) -> Iterator[Chunk]:
        """An event says it."""
        return iter(())

    def _delta(self, event: Mapping[str, Any]) -> Iterator[Chunk]:
        index = event["output_index"]
        part = event.get("summary_index", event.get("content_index"))
        if self._parts.setdefault(index, part) != part:
            self._parts[index] = part
            yield Delta(index, "\n\n" if "summary_index" in event else "")
        yield Delta(index, event["delta"])

    def _start(self, index: int, item: Mapping[str, Any]) -> Chunk:
        kind = item.get("type")
        if kind == "message":
            return BlockStart(index, BlockKind.TEXT, item_id=item.get("id"))
        if kind == "reasoning":
            return BlockStart(index, BlockKind.REASONING, item_id=item.get("id"))
        if kind in _CALLS:
            self._called = True
            call = _call(item)
            meta = dict(call.provider_meta)
            return BlockStart(index, BlockKind.CALL, call.name, call.call_id, call.kind, item.get("id"), provider_meta=meta)
        return BlockStart(index, BlockKind.UNKNOWN, item=dict(item))

    def _over(self, response: Mapping[str, Any]) -> Iterator[Chunk]:
        yield from _usage(response.get("usage"))
        why = (response.get("incomplete_details") or {}).get("reason")
        if response.get("status") == "incomplete":
            yield Finish(Stop.REFUSAL if why == "content_filter" else Stop.MAX_TOKENS)
        else:
            yield Finish(Stop.TOOL_CALLS if self._called else Stop.STOP)


def _end(index: int, item: Mapping[str, Any]) -> Chunk:
    match item.get("type"):
        case "message":
            parts = item.get("content") or ()
            return BlockEnd(index, text="".join(part.get("text") or part.get("refusal") or "" for part in parts))
        case "reasoning":
            return _thought(index, item)
        case kind if kind in _CALLS:
            call = _call(item)
            return BlockEnd(index, text=_arguments(call), provider_meta=dict(call.provider_meta))
        case _:
            return BlockEnd(index, item=dict(item))


def _thought(index: int, item: Mapping[str, Any]) -> Chunk:
    summary = item.get("summary") or []
    text = "\n\n".join(part.get("text", "") for part in summary)
    # The server compares a thought with what it had sealed, so what cannot be made again from one text is kept as it is.
    meta = {"summary": summary} if len(summary) > 1 else {}
    content = {"content": item["content"]} if item.get("content") else {}
    spoken = text or "\n\n".join(part.get("text", "") for part in item.get("content") or ())
    return BlockEnd(index, text=spoken, encrypted=item.get("encrypted_content"), provider_meta={**meta, **content})


def _call(item: Mapping[str, Any]) -> WireCall:
    # A call that is only announced may lack what comes in pieces.
    return call_from_item(
        Provider.OPENAI_RESPONSES, {"arguments": "", "input": "", **item} if item.get("type") in _CALLS else item
    )


def _arguments(call: WireCall) -> str:
    if call.kind == CallKind.CUSTOM and isinstance(call.arguments, Mapping):
        return str(call.arguments.get("input", ""))
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)


def _usage(usage: Mapping[str, Any] | None) -> Iterator[Chunk]:
    if not usage:
        return
    cached = (usage.get("input_tokens_details") or {}).get("cached_tokens") or 0
    sent = usage.get("input_tokens") or 0
    yield Usage({"input_tokens": sent - cached, "output_tokens": usage.get("output_tokens") or 0, "cache_read_tokens": cached})
