"""Other ways to have an event on the disk before going on: a commit for each, aiosqlite. And the least that can be: one flush.

All write the same text into the same table with the same settings as toolrunner's journal: WAL, `synchronous = FULL`.
"""

import asyncio
import os
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from anyio import to_thread

AIOSQLITE = find_spec("aiosqlite") is not None

_TABLE = "CREATE TABLE records (seq INTEGER PRIMARY KEY, run_id TEXT, body TEXT)"
_INSERT = "INSERT INTO records (run_id, body) VALUES (?, ?)"

WriteText = Callable[[str, str], Awaitable[object]]
"""Has one event (run_id, text) on the disk when it returns."""


class CommitEach:
    """sqlite3 in worker threads, one commit for each event."""

    name = "one commit per event"

    def __init__(self, folder: Path) -> None:
        self._connection = sqlite3.connect(folder / "each.db", isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(_TABLE)

    async def write(self, run_id: str, text: str) -> None:
        """One event."""
        await to_thread.run_sync(self._connection.execute, _INSERT, (run_id, text))

    async def aclose(self) -> None:
        """The end."""
        self._connection.close()


class Aiosqlite:
    """aiosqlite, one commit for each event."""

    name = "aiosqlite"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "aio.db"
        self._connection: Any = None

    async def write(self, run_id: str, text: str) -> None:
        """One event. The connection is made with the first one."""
        if self._connection is None:
            await self._connect()
        await self._connection.execute(_INSERT, (run_id, text))

    async def _connect(self) -> None:
        import aiosqlite

        self._connection = await aiosqlite.connect(self._path, isolation_level=None)
        await self._connection.execute("PRAGMA journal_mode = WAL")
        await self._connection.execute("PRAGMA synchronous = FULL")
        await self._connection.execute(_TABLE)

    async def aclose(self) -> None:
        """The end."""
        if self._connection is not None:
            await self._connection.close()


class Flush:
    """One page written over, and fdatasync: nothing that survives a loss of power can be quicker."""

    name = "one fdatasync"

    def __init__(self, folder: Path, file: str = "page") -> None:
        self._file = os.open(folder / file, os.O_CREAT | os.O_RDWR)
        self._page = os.urandom(4096)

    async def write(self, _run_id: str, _text: str) -> None:
        """One event, whatever it is. The loop stands still meanwhile."""
        self.now()

    def now(self) -> None:
        """In whatever thread this is called."""
        os.pwrite(self._file, self._page, 0)
        os.fdatasync(self._file)

    async def aclose(self) -> None:
        """The end."""
        os.close(self._file)


class FlushFromThread:
    """The same in a thread of its own, with as little as can be between it and asyncio's loop, which must not wait for a disk.

    What a journal can come near to: sleeping on a bare lock, waking the loop once, nothing written but a page.
    """

    name = "one fdatasync in a thread"

    def __init__(self, folder: Path) -> None:
        self._flush = Flush(folder, "page-of-thread")
        self._asked: asyncio.Future[None] | None = None
        self._gate = threading.Lock()
        self._gate.acquire()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    async def write(self, _run_id: str, _text: str) -> None:
        """One event, whatever it is. One at a time."""
        self._asked = asyncio.get_running_loop().create_future()
        self._gate.release()
        await self._asked

    def _live(self) -> None:
        while self._gate.acquire() and (asked := self._asked) is not None:
            self._flush.now()
            asked.get_loop().call_soon_threadsafe(asked.set_result, None)

    async def aclose(self) -> None:
        """The end."""
        self._asked = None
        self._gate.release()
        self._thread.join()
        await self._flush.aclose()
