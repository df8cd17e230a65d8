"""The journal on disk: SQLite, one owner, any number of readers. (Recovery after a crash is `toolrunner.recovery`.)

`sqlite` = the owner's journal, `writer` its thread, `ownership` its lock, `reader` everybody else's view, `places` where files
are, `own` which files those are, `schema` and `rows` the database, `codec` records as JSON.
"""

from toolrunner.journal.check import CheckReport, check
from toolrunner.journal.clocks import Opening, boottime
from toolrunner.journal.codec import RawRecord
from toolrunner.journal.doubts import in_doubt
from toolrunner.journal.export import export
from toolrunner.journal.own import is_journal, is_own
from toolrunner.journal.ownership import OwnerState, owner_of
from toolrunner.journal.places import Place, named_place, new_session, session_place, sessions_folder
from toolrunner.journal.reader import Entry, JournalReader
from toolrunner.journal.sessions import Retention, SessionInfo, retire, sessions
from toolrunner.journal.sqlite import Durable, SqliteJournal

__all__ = [
    "CheckReport",
    "Durable",
    "Entry",
    "JournalReader",
    "Opening",
    "OwnerState",
    "Place",
    "RawRecord",
    "Retention",
    "SessionInfo",
    "SqliteJournal",
    "boottime",
    "check",
    "export",
    "in_doubt",
    "is_journal",
    "is_own",
    "named_place",
    "new_session",
    "owner_of",
    "retire",
    "session_place",
    "sessions",
    "sessions_folder",
]
