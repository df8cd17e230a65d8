"""ScriptedModel: a model whose words, and their moments, are the test's.

State: the replies that are left, the requests it was sent, and how many of its streams are open. A request takes the next reply;
without one it fails, because a test should know how often its agent asks.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, final

from toolrunner.agent import ModelError, ModelRequest, Prices
from toolrunner.history.chunks import BlockEnd, BlockKind, BlockStart, Chunk, Delta, Finish, SealDelta, Stop, Usage
from toolrunner.testing.gates import Gate
from toolrunner.wire import Provider

__all__ = ["ScriptedModel", "call_chunks", "said_chunks", "thought_chunks"]

Moment = Chunk | Gate | BaseException | Callable[[], Awaitable[object] | None]
"""A chunk to give; a gate to wait at; what is raised; or something to be done then, awaited if it must be."""


def said_chunks(*pieces: str, index: int = 0, closed: bool = True) -> list[Moment]:
    """A text, piece by piece."""
    chunks: list[Moment] = [BlockStart(index, BlockKind.TEXT), *(Delta(index, piece) for piece in pieces)]
    return [*chunks, BlockEnd(index)] if closed else chunks


def thought_chunks(*pieces: str, index: int = 0, signature: str | None = "sealed", closed: bool = True) -> list[Moment]:
    """A thought, piece by piece; its signature comes just before its end."""
    chunks: list[Moment] = [BlockStart(index, BlockKind.REASONING), *(Delta(index, piece) for piece in pieces)]
    if not closed:
        return chunks
    return [*chunks, *([SealDelta(index, signature)] if signature is not None else []), BlockEnd(index)]


def call_chunks(
    name: str, arguments: Mapping[str, Any] | str, *, call_id: str | None = None, index: int = 0, closed: bool = True
) -> list[Moment]:
    """A call; its arguments come in two pieces, as text that need not be JSON."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    half = len(text) // 2
    start = BlockStart(index, BlockKind.CALL, name=name, call_id=call_id or f"call_{index}")
    chunks: list[Moment] = [start, Delta(index, text[:half]), Delta(index, text[half:])]
    return [*chunks, BlockEnd(index)] if closed else chunks


@final
class ScriptedModel:
    """Gives `replies` in turn. A reply that ends without `Finish` and without an error is ended with one that fits its blocks.

    A text alone stands for a reply that says it.
    """

    def __init__(
        self,
        *replies: str | Iterable[Moment],
        provider: str = Provider.ANTHROPIC,
        name: str = "scripted",
        prices: Prices | None = None,
        finish: bool = True,
    ) -> None:
        self._replies = [said_chunks(one) if isinstance(one, str) else list(one) for one in replies]
        self._finish = finish
        self.provider, self.name, self.prices = str(provider), name, prices
        self.requests: list[ModelRequest] = []
        """What it was sent, in order."""
        self.open = 0
        """Streams that were entered and not left."""

    def add(self, *replies: str | Iterable[Moment]) -> None:
        """More replies, behind those that are left."""
        self._replies += [said_chunks(one) if isinstance(one, str) else list(one) for one in replies]

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncIterator[Chunk]]:
        """The next reply."""
        return self._stream(request)

    @asynccontextmanager
    async def _stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[Chunk]]:
        self.requests.append(request)
        if not self._replies:
            raise ModelError("the script has no more replies", retryable=False)
        reply = self._replies.pop(0)
        self.open += 1
        chunks = self._chunks(reply)
        try:
            yield chunks
        finally:
            await chunks.aclose()
            self.open -= 1

    async def _chunks(self, reply: list[Moment]) -> AsyncGenerator[Chunk]:
        calls = finished = False
        for moment in reply:
            if isinstance(moment, BaseException):
                raise moment
            if isinstance(moment, Gate):
                await moment.wait()
            elif isinstance(moment, BlockStart | Delta | SealDelta | BlockEnd | Usage | Finish):
                calls |= isinstance(moment, BlockStart) and moment.kind is BlockKind.CALL
                finished |= isinstance(moment, Finish)
                yield moment
            else:
                done = moment()
                if done is not None:
                    await done
        if self._finish and not finished:
            yield Finish(Stop.TOOL_CALLS if calls else Stop.STOP)
