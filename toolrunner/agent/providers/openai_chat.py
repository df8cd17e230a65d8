"""Chat Completions through OpenAI's SDK (extra `agent`), and the many servers that speak it. Events: the API's reference.

State: the SDK's client, which `aclose` closes; one reading per response. The format has no blocks: one begins with its first
piece, and ends when another begins or the response does.
"""

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Self, final

import openai

from toolrunner.agent.model import ModelRequest, Prices
from toolrunner.agent.providers.sdk import LONGEST_SILENCE, failure, streamed
from toolrunner.history.chunks import BlockEnd, BlockKind, BlockStart, Chunk, Delta, Finish, Stop, Usage
from toolrunner.wire import Provider

__all__ = ["OpenAIChatModel", "OpenAIChatReading", "openai_client"]

_STOPS = {
    "stop": Stop.STOP,
    "length": Stop.MAX_TOKENS,
    "tool_calls": Stop.TOOL_CALLS,
    "function_call": Stop.TOOL_CALLS,
    "content_filter": Stop.REFUSAL,
    "error": Stop.ERROR,
}


def openai_client(base_url: str | None, api_key: str | None) -> "openai.AsyncOpenAI":
    """A client without retries of its own. A server that was named, a key that was not: most servers at home want none."""
    if api_key is None and base_url is not None and not os.environ.get("OPENAI_API_KEY"):
        api_key = "none"
    return openai.AsyncOpenAI(api_key=api_key, base_url=base_url, max_retries=0, timeout=LONGEST_SILENCE)


@final
class OpenAIChatModel:
    """One model. `options` are more parameters of `chat.completions.create`."""

    def __init__(
        self,
        name: str,
        *,
        client: "openai.AsyncOpenAI | None" = None,
        prices: Prices | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._client = client if client is not None else openai_client(None, None)
        self.provider, self.name, self.prices = str(Provider.OPENAI_CHAT), name, prices
        self._options = {"stream_options": {"include_usage": True}, **(options or {})}

    @classmethod
    def at(cls, name: str, base_url: str | None = None, api_key: str | None = None, **settings: Any) -> Self:
        """A model at this address; what is None the SDK finds for itself (OPENAI_API_KEY, OPENAI_BASE_URL)."""
        return cls(name, client=openai_client(base_url, api_key), **settings)

    async def aclose(self) -> None:
        """Close the client's connections."""
        await self._client.close()

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncIterator[Chunk]]:
        """See `Model`."""
        system = [{"role": "system", "content": request.system}] if request.system.strip() else []
        body: dict[str, Any] = {"model": self.name, "messages": [*system, *request.messages], **self._options, **request.options}
        if request.tools:
            body["tools"] = list(request.tools)
        return streamed(
            lambda: self._client.chat.completions.with_streaming_response.create(stream=True, **body), OpenAIChatReading()
        )


@final
class OpenAIChatReading:
    """One response."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        """What a block is -> its index."""
        self._begun = 0
        self._open: object = None
        self._stop: Stop | None = None

    def feed(self, event: Mapping[str, Any]) -> Iterator[Chunk]:
        """See `Reading`."""
        if event.get("error"):
            raise failure(event["error"] if isinstance(event["error"], Mapping) else {"message": event["error"]})
        for choice in (event.get("choices") or [])[:1]:
            yield from self._delta(choice.get("delta") or {})
            if choice.get("finish_reason"):
                self._stop = _STOPS.get(choice["finish_reason"], Stop.STOP)
                yield from self._turn_to(None)
        yield from _usage(event.get("usage"))

    def end(self) -> Iterator[Chunk]:
        """What was counted comes behind the reason of the end, so the end is told last."""
        if self._stop is not None:
            yield Finish(self._stop)

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[Chunk]:
        thought = delta.get("reasoning_content") or delta.get("reasoning")  # DeepSeek's name, and OpenRouter's
        if isinstance(thought, str) and thought:
            yield from self._piece("thought", BlockKind.REASONING, thought)
        for field in ("content", "refusal"):
            if delta.get(field):
                yield from self._piece("text", BlockKind.TEXT, delta[field])
        for call in delta.get("tool_calls") or ():
            yield from self._call(call)

    def _piece(self, what: object, kind: BlockKind, text: str) -> Iterator[Chunk]:
        if what in self._numbers and self._open != what:
            self._numbers.pop(what)  # it has ended: more of it is another block
        yield from self._turn_to(what)
        if what not in self._numbers:
            yield BlockStart(self._number(what), kind)
        yield Delta(self._numbers[what], text)

    def _call(self, call: Mapping[str, Any]) -> Iterator[Chunk]:
        function = call.get("function") or {}
        what = ("call", call.get("index", call.get("id")))
        if what not in self._numbers:
            yield from self._turn_to(what)
            name, meta = function.get("name") or "", _meta(call)
            yield BlockStart(self._number(what), BlockKind.CALL, name, call.get("id"), provider_meta=meta)
        if function.get("arguments"):
            yield Delta(self._numbers[what], function["arguments"])

    def _number(self, what: object) -> int:
        self._numbers[what] = number = self._begun
        self._begun += 1
        return number

    def _turn_to(self, what: object) -> Iterator[Chunk]:
        """Another block (or none) is spoken from here on."""
        if self._open is not None and self._open != what:
            yield BlockEnd(self._numbers[self._open])
        self._open = what


def _meta(call: Mapping[str, Any]) -> dict[str, Any]:
    """What else came with a call (a thought signature, say): its provider may want it back."""
    return {key: value for key, value in call.items() if key not in ("index", "id", "type", "function")}


def _usage(usage: Mapping[str, Any] | None) -> Iterator[Chunk]:
    if not usage:
        return
    details = usage.get("prompt_tokens_details") or {}
    cached = details.get("cached_tokens") or 0
    sent = usage.get("prompt_tokens") or 0
    yield Usage(
        {"input_tokens": sent - cached, "output_tokens": usage.get("completion_tokens") or 0, "cache_read_tokens": cached}
    )
