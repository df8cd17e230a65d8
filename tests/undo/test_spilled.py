"""Spill files are on disk before the record that names them is written."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from undo.worlds import World

from toolrunner import Command, MemoryJournal, Runner, command_tool

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

BOUND = 30.0


@command_tool
def loud() -> Command:
    return Command(["sh", "-c", "head -c 5000 /dev/zero | tr '\\0' x"], output_limit=100)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what was synced, in order. (The descriptor's own name, not what anybody says of it.)"""
    names: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        names.append(os.readlink(f"/proc/self/fd/{fd}"))
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    return names


async def test_the_file_and_its_folder_are_synced_before_ended(tmp_path: Path, synced: list[str]) -> None:
    at_ended: list[list[str]] = []

    class Journal(World):
        def append(self, *records: Any) -> None:
            at_ended.extend(list(synced) for record in records if record.type == "call/ended")
            super().append(*records)

    with anyio.fail_after(BOUND):
        async with Runner([loud], journal=Journal(), spill_dir=tmp_path) as runner:
            result = await runner.run("loud")
    assert result.process is not None
    [path] = result.process.spill
    assert at_ended == [[path, str(tmp_path)]]
    assert Path(path).read_text() == "x" * 5000


async def test_what_could_not_be_synced_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    with anyio.fail_after(BOUND):
        async with Runner([loud], journal=World(), spill_dir=tmp_path) as runner:
            result = await runner.run("loud")
    assert any("is not known to be on disk: Input/output error" in one for one in result.missing)


async def test_a_journal_in_memory_asks_for_no_sync(tmp_path: Path, synced: list[str]) -> None:
    with anyio.fail_after(BOUND):
        async with Runner([loud], journal=MemoryJournal(), spill_dir=tmp_path) as runner:
            result = await runner.run("loud")
    assert result.process is not None
    assert (len(result.process.spill), synced) == (1, [])
