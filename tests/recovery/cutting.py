"""A journal as a kill at this moment would leave it: all that is on disk, copied while its owner lives."""

import sqlite3
from pathlib import Path


def copy_of(live: Path, copy: Path) -> None:
    """Copy the journal that somebody owns to `copy`, in one snapshot."""
    source, target = sqlite3.connect(f"file:{live}?mode=ro", uri=True), sqlite3.connect(copy)
    try:
        source.backup(target)
    finally:
        source.close()
        target.close()
    copy.chmod(0o600)
