"""The program's side of the socket: `async with serve(runner): ...`.

State: one `_Server`, its board and the clients that are connected, changed on the runner's loop. Nothing a client does or leaves
undone holds anything up but itself: each has a task, each read and write a bound, and there are `MOST_CLIENTS` at most.
"""

import contextlib
import os
import secrets
import socket
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol, final

import anyio
import anyio.abc

from toolrunner.control import lines, peers, place
from toolrunner.control.board import Board, told_result
from toolrunner.process.identity import starttime_of
from toolrunner.records import Observer
from toolrunner.results import ToolResult

ERROR_PAUSE = 0.5
"""Seconds before the next try when a connection could not be taken (no descriptors left): it stays ready, and would spin."""

ASKED: Final = "toolrunner cancel"
"""The reason of the stop, as the result tells it."""

LAST_ANSWERS = 0.5
"""Seconds that results which are there may still take to whoever waits for them, once the block is over."""


class Controlled(Protocol):
    """What is needed of a Runner."""

    def on_record(self, observer: Observer, /) -> Callable[[], None]: ...
    def take_stops(self) -> Callable[[str, str], bool]:
        """The way to stop one call: `stop(run_id, text)`, True if it was under way."""
        ...


@contextlib.asynccontextmanager
async def serve(
    runner: Controlled, *, about: Mapping[str, str] | None = None, stop_all: Callable[[str], object] | None = None
) -> AsyncGenerator[Path]:
    """Answer `toolrunner ps` and `toolrunner cancel` for this runner as long as the block lasts; gives the socket's path.

    Args:
        runner: a Runner. Enter this before calls are made: of earlier ones nothing is known here.
        about: what is told of this program besides its pid, such as its session and journal.
        stop_all: how everything is stopped; by default each call is.

    Raises:
        NoPlace: there is no folder for the socket that is this user's alone. OSError: the socket cannot be made.
    """
    folder = place.folder(make=True)
    place.sweep(folder)
    path = folder / f"{os.getpid()}-{secrets.token_hex(4)}{place.SUFFIX}"
    server = _Server(runner, dict(about or {}), stop_all)
    listener = place.listen(folder, path.name, lines.MOST_CLIENTS)
    stop_listening = runner.on_record(server.board.take)
    try:
        async with _together(server, listener):
            yield path
    finally:
        stop_listening()
        listener.close()
        path.unlink(missing_ok=True)


@contextlib.asynccontextmanager
async def _together(server: "_Server", listener: socket.socket) -> AsyncGenerator[None]:
    """Serve while the block lasts. What the block raises is raised as it is, not in a group of one."""
    failure: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, listener)
        try:
            yield
            with anyio.move_on_after(LAST_ANSWERS):
                await server.paid()
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as error:  # noqa: BLE001 - raised below
            failure = error
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


@final
class _Server:
    def __init__(self, runner: Controlled, about: dict[str, str], stop_all: Callable[[str], object] | None) -> None:
        self.board = Board()
        self._stop, self._about, self._stop_all = runner.take_stops(), about, stop_all
        self._clients = 0
        self._owed = 0
        """Results that are there and not yet told to whoever waits for them."""
        self._all_told = anyio.Event()
        self._since = datetime.now(UTC).isoformat()

    async def serve(self, listener: socket.socket) -> None:
        """Take connections until cancelled."""
        async with anyio.create_task_group() as tasks:
            while True:
                await anyio.wait_readable(listener)
                try:
                    connection, _ = listener.accept()
                except BlockingIOError:
                    continue
                except OSError:
                    await anyio.sleep(ERROR_PAUSE)
                    continue
                if self._clients >= lines.MOST_CLIENTS:
                    connection.close()
                    continue
                self._clients += 1
                connection.setblocking(False)
                tasks.start_soon(self._answer, connection)

    async def _answer(self, connection: socket.socket) -> None:
        try:
            with connection:
                await self._talk(_Wire(connection), peers.why_refused(connection))
        except (OSError, TimeoutError):  # it left, or does not read
            pass
        finally:
            self._clients -= 1

    async def _talk(self, wire: "_Wire", why: str | None) -> None:
        """`why` was found when it connected; it is said after the question, which would else meet a closed connection."""
        try:
            question = lines.decode(await wire.read_line())
        except ValueError as error:
            question, why = {}, why or f"this is no question: {error}"
        if why is not None:
            await wire.write({"refused": why})
            return
        match question:
            case {"verb": "list"}:
                await wire.write(self._listing())
            case {"verb": "cancel", "run": None}:
                await self._cancel(wire, self.board.run_ids())
            case {"verb": "cancel", "run": str() as run_id}:
                await self._cancel(wire, [run_id] if run_id in self.board.run_ids() else [], one=True)
            case _:
                await wire.write({"refused": "there are the verbs list and cancel"})

    def _listing(self) -> dict[str, Any]:
        pid = os.getpid()
        facts = {"v": lines.VERSION, "pid": pid, "starttime": starttime_of(pid), "since": self._since}
        return {**facts, "about": {name: lines.cut(text) for name, text in self._about.items()}, **self.board.to_json()}

    async def paid(self) -> None:
        """Wait until no result is owed to anybody."""
        while self._owed:
            self._all_told = anyio.Event()
            await self._all_told.wait()

    async def _cancel(self, wire: "_Wire", wanted: list[str], *, one: bool = False) -> None:
        """Ask them to stop, then tell each result once its body is over. Whoever leaves meanwhile has asked all the same."""
        results = _Results(self._owe)
        for run_id in wanted:
            self.board.when_over(run_id, results.put)
        if not one and self._stop_all is not None:
            self._stop_all(ASKED)
        else:
            for run_id in wanted:
                self._stop(run_id, ASKED)
        try:
            await wire.write({"asked": wanted[: lines.MOST_CALLS], "number": len(wanted)})
            for _ in wanted:
                await wire.unless_gone(results.arrive)
                await wire.write({"result": told_result(results.first)})
                results.told()
        finally:
            results.close()

    def _owe(self, more: int) -> None:
        self._owed += more
        if not self._owed:
            self._all_told.set()


@final
class _Results:
    """Results for one client: `put` as calls are over, told one after the other. `owe` counts those in between."""

    def __init__(self, owe: Callable[[int], object]) -> None:
        self._owe = owe
        self._queue: deque[ToolResult] = deque()
        self._arrived = anyio.Event()
        self._closed = False

    def put(self, result: ToolResult) -> None:
        if not self._closed:
            self._owe(1)
            self._queue.append(result)
            self._arrived.set()

    async def arrive(self) -> None:
        """Wait until there is one."""
        while not self._queue:
            self._arrived = anyio.Event()
            await self._arrived.wait()

    @property
    def first(self) -> ToolResult:
        return self._queue[0]

    def told(self) -> None:
        """The first one was told."""
        self._queue.popleft()
        self._owe(-1)

    def close(self) -> None:
        """Nobody waits any more."""
        self._closed = True
        self._owe(-len(self._queue))
        self._queue.clear()


@final
class _Wire:
    """One connection, non-blocking."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    async def read_line(self) -> bytes:
        """The question. Raises ValueError if it is too long or breaks off, TimeoutError if it does not come."""
        seen = b""
        with anyio.fail_after(lines.QUESTION_BOUND):
            while b"\n" not in seen:
                await anyio.wait_readable(self._connection)
                try:
                    more = self._connection.recv(lines.LONGEST_QUESTION)
                except BlockingIOError:
                    continue
                seen += more
                if not more or len(seen) > lines.LONGEST_QUESTION:
                    raise ValueError("it breaks off" if not more else f"longer than {lines.LONGEST_QUESTION} bytes")
        return seen.partition(b"\n")[0]

    async def write(self, item: dict[str, Any]) -> None:
        """Raises OSError, TimeoutError."""
        rest = memoryview(lines.encode(item))
        with anyio.fail_after(lines.ANSWER_BOUND):
            while rest:
                try:
                    rest = rest[self._connection.send(rest) :]
                except BlockingIOError:
                    await anyio.wait_writable(self._connection)

    async def unless_gone(self, wait: Callable[[], Awaitable[None]]) -> None:
        """Wait as long as somebody is there to hear of it. Raises ConnectionResetError once nobody is."""
        arrived = False
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                await anyio.wait_readable(self._connection)  # its end, or chatter, which was not asked for
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            await wait()
            arrived = True
            tasks.cancel_scope.cancel()
        if not arrived:
            raise ConnectionResetError
