"""What the adapters of all SDKs share: events as chunks, a response closed however it is left, errors that are ours. No state."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

import anyio

from toolrunner.agent.model import ModelError
from toolrunner.history.chunks import Chunk

__all__ = ["LONGEST_SILENCE", "Reading", "streamed", "told"]

LONGEST_SILENCE = 300.0
"""Seconds without a byte until a request has failed. Models that think for long send pings, or at least a first event."""

CLOSE_BOUND = 5.0
"""Seconds to close a response that is left: it only closes a socket, so this is for a proxy or a TLS end that hangs."""

_TEXT = 1_000
"""Characters of a provider's error that are kept."""

_PASSING = frozenset({408, 409, 425, 429})
"""Statuses below 500 after which the same request may go through (RFC 9110, RFC 6585)."""

_FIRST_ERROR, _FIRST_OF_THE_SERVER = 400, 500

_PASSING_KINDS = frozenset(
    {
        "overloaded_error",
        "api_error",
        "rate_limit_error",
        "timeout_error",
        "server_error",
        "rate_limit_exceeded",
        "vector_store_timeout",
    }
)
"""The same, for errors that come inside a stream, whose status was 200."""


class Reading(Protocol):
    """Turns the events of one response into chunks. State: one response's."""

    def feed(self, event: Mapping[str, Any]) -> Iterable[Chunk]:
        """The chunks of the next event; none for what says nothing of the message."""
        ...

    def end(self) -> Iterable[Chunk]:
        """The chunks that stand for the regular end of the stream, where its format has no event for it."""
        ...


@asynccontextmanager
async def streamed(ask: Callable[[], Awaitable[Any]], reading: Reading) -> AsyncGenerator[AsyncIterator[Chunk]]:
    """The response to `ask`, an SDK's stream, as chunks. Its HTTP response is closed when the block is left.

    Raises:
        ModelError: whatever the SDK or the connection has to complain about.
    """
    try:
        stream = await ask()
    except Exception as error:
        raise told(error) from error
    chunks = _chunks(stream, reading)
    try:
        yield chunks
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_BOUND):
            await chunks.aclose()
            await stream.close()


async def _chunks(stream: Any, reading: Reading) -> AsyncGenerator[Chunk]:
    try:
        while True:
            try:
                event = await anext(stream)
            except StopAsyncIteration:
                break
            except Exception as error:
                raise told(error) from error
            for chunk in reading.feed(_plain(event)):
                yield chunk
        for chunk in reading.end():
            yield chunk
    finally:
        await _unwind(stream)


async def _unwind(stream: Any) -> None:
    """End the SDK's own generators, which are nested, from the innermost: left alone, the collector would find them half-way.

    Cancelled at its next wait, the read raises through all of them. What is still buffered comes first, and is thrown away.
    """
    with anyio.CancelScope() as scope, suppress(Exception):
        scope.cancel()
        while True:
            try:
                await anext(stream)
            except StopAsyncIteration:
                return


def _plain(event: Any) -> Mapping[str, Any]:
    """An SDK's event as what came over the wire."""
    if isinstance(event, Mapping):
        return event
    plain: Mapping[str, Any] = event.model_dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    return plain


def told(error: Exception) -> Exception:
    """The error of ours for one of an SDK's; one that is none of its own comes back as it is."""
    if isinstance(error, ModelError):
        return error
    status = getattr(error, "status_code", None)
    names = {kind.__name__ for kind in type(error).__mro__}
    text = f"{type(error).__name__}: {getattr(error, 'message', None) or error}"[:_TEXT]
    if isinstance(status, int) and status >= _FIRST_ERROR:
        passing = status >= _FIRST_OF_THE_SERVER or status in _PASSING
        return ModelError(f"{status} {text}", retryable=passing, retry_after=_retry_after(error), status=status)
    if "APIError" in names and "APIConnectionError" not in names:
        return ModelError(text, retryable=bool(_kinds(error) & _PASSING_KINDS), retry_after=_retry_after(error))
    if names & {"APIConnectionError", "TransportError", "StreamError", "JSONDecodeError"}:
        return ModelError(text, retryable=True)
    return error


def _kinds(error: Exception) -> set[str]:
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, Mapping) else {}
    words = (getattr(error, "code", None), getattr(error, "type", None))
    told = (inner.get("type"), inner.get("code")) if isinstance(inner, Mapping) else ()
    return {word for word in (*words, *told) if isinstance(word, str)}


def _retry_after(error: Exception) -> float | None:
    """Seconds, from the header of that name (RFC 9110, 10.2.3); a date in it is not worth reading a clock for."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    if headers is None:
        return None
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(TypeError, ValueError):
            return max(0.0, float(headers.get(name)) / unit)
    return None
