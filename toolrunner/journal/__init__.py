"""The journal on disk: SQLite, one owner, any number of readers. (Recovery after a crash is `toolrunner.recovery`.)

`sqlite` = the owner's journal, `writer` its thread, `ownership` its lock, `reader` everybody else's view, `places` where files
are, `schema` and `rows` the database, `codec` records as JSON.
"""

from toolrunner.journal.clocks import Opening, boottime
from toolrunner.journal.codec import RawRecord
from toolrunner.journal.ownership import OwnerState, owner_of
from toolrunner.journal.places import Place, named_place, new_session, session_place, sessions_folder
from toolrunner.journal.reader import Entry, JournalReader
from toolrunner.journal.sqlite import SqliteJournal

__all__ = [
    "Entry",
    "JournalReader",
    "Opening",
    "OwnerState",
    "Place",
    "RawRecord",
    "SqliteJournal",
    "boottime",
    "named_place",
    "new_session",
    "owner_of",
    "session_place",
    "sessions_folder",
]
