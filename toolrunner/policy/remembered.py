"""What the user allowed for good: a file of exact calls, read with the policy and written when an answer asks for it.

State: the file, changed by `remember` alone, under a lock, as a whole: a reader sees the old one or the new one. A file that
cannot be read or understood is left as it is, and then nothing of it counts and nothing is added to it.
"""

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, final

from pydantic import Field, ValidationError
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from toolrunner.config import POLICIES, Found, Origin, Strict, config_home
from toolrunner.config.trust import content
from toolrunner.errors import PolicyError

if sys.platform != "win32":
    import fcntl

LASTS = timedelta(days=90)
"""How long a remembered answer counts: long enough to be of use, short enough that somebody still knows why."""

MOST = 1_000
"""Remembered calls; the oldest go first. Each one was typed by a person."""

LOCK_WAIT = 5.0
"""Seconds. The lock is held while a small file is written; who stands still with it must not hold up a loop for good."""

SHOWN = 2_000
"""Characters of a call's arguments that are kept beside its digest, for whoever reads the file."""


@final
class Kept(Strict):
    """One call that was allowed. The digest counts: it covers tool and version, arguments, folder, program and environment."""

    digest: str = Field(pattern="^[0-9a-f]{64}$")
    tool: str
    arguments: str = ""
    at: datetime
    until: datetime


@final
class KeptFile(Strict):
    """The file."""

    schema_version: Literal[1] = Field(alias="schema")
    allowed: tuple[Kept, ...] = ()


def place() -> Path:
    """Where this user's file is; it need not exist."""
    return config_home() / "remembered.json"


def remembered(path: Path | None = None, now: datetime | None = None) -> Mapping[str, Kept]:
    """What counts now, by digest. Raises PolicyError when the file is there and cannot be trusted or understood."""
    moment = now if now is not None else datetime.now(UTC)
    return {kept.digest: kept for kept in _read(path or place()).allowed if kept.at <= moment < kept.until}


def remember(digest: str, tool: str, arguments: object, path: Path | None = None, now: datetime | None = None) -> Kept:
    """Keep one call for `LASTS`. Returns when it is on disk. Raises PolicyError, OSError; the file is as it was then."""
    target = (path or place()).resolve()  # through a symlink, which stays one
    moment = now if now is not None else datetime.now(UTC)
    text = json.dumps(arguments, ensure_ascii=True, default=str)[:SHOWN]
    kept = Kept(digest=digest, tool=tool, arguments=text, at=moment, until=moment + LASTS)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(target):
        others = [one for one in _read(target).allowed if one.digest != digest and one.until > moment]
        allowed = sorted((*others, kept), key=lambda one: one.at)[-MOST:]
        _replace(target, KeptFile(schema=1, allowed=tuple(allowed)))
    return kept


def forget(digest: str, path: Path | None = None) -> bool:
    """Take one back; True if it was there. Raises as `remember` does."""
    target = (path or place()).resolve()
    if not target.exists():
        return False
    with _locked(target):
        before = _read(target).allowed
        after = tuple(one for one in before if one.digest != digest)
        if len(after) != len(before):
            _replace(target, KeptFile(schema=1, allowed=after))
    return len(after) != len(before)


def _read(path: Path) -> KeptFile:
    if not os.path.lexists(path):
        return KeptFile(schema=1)
    raw = content(POLICIES, Found("remembered", path, Origin.USER))
    try:
        return KeptFile.model_validate_json(raw)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise PolicyError(
            f"{path}: {where}: {problem['msg']}; what it remembers does not count until it is mended or moved away"
        ) from error


@contextlib.contextmanager
def _locked(target: Path) -> Iterator[None]:
    """One writer at a time. The lock is a file of its own, because the other one is replaced; flock(2) ends with its holder."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    fd = os.open(target.with_name(f".{target.name}.lock"), flags, 0o600)
    try:
        if sys.platform != "win32":
            busy = retry_if_exception_type(BlockingIOError)
            patiently = Retrying(retry=busy, stop=stop_after_delay(LOCK_WAIT), wait=wait_fixed(0.01), reraise=True)
            patiently(fcntl.flock, fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)


def _replace(target: Path, file: KeptFile) -> None:
    text = file.model_dump_json(indent=2, by_alias=True) + "\n"
    fd, draft = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with open(fd, "w", encoding="utf-8") as stream:  # noqa: PTH123 - a descriptor
            stream.write(text)
            stream.flush()
            os.fsync(fd)  # before the rename, or a crash could leave the new name with nothing in it
        Path(draft).replace(target)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    if sys.platform != "win32":
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
