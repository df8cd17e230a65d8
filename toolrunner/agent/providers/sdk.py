"""What the adapters of all SDKs share: events as chunks, a response closed however it is left, errors that are ours. No state."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Protocol

import anyio

from toolrunner.agent.model import ModelError
from toolrunner.agent.providers.sse import EventStream
from toolrunner.history.chunks import Chunk

__all__ = ["LONGEST_SILENCE", "PASSING_KINDS", "Reading", "failure", "streamed", "told"]

LONGEST_SILENCE = 300.0
"""Seconds without a byte until a request has failed. Models that think for long send pings, or at least a first event."""

CLOSE_BOUND = 5.0
"""Seconds to close a response that is left: it only closes a socket, so this is for a proxy or a TLS end that hangs."""

_TEXT = 1_000
"""Characters of a provider's error that are kept."""

_PASSING = frozenset({408, 409, 425, 429})
"""Statuses below 500 after which the same request may go through (RFC 9110, RFC 6585)."""

_FIRST_ERROR, _FIRST_OF_THE_SERVER = 400, 500

PASSING_KINDS = frozenset(
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
        """The chunks of the next event; none for what says nothing of the message. Raises ModelError: the event says so."""
        ...

    def end(self) -> Iterable[Chunk]:
        """The chunks that stand for the regular end of the stream, where its format has no event for it."""
        ...


@asynccontextmanager
async def streamed(ask: Callable[[], AbstractAsyncContextManager[Any]], reading: Reading) -> AsyncGenerator[AsyncIterator[Chunk]]:
    """The response that `ask` opens, as chunks. It is closed when the block is left.

    `ask` is an SDK's `with_streaming_response`: it makes the request and tells of its errors. The events are read from its bytes
    here. The SDKs' own readers are generators in generators, which are left half-way when a stream is; trio warns of each.

    Raises:
        ModelError: whatever the SDK or the connection has to complain about.
    """
    opened = ask()
    try:
        response = await opened.__aenter__()
    except Exception as error:
        raise told(error) from error
    chunks = _chunks(response.http_response.aiter_bytes(), reading)
    try:
        yield chunks
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_BOUND):
            await chunks.aclose()
            await opened.__aexit__(None, None, None)


async def _chunks(source: AsyncIterator[bytes], reading: Reading) -> AsyncGenerator[Chunk]:
    events = EventStream()
    try:
        while True:
            try:
                came = list(events.feed(await anext(source)))
            except StopAsyncIteration:
                break
            except Exception as error:
                raise told(error) from error
            for event in came:
                for chunk in reading.feed(event):
                    yield chunk
        for chunk in reading.end():
            yield chunk
    finally:
        await _unwind(source)


async def _unwind(source: AsyncIterator[bytes]) -> None:
    """End the client's own generators, which are nested, from the innermost: left alone, the collector would find them half-way.

    Cancelled at its next wait, the read raises through all of them. What is still buffered comes first, and is thrown away.
    """
    with anyio.CancelScope() as scope, suppress(Exception):
        scope.cancel()
        async for _ in source:
            pass


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
    if names & {"APIConnectionError", "TransportError", "StreamError", "MalformedEvent"}:
        return ModelError(text, retryable=True)
    return error


def failure(error: Mapping[str, Any]) -> ModelError:
    """The error of ours for one that came as an event of a stream, whose status was 200."""
    kinds = {word for name in ("type", "code", "status") if isinstance(word := error.get(name), str)}
    kind = next((word for word in sorted(kinds) if word in PASSING_KINDS), next(iter(sorted(kinds)), "error"))
    return ModelError(f"{kind}: {error.get('message', '')}"[:_TEXT], retryable=bool(kinds & PASSING_KINDS))


def _retry_after(error: Exception) -> float | None:
    """Seconds, from the header of that name (RFC 9110, 10.2.3); a date in it is not worth reading a clock for."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    if headers is None:
        return None
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(TypeError, ValueError):
            return max(0.0, float(headers.get(name)) / unit)
    return None
