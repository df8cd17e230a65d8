"""Whatever a log says, its history only grows, answers each call once, and is accepted by every provider."""

import copy
import json
import random
from typing import Any

import pytest
from history.logs import Log, asked, text
from history.random_logs import random_log
from hypothesis import given, settings
from hypothesis import strategies as st

from toolrunner.history import check, repair
from toolrunner.history.atoms import take_apart
from toolrunner.history.closing import closing_records
from toolrunner.history.fold import Fold, fold
from toolrunner.history.pairing import paired
from toolrunner.history.projection import project
from toolrunner.history.rules.view import viewed
from toolrunner.history.shapes import shape_of
from toolrunner.records import Record, RequestSent
from toolrunner.wire import Provider

SEEDS = st.integers(0, 10**9)
PROVIDERS = st.sampled_from(list(Provider))
CUT = st.sampled_from(["omit", "answer"])
MARKER = st.sampled_from(["user", "off"])


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


def test_a_request_that_is_sent_anew_has_carried_what_came_meanwhile() -> None:
    log = asked()
    log.say("the build is done", "host")
    log.send()  # nobody wrote how the first one failed
    sent = blocks_of(project(fold(log.records[:-1]), "anthropic"), Provider.ANTHROPIC)
    log.reply(text("Done."))
    assert [type(entry).__name__ for entry in fold(log.records).entries] == ["Said", "Said", "Replied"]
    assert blocks_of(project(fold(log.records), "anthropic"), Provider.ANTHROPIC)[: len(sent)] == sent
