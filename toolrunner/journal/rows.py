"""A record as a row of the table, and the one statement that writes rows. No state."""

import sqlite3
from functools import cache
from typing import NamedTuple, final

from toolrunner.journal.codec import to_json
from toolrunner.records import CallRecorded, Record

_MOST = 32
"""Rows of one statement. Each statement gives the interpreter lock away and has to wait for it again, three times, and is a
transaction of its own if it is alone: so one for each number of rows up to this one. (SQLite keeps 128 of them compiled.)"""


@final
class Row(NamedTuple):
    """One line of the table `records`, in the order of its columns. `altered`: something of it was masked or cut."""

    seq: int
    boottime: float
    run_id: str
    type: str
    v: int
    altered: bool
    call_id: str | None
    key: str | None
    body: str


def row(seq: int, at: float, record: Record, body: str | None = None, *, altered: bool = False) -> Row:
    """The row of a record; `body` is its JSON text where that is not simply its own."""
    call_id = key = None
    if isinstance(record, CallRecorded):
        call_id, key = record.call_id, record.idempotency_key
    return Row(
        seq, at, record.run_id, record.type, record.v, altered, call_id, key, body if body is not None else to_json(record)
    )


@cache
def _statement(rows: int) -> str:
    places = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?, ?)"] * rows)
    return f"INSERT INTO records VALUES {places}"  # noqa: S608  question marks only


def insert(connection: sqlite3.Connection, rows: list[Row]) -> None:
    """Write the rows in one commit. Raises sqlite3.Error; then nothing of them is in the file, or the commit itself failed."""
    if len(rows) <= _MOST:
        _insert(connection, rows)
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for at in range(0, len(rows), _MOST):
            _insert(connection, rows[at : at + _MOST])
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _insert(connection: sqlite3.Connection, rows: list[Row]) -> None:
    connection.execute(_statement(len(rows)), rows[0] if len(rows) == 1 else [value for row in rows for value in row])
