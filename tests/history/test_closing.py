"""Logs that a crash has cut are closed, forked where a turn is over, and compacted where one ends."""

import json
from dataclasses import replace

import pytest
from history.logs import AT, C1, Log, asked, result, text, thought

from toolrunner.errors import ConfigError
from toolrunner.history import check
from toolrunner.history.closing import OpenTurn, compaction, fork, safe_cut_points
from toolrunner.history.drafts import Draft
from toolrunner.history.entries import Noted, Replied
from toolrunner.history.fold import fold
from toolrunner.history.projection import project
from toolrunner.markers import is_compacted_note
from toolrunner.records import CallSettled, CompactedItem, TextBlock, TurnEnded
from toolrunner.wire import Provider


@pytest.mark.case("R5")
def test_a_dispatched_call_is_closed_as_lost_and_one_that_was_not_as_not_started() -> None:
    log = asked()
    second = replace(C1, call_id="c2")
    log.reply(C1, second)
    log.dispatched(log.recorded(C1), C1)
    added = log.close()
    assert [record.type for record in added] == ["call/settled", "call/recorded", "call/settled", "step/end", "turn/end"]
    told = [record.result.code for record in added if isinstance(record, CallSettled)]
    assert told == ["LOST", "ABORTED_BEFORE_DISPATCH"]
    assert all(record.at == AT for record in added)
    assert isinstance(added[-1], TurnEnded)
    assert (added[-1].outcome, added[-1].interrupt) == ("interrupted", "crash")


@pytest.mark.case("R7")
def test_open_calls_are_closed_in_the_order_of_the_log() -> None:
    log = asked()
    calls = [replace(C1, call_id=f"c{number}") for number in range(5)]
    log.reply(*calls)
    told = [record.result.call_id for record in log.close() if isinstance(record, CallSettled)]
    assert told == [one.call_id for one in calls]


@pytest.mark.case("R8")
def test_stray_records_of_calls_are_passed_over() -> None:
    log = asked()
    run_id = log.recorded(replace(C1, call_id="nobody's"))
    log.dispatched(run_id, C1)
    log.settled(result("unheard of", "read", "returned"))
    assert [record.type for record in log.close()] == ["step/end", "turn/end"]


@pytest.mark.parametrize("base, kept", [(0, True), (-1, False), (1, False)])
def test_a_draft_gives_its_text_only_where_the_log_ends(base: int, kept: bool) -> None:
    log = asked()
    log.close(Draft(log.turn_id, len(log.records) + base, "Firs"))
    blocks = [block for reply in fold(log.records).replies() for block in reply.blocks]
    assert blocks == ([TextBlock("Firs", closed=False)] if kept else [])


def test_a_draft_of_another_turn_or_of_no_request_gives_nothing() -> None:
    for log, draft in ((asked(), Draft("other", 4, "Firs")), (asked(), Draft("turn1", 4, " \n"))):
        assert len(log.records) == 4
        assert "assistant/message" not in [record.type for record in log.close(draft)]
    unasked = Log()
    unasked.turn("U")
    assert "assistant/message" not in [record.type for record in unasked.close(Draft("turn1", 2, "Firs"))]


def test_a_log_is_forked_at_a_turn_that_is_over_and_at_no_other() -> None:
    log = asked()
    log.reply(text("Firs", closed=False), interrupted=True)
    log.end()
    end = len(log.records)
    log.turn("V")
    forked = fork(log.records, "turn1")
    assert forked == log.records[:end]
    assert "Firs" in json.dumps(project(fold(forked), "anthropic"))
    for turn_id in ("turn2", "turn9"):
        with pytest.raises(OpenTurn, match=f"{turn_id}.*turns that are over: turn1"):
            fork(log.records, turn_id)


@pytest.mark.case("H15")
def test_a_history_is_cut_only_where_a_turn_ends_and_what_is_in_doubt_is_told_again() -> None:
    log = asked()
    log.reply(thought(), text("T"), C1, replace(C1, call_id="c2", name="look"))
    log.call(C1, "stopped")
    log.call(replace(C1, call_id="c2", name="look"), "returned")
    log.end()
    points = safe_cut_points(log.records)
    assert points == [len(log.records)]
    with pytest.raises(ConfigError, match=f"the end of a turn: {points[0]}"):
        compaction(log.records, points[0] - 1, [CompactedItem("s")], "test")
    with pytest.raises(ConfigError, match="at least one text"):
        compaction(log.records, points[0], [CompactedItem(" ")], "test")
    with pytest.raises(ConfigError, match="begins with the user"):
        compaction(log.records, points[0], [CompactedItem("s", "assistant")], "test")
    items = [CompactedItem("what happened so far"), CompactedItem("understood", "assistant")]
    log.add(compaction(log.records, points[0], items, "test"))
    log.turn("V")
    entries = fold(log.records).entries
    assert [type(entry).__name__ for entry in entries] == ["Summary", "Summary", "Noted", "Said"]
    assert isinstance(entries[2], Noted)
    assert is_compacted_note(entries[2].text)
    assert "`read`;" in entries[2].text
    for provider in Provider:
        assert check(project(fold(log.records), provider), provider) == []


def test_an_end_that_comes_after_a_compaction_is_a_note() -> None:
    log = asked()
    log.reply(C1)
    run_id = log.call(C1, "running")
    log.end()
    log.add(compaction(log.records, len(log.records), [CompactedItem("s")], "test"))
    log.ended(result(run_id, "read", "late", "c1"))
    assert not any(isinstance(entry, Replied) for entry in fold(log.records).entries)
    assert "Late result" in repr(fold(log.records).entries[-1])
