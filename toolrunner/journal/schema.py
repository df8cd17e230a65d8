"""The database file: its tables, its settings, and the checks before it is written to. No state.

`records` is the journal; it is only ever appended to. Its other columns and all indices are derived from the JSON in `body`.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from toolrunner.errors import JournalDamaged, JournalLocked, JournalNoWal, JournalTooNew
from toolrunner.journal.failures import BUSY_WAIT

SCHEMA_VERSION = 1
"""Raised when an older version could no longer write the file rightly. A record's own changes have versions of their own."""

APPLICATION_ID = 0x746F6F6C
"""`tool` in ASCII: tells our files from other people's databases (https://www.sqlite.org/pragma.html#pragma_application_id)."""

WAL_KEPT = 1024 * 1024
"""Bytes that the -wal file keeps while the journal is open. Larger once, it is cut to this when it begins anew."""

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE openings (
    number INTEGER PRIMARY KEY, first_seq INTEGER NOT NULL, opened_at TEXT NOT NULL, boottime REAL NOT NULL, host TEXT NOT NULL,
    pid INTEGER NOT NULL, starttime INTEGER NOT NULL, boot_id TEXT NOT NULL, pid_namespace INTEGER NOT NULL
);
CREATE TABLE records (
    seq INTEGER PRIMARY KEY, boottime REAL NOT NULL, run_id TEXT NOT NULL, type TEXT NOT NULL, v INTEGER NOT NULL,
    altered INTEGER NOT NULL, call_id TEXT, key TEXT, body TEXT NOT NULL
);
CREATE INDEX records_of_run ON records (run_id, type);
CREATE INDEX records_of_call ON records (call_id) WHERE call_id IS NOT NULL;
CREATE INDEX records_of_key ON records (key) WHERE key IS NOT NULL;
"""

_MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {}
"""From a schema version to the next one, in one transaction. None yet."""


def connect(path: Path) -> sqlite3.Connection:
    """A connection for the owner, which any one thread at a time may use. Nothing is read yet."""
    return sqlite3.connect(
        f"file:{quote(str(path))}?mode=rw", uri=True, timeout=BUSY_WAIT, isolation_level=None, check_same_thread=False
    )


def make_ready(connection: sqlite3.Connection, path: Path, session: str | None, secret: bytes) -> None:
    """Check what is there, make the tables if nothing is, and set what makes a commit durable. Raises the journal's errors."""
    is_new = _require_ours(connection, path)
    answer = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if answer != "wal":
        raise JournalNoWal(path, str(answer))
    # FULL: a commit returns after the -wal file was synced (https://www.sqlite.org/pragma.html#pragma_synchronous).
    for setting in ("synchronous = FULL", "fullfsync = 1", "wal_autocheckpoint = 0", f"journal_size_limit = {WAL_KEPT}"):
        connection.execute(f"PRAGMA {setting}").fetchall()
    # What a log was left with may be in the kernel's memory only, as a flush of it may have failed; records that followed it
    # would be lost with it. So it is written anew, into the database, and the log begins afresh.
    if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        raise JournalLocked(path, BUSY_WAIT)
    if is_new:
        _make_tables(connection, session, secret)
    else:
        _migrate(connection)


def reserve_wal(connection: sqlite3.Connection) -> None:
    """Make the -wal file `WAL_KEPT` long: pages of a transaction that is taken back, written because the cache is too small."""
    connection.execute("PRAGMA cache_size = 8").fetchall()
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("INSERT INTO meta VALUES ('reserve', zeroblob(?))", (WAL_KEPT,))
    finally:
        connection.execute("ROLLBACK")
        connection.execute("PRAGMA cache_size = -2000").fetchall()  # SQLite's default, in KiB


def _require_ours(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file is new and empty. Raises for one of somebody else, and for one of later days."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    ours = int(connection.execute("PRAGMA application_id").fetchone()[0]) == APPLICATION_ID
    if not ours:
        if version or connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            raise JournalDamaged(path, "it is the database of another program")
        return True
    if version > SCHEMA_VERSION:
        raise JournalTooNew(path, version, SCHEMA_VERSION)
    return False


def _make_tables(connection: sqlite3.Connection, session: str | None, secret: bytes) -> None:
    # One transaction, version and mark included: a file is either empty or whole.
    connection.execute("BEGIN IMMEDIATE")
    for statement in _TABLES.split(";"):
        if statement.strip():
            connection.execute(statement)
    connection.executemany("INSERT INTO meta VALUES (?, ?)", [("session", session), ("secret", secret)])
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")


def _migrate(connection: sqlite3.Connection) -> None:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    while version < SCHEMA_VERSION:
        connection.execute("BEGIN IMMEDIATE")
        _MIGRATIONS[version](connection)
        version += 1
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("COMMIT")
