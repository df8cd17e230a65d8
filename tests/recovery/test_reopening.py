"""A session opened again: the results of its earlier owners, and what became of the calls that one left behind."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from recovery.cutting import copy_of
from recovery.shop import BOUND, MORE, Shop, opened, pay

from toolrunner import Runner, ToolCall, tool
from toolrunner.errors import ConfigError, JournalOwned, UnknownRun
from toolrunner.facts import NoteKind
from toolrunner.journal import JournalReader
from toolrunner.results import Code, Ended, Outcome
from toolrunner.runner import shelf

pytestmark = pytest.mark.anyio


async def test_a_result_that_the_shelf_let_go_is_in_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "KEPT_RESULTS", 1)
    shop, path = Shop(), tmp_path / "j.db"
    async with opened(path, shop.pay) as runner:
        first = await runner.run(pay(1))
        await runner.run(pay(2))
        await runner.run(pay(3))
        with anyio.fail_after(BOUND):
            while first.run_id not in _settled(path):  # noqa: ASYNC110 - the writer's thread tells nobody
                await anyio.sleep(0.001)
        assert runner.result(first.run_id) == first
        assert await runner.wait(first.run_id) == first
        with pytest.raises(UnknownRun):
            runner.result("nobody")
    async with opened(path) as runner:
        assert runner.result(first.run_id) == first


def _settled(path: Path) -> set[str]:
    with JournalReader(path) as reader:
        return {entry.record.run_id for entry in reader.of_type("call/settled")}


async def test_a_session_by_its_name_has_one_owner_and_a_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    shop = Shop()
    with pytest.raises(ConfigError, match="session"):
        Runner(session="s", journal=SqliteJournalStandIn())
    with anyio.fail_after(BOUND):
        async with Runner([shop.pay], session="s") as runner:
            first = await runner.run(pay(1, "k"))
            with pytest.raises(JournalOwned):
                await Runner(session="s").__aenter__()
        async with Runner([shop.pay], session="s") as runner:
            assert (await runner.run(pay(1, "k"))).replayed
            assert runner.result(first.run_id) == first
    assert shop.paid == [1]


class SqliteJournalStandIn:
    """Any journal."""

    def append(self, *records: Any) -> None: ...

    @property
    def error(self) -> None:
        return None

    async def aclose(self) -> None: ...


@pytest.mark.case("E23")
async def test_what_ended_before_the_kill_is_told_by_its_end_and_what_ran_is_lost(tmp_path: Path) -> None:
    before, path = tmp_path / "before.db", tmp_path / "j.db"
    go, running = anyio.Event(), anyio.Event()

    @tool(parallel_safe=True)
    async def runs() -> str:
        running.set()
        await go.wait()
        return "first"

    @tool(parallel_safe=True)
    async def ends() -> str:
        return "second"

    async with opened(before, runs, ends) as runner:
        batch = runner.start_batch([ToolCall("runs", **MORE), ToolCall("ends", call_id="2")])
        await running.wait()
        while not _ended(before):  # noqa: ASYNC110 - the writer's thread tells nobody
            await anyio.sleep(0.001)
        copy_of(before, path)
        first, second = batch.run_ids
        go.set()
        await batch.results()
    async with opened(path, runs, ends) as runner:
        lost, ended = runner.result(first), runner.result(second)
    assert (lost.outcome, lost.code, lost.ended, lost.started) == (Outcome.FAILED, Code.LOST, Ended.LOST, True)
    assert (lost.call_id, lost.kind, lost.provider_meta) == ("c", "custom", {"id": "item"}), "its provider knows its answer"
    assert (ended.outcome, ended.code, ended.value) == (Outcome.SUCCEEDED, Code.HOOKS_LOST, "second")
    assert [note.kind for note in ended.notes] == [NoteKind.HOOKS_LOST]


def _ended(path: Path) -> bool:
    with JournalReader(path) as reader:
        return bool(reader.of_type("call/ended"))
