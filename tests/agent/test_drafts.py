"""The draft file: what a kill leaves of a reply, who takes it up, and when it is gone."""

import logging
import os
import threading
import time
from pathlib import Path

import anyio
import pytest
from agent.desk import at_work

from toolrunner.agent import Session
from toolrunner.agent.drafts import DraftFile, DraftWriter, fitting
from toolrunner.facts import Text
from toolrunner.history import Draft
from toolrunner.journal import SqliteJournal
from toolrunner.records import InboxQueued, Record, RequestSent, StepStarted, TurnEnded, TurnStarted, UserMessage
from toolrunner.testing import Gate, said_chunks

BOUND = 60


def wait_until(seen: threading.Event) -> None:
    assert seen.wait(BOUND)


def test_a_draft_is_private_and_comes_back_whole(tmp_path: Path) -> None:
    file = DraftFile(tmp_path / "d")
    draft = Draft("t1", 6, "half a sentence — ")
    file.write(draft)
    assert file.read() == draft
    assert (tmp_path / "d").stat().st_mode & 0o777 == 0o600
    file.write(Draft("t1", 6, "more"))
    assert os.listdir(tmp_path) == ["d"]
    file.remove()
    file.remove()
    assert file.read() is None


def test_an_unreadable_draft_is_put_aside_and_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "d"
    path.write_bytes(b'{"turn_id": "t')
    with caplog.at_level(logging.WARNING, "toolrunner"):
        assert DraftFile(path).read() is None
    assert "d.unreadable" in caplog.text
    assert sorted(os.listdir(tmp_path)) == ["d.unreadable"]


def test_a_link_in_the_draft_s_place_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / "d").symlink_to(other)
    file = DraftFile(tmp_path / "d")
    assert file.read() is None
    (tmp_path / "d.new").symlink_to(other)
    file.write(Draft("t", 1, "x"))
    assert other.read_text() == "mine"


def test_the_writer_ends_in_the_last_wish_and_writes_none_that_was_overtaken(tmp_path: Path) -> None:
    file = DraftFile(tmp_path / "d")
    writer = DraftWriter(file, interval=3600)
    first = threading.Event()

    def say(text: str, told: threading.Event | None = None) -> Draft:
        if told is not None:
            told.set()
        return Draft("t", 1, text)

    writer.put(lambda: say("one", first))
    wait_until(first)
    for number in range(100):
        writer.put(lambda number=number: say(f"not this {number}"))  # type: ignore[misc]
    writer.put(lambda: say("last"))
    writer.close()
    assert file.read() == Draft("t", 1, "last")


def test_a_draft_that_is_to_go_goes_at_once(tmp_path: Path) -> None:
    path = tmp_path / "d"
    file = DraftFile(path)
    writer = DraftWriter(file, interval=3600)
    written = threading.Event()

    def draft() -> Draft:
        written.set()
        return Draft("t", 1, "x")

    writer.put(draft)
    wait_until(written)
    writer.put(None)
    limit = time.monotonic() + BOUND
    while path.exists():  # a thread of the writer's own takes it away
        assert time.monotonic() < limit
        time.sleep(0.001)
    writer.close()


def test_a_draft_that_cannot_be_written_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    writer = DraftWriter(DraftFile(tmp_path / "gone" / "d"), interval=0)
    tries = [threading.Event(), threading.Event()]

    def draft(number: int) -> Draft:
        tries[number].set()
        return Draft("t", 1, "x")

    with caplog.at_level(logging.WARNING, "toolrunner"):
        for number in range(2):
            writer.put(lambda number=number: draft(number))  # type: ignore[misc]
            wait_until(tries[number])
        writer.close()
    assert caplog.text.count("a crash would lose the text") == 1


def test_a_disk_that_never_answers_does_not_keep_the_writer_from_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("toolrunner.agent.drafts.CLOSE_WAIT", 0.05)
    writer = DraftWriter(DraftFile(tmp_path / "d"), interval=0)
    begun, answers = threading.Event(), threading.Event()

    def draft() -> Draft:
        begun.set()
        wait_until(answers)
        return Draft("t", 1, "x")

    closing = threading.Thread(target=writer.close)
    try:
        writer.put(draft)
        wait_until(begun)
        closing.start()
        closing.join(5)
        assert not closing.is_alive()
        assert "has not ended" in caplog.text
    finally:
        answers.set()
        closing.join(BOUND)
        writer._thread.join(BOUND)


def log(*more: Record) -> list[Record]:
    return [
        TurnStarted(run_id="t", seq=1),
        StepStarted(run_id="t", seq=2, step=1),
        UserMessage(run_id="t", seq=3, content=(Text("hi"),)),
        RequestSent(run_id="t", seq=4, step=1, provider="anthropic", model="m", upto_seq=3),
        *more,
    ]


def test_a_draft_fits_the_request_that_has_no_answer_and_no_other() -> None:
    draft = Draft("t", 4, "half")
    assert fitting(draft, log()) == Draft("t", 4, "half")
    # What was written meanwhile, of a message that waits say, makes it no other draft.
    later = InboxQueued(run_id="m", seq=5, content=(Text("next"),))
    assert fitting(draft, log(later)) == Draft("t", 5, "half")
    assert fitting(draft, log(TurnEnded(run_id="t", seq=5, outcome="completed"))) is None
    assert fitting(Draft("t", 3, "half"), log()) is None
    assert fitting(Draft("u", 4, "half"), log()) is None
    assert fitting(None, log()) is None


@pytest.mark.anyio
async def test_a_turn_s_draft_is_gone_when_its_end_is_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    session = Session.open(path)
    gate = Gate()
    drafts = path.with_name("j.db.draft")
    async with at_work([*said_chunks("half", closed=False), gate], session=session) as desk:
        with anyio.fail_after(BOUND):
            desk.agent.send("A")
            await gate.reached(1)
            while not drafts.exists():  # noqa: ASYNC110 - a thread writes it
                await anyio.sleep(0.001)
            await desk.agent.cancel().settled()
            while drafts.exists():  # noqa: ASYNC110 - a thread takes it away
                await anyio.sleep(0.001)


@pytest.mark.anyio
async def test_a_journal_opened_as_such_is_read_from_where_its_last_owner_died(tmp_path: Path) -> None:
    """The steps of a crash, without one: a turn that is open, a request without an answer, a draft, and a message that waits."""
    path = tmp_path / "j.db"
    journal = SqliteJournal.open(path)
    journal.append(*log(InboxQueued(run_id="m", content=(Text("next"),))))
    await journal.aclose()
    DraftFile(path.with_name("j.db.draft")).write(Draft("t", 4, "First, apples. Sec"))
    for again in range(2):
        async with at_work("ok", session=Session.open(path)) as desk:
            with anyio.fail_after(BOUND):
                assert [message.text for message in desk.agent.queued] == ["next"]
                if not again:
                    assert [record.type for record in desk.records] == ["assistant/message", "step/end", "turn/end"]
                    assert not path.with_name("j.db.draft").exists()
                    continue
                assert desk.records == []
                desk.agent.wake()
                await desk.agent.wait_idle()
                messages = desk.model.requests[0].messages
        assert [message["role"] for message in messages] == ["user", "assistant", "user"]
        assert messages[1]["content"] == [{"type": "text", "text": "First, apples. Sec"}]
        marker = "[Request interrupted: runner stopped unexpectedly]"
        assert [part["text"] for part in messages[2]["content"]] == [marker, "next"]
