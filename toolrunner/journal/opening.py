"""Opening the database as its owner: what is wrong with file or disk is found here, before anything runs. No state."""

import secrets
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import final

from toolrunner.journal.clocks import boottime, this_host, this_process
from toolrunner.journal.failures import journal_error
from toolrunner.journal.places import Place
from toolrunner.journal.schema import connect, make_ready

_KEY_BYTES = 32
"""Of the key of the digests of secrets: as many as SHA-256 makes use of."""


@final
@dataclass(frozen=True, slots=True)
class Opened:
    """A database that takes records. `last_seq` is the number of the last one in it."""

    connection: sqlite3.Connection
    last_seq: int
    secret: bytes


def open_database(place: Place) -> Opened:
    """Open it and note this opening, which is the first commit. The caller holds the owner's lock. Raises `JournalError`."""
    try:
        connection = connect(place.path)
        try:
            make_ready(connection, place.path, place.session, secrets.token_bytes(_KEY_BYTES))
            last = int(connection.execute("SELECT ifnull(max(seq), 0) FROM records").fetchone()[0])
            secret = connection.execute("SELECT value FROM meta WHERE name = 'secret'").fetchone()[0]
            _note(connection, last + 1)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise journal_error(place.path, error) from error
    return Opened(connection, last, secret)


def _note(connection: sqlite3.Connection, first_seq: int) -> None:
    owner = this_process()
    at = datetime.now(UTC).isoformat()
    facts = (first_seq, at, boottime(), this_host(), owner.pid, owner.starttime, owner.boot_id, owner.pid_namespace)
    connection.execute("INSERT INTO openings VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", facts)
