"""A provider on 127.0.0.1 that speaks a wire format as its script says: for the real SDKs. One connection per request.

A script is a list for each request in turn: dicts are events, `Gate`s hold, `Cut` closes the connection in the middle, `Status`
answers with an error instead of a stream.
"""

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import SocketStream
from anyio.from_thread import start_blocking_portal

from toolrunner.testing import Gate


class Cut:
    """The connection is closed here, without the end of the body."""


class Hang:
    """Nothing more comes, until the client leaves."""


@dataclass(frozen=True)
class Status:
    code: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Seen:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    raw: bytes
    left: anyio.Event = field(default_factory=anyio.Event)
    """Set when the client has closed its end before ours."""


Encode = Callable[[dict[str, Any]], bytes]


def named(event: dict[str, Any]) -> bytes:
    """Anthropic's and Responses' form: the event's type is its name too."""
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def unnamed(event: dict[str, Any]) -> bytes:
    """Chat Completions' and Gemini's."""
    return f"data: {json.dumps(event)}\n\n".encode()


class LoopbackProvider:
    def __init__(self, *scripts: Sequence[Any], encode: Encode = named, last: bytes = b"") -> None:
        self.scripts = [list(script) for script in scripts]
        self.encode, self.last = encode, last
        self.requests: list[Seen] = []
        self.url = ""

    async def serve(self, connection: SocketStream) -> None:
        async with connection:
            with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                seen = await _read(connection)
                self.requests.append(seen)
                await self._answer(connection, seen, self.scripts.pop(0))

    async def _answer(self, connection: SocketStream, seen: Seen, script: list[Any]) -> None:
        if script and isinstance(script[0], Status):
            await connection.send(_status(script[0]))
            return
        await connection.send(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await connection.receive()
                seen.left.set()
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            for item in script:
                if isinstance(item, Cut):
                    tasks.cancel_scope.cancel()
                    return
                if isinstance(item, Hang):
                    await anyio.sleep_forever()
                elif isinstance(item, Gate):
                    await item.wait()
                else:
                    await connection.send(_chunk(self.encode(item)))
            if self.last:
                await connection.send(_chunk(self.last))
            await connection.send(_chunk(b""))
            tasks.cancel_scope.cancel()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _status(status: Status) -> bytes:
    body = json.dumps(status.body).encode()
    headers = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close", **status.headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status.code} Error\r\n{head}\r\n".encode() + body


async def _read(connection: SocketStream) -> Seen:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await connection.receive()
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += await connection.receive()
    return Seen(first.split(" ")[1], headers, json.loads(body or b"{}"), body)


@contextlib.asynccontextmanager
async def provider(*scripts: Sequence[Any], encode: Encode = named, last: bytes = b"") -> AsyncIterator[LoopbackProvider]:
    served = LoopbackProvider(*scripts, encode=encode, last=last)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - anyio's, not Django's
    served.url = f"http://127.0.0.1:{port}"
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, served.serve)
        yield served
        tasks.cancel_scope.cancel()


@contextlib.contextmanager
def provider_in_thread(*scripts: Sequence[Any], encode: Encode = named, last: bytes = b"") -> Iterator[LoopbackProvider]:
    """The same for a program under test, which this process only starts and talks to."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(provider(*scripts, encode=encode, last=last)) as served,
    ):
        yield served
