"""Whatever a log says, its history only grows, answers each call once, and is accepted by every provider."""

import copy
import json
import random
from dataclasses import replace
from typing import Any

import pytest
from history.logs import AT, Log, call, random_log, result, text, thought
from hypothesis import given, settings
from hypothesis import strategies as st

from toolrunner.errors import ConfigError
from toolrunner.facts import Text
from toolrunner.history import check, repair
from toolrunner.history.atoms import take_apart
from toolrunner.history.closing import OpenTurn, closing_records, compaction, fork, safe_cut_points
from toolrunner.history.drafts import Draft
from toolrunner.history.entries import Noted, Replied
from toolrunner.history.fold import Fold, fold
from toolrunner.history.pairing import paired
from toolrunner.history.projection import Unanswered, project
from toolrunner.history.repairs.content import SKIP_SIGNATURE
from toolrunner.history.rules.view import viewed
from toolrunner.history.shapes import shape_of
from toolrunner.markers import is_compacted_note
from toolrunner.records import CallBlock, CallRecorded, CallSettled, CompactedItem, Record, RequestSent, TextBlock, TurnEnded
from toolrunner.wire import Provider

SEEDS = st.integers(0, 10**9)
PROVIDERS = st.sampled_from(list(Provider))
CUT = st.sampled_from(["omit", "answer"])
MARKER = st.sampled_from(["user", "off"])
C1 = CallBlock("read", "{}", "c1")


def blocks_of(messages: list[Any], provider: Provider) -> list[tuple[str, Any]]:
    """Block by block, whatever message each is in."""
    return [(atom.side, atom.item) for atom in take_apart(shape_of(provider), messages)]


def log_of(seed: int, provider: Provider, cut_calls: str = "omit", marker: str = "user") -> Log:
    return random_log(random.Random(seed), provider, cut_calls, marker)  # noqa: S311 - examples, no secrets


def next_turn(log: Log) -> list[Record]:
    copied = Log(log.provider, log.cut_calls, log.marker, list(log.records))
    copied.turn("and now?")
    return copied.records


@settings(max_examples=300)
@given(SEEDS, PROVIDERS, CUT, MARKER)
def test_what_was_sent_stays_the_beginning_of_all_that_is_sent(seed: int, provider: Provider, cut: str, marker: str) -> None:
    records = next_turn(log_of(seed, provider, cut, marker))
    last = blocks_of(project(fold(records), provider), provider)
    for number, record in enumerate(records):
        if isinstance(record, RequestSent):
            sent = blocks_of(project(fold(records[:number]), provider), provider)
            assert last[: len(sent)] == sent


@settings(max_examples=300)
@given(SEEDS, PROVIDERS, CUT, MARKER)
def test_the_history_of_any_log_breaks_no_rule_of_its_provider(seed: int, provider: Provider, cut: str, marker: str) -> None:
    messages = project(fold(next_turn(log_of(seed, provider, cut, marker))), provider)
    assert check(messages, provider) == []


@settings(max_examples=200)
@given(SEEDS, PROVIDERS, PROVIDERS, CUT)
def test_a_conversation_can_go_on_with_any_other_provider(seed: int, made_by: Provider, asked: Provider, cut: str) -> None:
    messages = project(fold(next_turn(log_of(seed, made_by, cut))), asked)
    assert check(messages, asked) == []
    if made_by is not asked:
        assert "c2ln" not in json.dumps(messages), "somebody else's signature was sent"
        assert "ZW5j" not in json.dumps(messages)


@settings(max_examples=150)
@given(SEEDS, PROVIDERS, CUT)
def test_another_model_of_the_same_provider_gets_nothing_that_was_sealed(seed: int, provider: Provider, cut: str) -> None:
    messages = project(fold(next_turn(log_of(seed, provider, cut))), provider, "another")
    assert check(messages, provider) == []
    said = json.dumps(messages)
    assert not any(sealed in said for sealed in ('"c2ln"', '"ZW5j"', '"c2VhbGVk"', '"rs_1"'))


@settings(max_examples=200)
@given(SEEDS, PROVIDERS, CUT)
@pytest.mark.case("H17", "H18", "H20", "H21")
def test_each_call_has_exactly_one_answer(seed: int, provider: Provider, cut: str) -> None:
    messages = project(fold(next_turn(log_of(seed, provider, cut))), provider)
    view = viewed(shape_of(provider), messages)
    calls = [atom for atom in view.atoms if atom.kind == "call"]
    results = [atom for atom in view.atoms if atom.kind == "result"]
    pairing = paired(view.shape, view.groups)
    assert len(pairing.answers) == len(calls) == len(results)
    assert set(pairing.answers.values()) == set(results)


@given(SEEDS, PROVIDERS)
def test_taking_records_one_by_one_tells_the_same_as_all_at_once(seed: int, provider: Provider) -> None:
    records = log_of(seed, provider).records
    state = Fold()
    for number, record in enumerate(records, start=1):
        state.add(record)
        assert state.history() == fold(records[:number])


@settings(max_examples=200)
@given(SEEDS, PROVIDERS, CUT, st.data())
@pytest.mark.case("R2", "R3", "R4", "R6", "H42")
def test_a_log_that_is_cut_anywhere_is_closed_once(seed: int, provider: Provider, cut: str, data: st.DataObject) -> None:
    records = log_of(seed, provider, cut).records
    records = records[: data.draw(st.integers(0, len(records)))]
    added = closing_records(records)
    whole = [*records, *added]
    assert closing_records(whole) == []
    assert fold(whole).unanswered == ()
    assert fold(whole).open_turn is None
    assert [record.seq for record in whole] == list(range(1, len(whole) + 1))
    # The rest of a repair that was itself killed half-way comes to the same history.
    kept = data.draw(st.integers(0, len(added)))
    half = [*records, *added[:kept]]
    again = [*half, *closing_records(half)]
    assert fold(again) == fold(whole)


@given(SEEDS, PROVIDERS)
def test_a_closed_log_is_left_alone(seed: int, provider: Provider) -> None:
    assert closing_records(log_of(seed, provider).records) == []
    assert closing_records([]) == []


@settings(max_examples=200)
@given(SEEDS, PROVIDERS, st.data())
@pytest.mark.case("H8", "H10", "H13", "H14", "H15", "H38", "H41")
def test_a_history_that_somebody_mangled_is_mended_and_stays_mended(seed: int, provider: Provider, data: st.DataObject) -> None:
    messages = project(fold(next_turn(log_of(seed, provider, "answer"))), provider)
    mangled = mangle(copy.deepcopy(messages), data)
    before = copy.deepcopy(mangled)
    repairs = repair(mangled, provider)
    assert check(mangled, provider) == []
    assert repair(mangled, provider) == []
    if not repairs:
        assert mangled == before


def mangle(messages: list[Any], data: st.DataObject) -> list[Any]:
    for _ in range(data.draw(st.integers(1, 3))):
        lists = [
            messages,
            *(message[key] for message in messages for key in ("content", "parts", "tool_calls") if _is_list(message, key)),
        ]
        place = data.draw(st.sampled_from(lists))
        if not place:
            continue
        number = data.draw(st.integers(0, len(place) - 1))
        match data.draw(st.sampled_from(["drop", "twice", "swap"])):
            case "drop":
                del place[number]
            case "twice":
                place.insert(number, copy.deepcopy(place[number]))
            case _:
                place.append(place.pop(number))
    return messages


def _is_list(message: Any, key: str) -> bool:
    return isinstance(message.get(key), list)


# --- single facts --------------------------------------------------------------------------------------------------------------


def asked(provider: Provider = Provider.ANTHROPIC, cut_calls: Any = "omit") -> Log:
    log = Log(provider, cut_calls)
    log.turn("U")
    log.send()
    return log


@pytest.mark.case("H11")
def test_a_request_with_an_open_call_is_refused() -> None:
    log = asked()
    log.reply(C1)
    with pytest.raises(Unanswered, match="1 calls have no result yet: read"):
        project(fold(log.records), "anthropic")
    log.call(C1, "returned", "R")
    assert check(project(fold(log.records), "anthropic"), "anthropic") == []


@pytest.mark.case("H20", "H21")
def test_of_two_calls_with_one_id_the_first_is_the_call() -> None:
    log = asked()
    log.reply(C1, replace(C1, name="write"))
    log.call(C1, "returned", "R")
    (reply,) = fold(log.records).replies()
    assert [one.name for one in reply.calls] == ["read"]


def test_an_id_that_comes_again_is_another_one_in_requests() -> None:
    log = asked()
    log.reply(C1)
    log.call(C1, "returned", "first")
    log.step_end()
    log.send()
    log.reply(C1)
    log.call(C1, "returned", "second")
    replies = list(fold(log.records).replies())
    assert [one.call_id for reply in replies for one in reply.calls] == ["c1", "c1_2"]
    assert [answer.call_id for reply in replies for answer in reply.answers if answer] == ["c1", "c1_2"]
    assert [answer.content for reply in replies for answer in reply.answers if answer] == [(Text("first"),), (Text("second"),)]


def test_a_second_result_is_counted_and_not_used() -> None:
    log = asked()
    log.reply(C1)
    run_id = log.call(C1, "returned", "R")
    log.settled(result(run_id, "read", "failed", "c1", "other"))
    history = fold(log.records)
    assert history.surplus == 1
    (reply,) = history.replies()
    assert reply.answers[0] is not None
    assert reply.answers[0].content == (Text("R"),)


def test_calls_that_a_call_made_are_no_part_of_the_conversation() -> None:
    log = asked()
    log.reply(C1)
    run_id = log.recorded(C1)
    inner = log.records[-1]
    assert isinstance(inner, CallRecorded)
    log.records[-1] = replace(inner, parent_run_id="outer")
    log.settled(result(run_id, "read", "returned", "c1", "inner"))
    assert [one.name for one in fold(log.records).unanswered] == ["read"]


def test_an_end_without_its_settlement_answers_when_the_turn_is_over() -> None:
    log = asked()
    log.reply(C1)
    run_id = log.recorded(C1)
    log.dispatched(run_id, C1)
    log.ended(result(run_id, "read", "returned", "c1", "R"))
    assert fold(log.records).unanswered
    log.end()
    (reply,) = fold(log.records).replies()
    assert reply.answers[0] is not None
    assert reply.answers[0].content == (Text("R"),)


@pytest.mark.case("C22", "C23")
def test_failed_attempts_never_join_the_history() -> None:
    log = asked()
    log.attempt("error")
    log.send()
    log.reply(text("Done."))
    log.step_end()
    log.end("completed")
    assert len(list(fold(log.records).replies())) == 1


def test_what_the_host_says_while_a_request_is_under_way_comes_behind_the_reply() -> None:
    log = asked()
    log.say("the build is done", "host")
    log.reply(text("Done."))
    kinds = [type(entry).__name__ for entry in fold(log.records).entries]
    assert kinds == ["Said", "Replied", "Said"]


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


def test_a_call_of_another_providers_model_gets_an_id_where_one_is_needed() -> None:
    log = asked(Provider.GEMINI)
    twin = CallBlock("read", "{}", None)
    log.reply(twin, replace(twin))
    log.call(twin, "returned", "A")
    log.call(twin, "returned", "B")
    log.step_end()
    log.end("completed")
    log.turn("V")
    for provider in Provider:
        messages = project(fold(log.records), provider)
        assert check(messages, provider) == []
        said = json.dumps(messages)
        assert said.index('"A"') < said.index('"B"')
    assert project(fold(log.records), "gemini") == project(fold(log.records), "gemini")


def test_arguments_that_are_no_json_are_sent_in_the_form_each_provider_takes() -> None:
    for provider in Provider:
        log = asked(provider)
        broken = replace(call(1, provider), arguments='{"path": "a" oops')
        log.reply(broken)
        log.call(broken, "failed")
        log.step_end()
        log.end()
        log.turn("V")
        assert check(project(fold(log.records), provider), provider) == []


def test_a_request_that_is_sent_anew_has_carried_what_came_meanwhile() -> None:
    log = asked()
    log.say("the build is done", "host")
    log.send()  # nobody wrote how the first one failed
    sent = blocks_of(project(fold(log.records[:-1]), "anthropic"), Provider.ANTHROPIC)
    log.reply(text("Done."))
    assert [type(entry).__name__ for entry in fold(log.records).entries] == ["Said", "Said", "Replied"]
    assert blocks_of(project(fold(log.records), "anthropic"), Provider.ANTHROPIC)[: len(sent)] == sent


@pytest.mark.parametrize(
    "made_by, asked_model, signature",
    [
        (Provider.GEMINI, None, "c2ln"),
        (Provider.GEMINI, "gemini-3-pro", "c2ln"),
        (Provider.GEMINI, "gemini-3-flash", SKIP_SIGNATURE),
        (Provider.ANTHROPIC, None, SKIP_SIGNATURE),
        (Provider.ANTHROPIC, "gemini-3-pro", SKIP_SIGNATURE),
        (Provider.ANTHROPIC, "gemini-2.5-flash", None),
    ],
)
@pytest.mark.case("GM7")
def test_a_signature_goes_to_the_model_that_made_it_and_a_constant_says_that_one_is_lost(
    made_by: Provider, asked_model: str | None, signature: str | None
) -> None:
    log = asked(made_by)
    calls = (call(1, made_by), call(2, made_by))
    log.reply(*calls)
    for one in calls:
        log.call(one, "returned", "R")
    messages = project(fold(log.records), "gemini", asked_model)
    first, second = (part for part in messages[1]["parts"] if "functionCall" in part)
    assert first.get("thoughtSignature") == signature
    assert "thoughtSignature" not in second
