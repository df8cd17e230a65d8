"""What the user allowed for good: exactly that call, for a while, in a file that no mistake can cost its content."""

import fcntl
import importlib
import json
import multiprocessing
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from toolrunner.errors import PolicyError
from toolrunner.policy import forget, remember, remembered
from toolrunner.policy.remembered import LASTS, MOST

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def digest(number: int) -> str:
    return f"{number:064x}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "config"
    folder.mkdir(mode=0o700)
    return folder / "remembered.json"


def test_what_is_kept_counts_until_its_time_is_over_and_for_nothing_else(file: Path) -> None:
    assert remembered(file) == {}
    remember(digest(1), "shell", {"command": "make"}, file, NOW)
    assert list(remembered(file, NOW)) == [digest(1)]
    assert remembered(file, NOW)[digest(1)].arguments == '{"command": "make"}'
    assert remembered(file, NOW + LASTS) == {}
    assert remembered(file, NOW - timedelta(days=1)) == {}  # the clock was set back: it was not allowed yet


def test_the_file_is_the_users_alone(file: Path) -> None:
    remember(digest(1), "shell", {}, file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert {path.name for path in file.parent.iterdir()} == {"remembered.json", ".remembered.json.lock"}


def test_it_is_taken_back(file: Path) -> None:
    remember(digest(1), "shell", {}, file)
    assert forget(digest(1), file)
    assert not forget(digest(1), file)
    assert remembered(file) == {}


def test_the_oldest_go_first(file: Path) -> None:
    many = [
        {
            "digest": digest(n),
            "tool": "x",
            "arguments": "",
            "at": (NOW + timedelta(seconds=n)).isoformat(),
            "until": "2027-01-01T00:00:00Z",
        }
        for n in range(MOST)
    ]
    file.write_text(json.dumps({"schema": 1, "allowed": many}))
    file.chmod(0o600)
    remember(digest(MOST), "x", {}, file, NOW + timedelta(days=1))
    kept = remembered(file, NOW + timedelta(days=1))
    assert len(kept) == MOST
    assert digest(0) not in kept
    assert digest(MOST) in kept


@pytest.mark.parametrize(
    "content", ["", "{ mine", "[]", '{"schema": 2, "allowed": []}', '{"schema": 1, "allowed": [{"digest": "x"}]}', "\0"]
)
def test_a_file_that_is_not_understood_counts_for_nothing_and_is_left_as_it_is(content: str, file: Path) -> None:
    file.write_text(content)
    file.chmod(0o600)
    for act in (lambda: remembered(file), lambda: remember(digest(1), "x", {}, file), lambda: forget(digest(1), file)):
        with pytest.raises(PolicyError):
            act()
    assert file.read_text() == content


def test_a_file_that_others_can_write_counts_for_nothing(file: Path) -> None:
    remember(digest(1), "x", {}, file)
    file.chmod(0o666)
    with pytest.raises(PolicyError, match="others may write it"):
        remembered(file)


def test_a_write_that_fails_leaves_the_old_file_and_no_draft(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(digest(1), "x", {}, file)
    before = file.read_bytes()

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        remember(digest(2), "x", {}, file)
    assert file.read_bytes() == before
    assert {path.name for path in file.parent.iterdir()} == {"remembered.json", ".remembered.json.lock"}


def test_a_program_that_stands_still_with_the_lock_holds_nobody_up(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(digest(1), "x", {}, file)
    before = file.read_bytes()
    monkeypatch.setattr(importlib.import_module("toolrunner.policy.remembered"), "LOCK_WAIT", 0.05)
    with (file.parent / ".remembered.json.lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for act in (lambda: remember(digest(2), "x", {}, file), lambda: forget(digest(1), file)):
            with pytest.raises(BlockingIOError):
                act()
    assert file.read_bytes() == before


def test_a_link_stays_one(file: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles"
    real.mkdir(mode=0o700)
    file.symlink_to(real / "kept.json")
    remember(digest(1), "x", {}, file)
    assert file.is_symlink()
    assert list(remembered(file)) == [digest(1)]


def _keep(file: Path, first: int) -> None:
    for number in range(first, first + 10):
        remember(digest(number), "x", {}, file)


def test_two_programs_that_keep_at_once_lose_nothing(file: Path) -> None:
    context = multiprocessing.get_context("fork")
    others = [context.Process(target=_keep, args=(file, 10 * place)) for place in range(3)]
    for one in others:
        one.start()
    for one in others:
        one.join(60)
        one.close()
    assert sorted(remembered(file)) == [digest(n) for n in range(30)]
