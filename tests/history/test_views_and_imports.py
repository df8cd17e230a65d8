"""What people see of a log, and histories that come from elsewhere."""

import copy
import json
import random
from typing import Any

import pytest
from history.logs import Log, call, text, thought
from history.random_logs import random_log
from history.samples import WHOLE
from history.windows import ROWS, window
from hypothesis import given, settings
from hypothesis import strategies as st

from toolrunner.facts import Image, Text
from toolrunner.history import InterruptReason, check
from toolrunner.history.entries import Marked, Replied, Said
from toolrunner.history.fold import fold
from toolrunner.history.importing import read_messages
from toolrunner.history.projection import Unanswered, project
from toolrunner.history.views import ChatKind, RequestState, chat, trajectory
from toolrunner.records import CallBlock, TextBlock
from toolrunner.wire import Provider

SEEDS = st.integers(0, 10**9)
PROVIDERS = st.sampled_from(list(Provider))


def next_request(seed: int, provider: Provider) -> list[Any]:
    log = random_log(random.Random(seed), provider)  # noqa: S311 - examples, no secrets
    log.turn("and now?")
    return project(fold(log.records), provider)


# --- chat ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("marker", ["user", "off"])
@pytest.mark.parametrize("row", ROWS)
def test_a_chat_shows_that_it_was_stopped_whatever_the_model_is_told(row: int, marker: str) -> None:
    items = chat(window(row, Provider.ANTHROPIC, "omit", marker).records)
    stopped = [item for item in items if item.kind is ChatKind.STOPPED]
    assert len(stopped) == {16: 0, 17: 2}.get(row, 1)
    reason = InterruptReason.CRASH if row >= 18 else InterruptReason.USER
    assert all(item.reason is reason for item in stopped)
    assert items[-1].text == "U'"


def test_a_chat_shows_what_requests_leave_out() -> None:
    log = window(2, Provider.ANTHROPIC, "omit", "user")
    (shown,) = [item for item in chat(log.records) if item.kind is ChatKind.THOUGHT]
    assert shown.text == "two files"
    assert shown.interrupted
    assert "two files" not in json.dumps(project(fold(log.records), "anthropic"))


def test_a_text_that_was_cut_off_is_told_from_one_that_was_complete() -> None:
    log = Log()
    log.turn("U")
    log.send()
    log.reply(text("One."), text("Tw", closed=False), call(1, log.provider, closed=False), interrupted=True)
    log.end()
    said = [(item.text, item.interrupted) for item in chat(log.records) if item.kind is ChatKind.ASSISTANT]
    assert said == [("One.", False), ("Tw", True)]
    assert not any(item.kind is ChatKind.CALL for item in chat(log.records))


def test_the_hosts_words_are_a_system_line() -> None:
    log = Log()
    log.turn("U")
    log.say("the build is done", "host")
    log.say("[Request interrupted by user; `shell` may have already started]")
    log.say("[Request interrupted by me]")
    assert [item.kind for item in chat(log.records)] == [ChatKind.USER, ChatKind.SYSTEM, ChatKind.SYSTEM, ChatKind.USER]


# --- trajectory ----------------------------------------------------------------------------------------------------------------


def test_an_interrupted_request_stays_in_error_with_its_record_and_route() -> None:
    log = Log()
    log.turn("U")
    log.send()
    log.reply(text("Firs", closed=False), interrupted=True)
    message = len(log.records)
    (before,) = trajectory(log.records)
    log.step_end()
    log.end()
    (after,) = trajectory(log.records)
    assert before == after
    assert (after.state, after.cause, after.result_seq) == (RequestState.ERROR, "interrupted", message)
    assert (after.provider, after.model, after.step) == ("anthropic", "claude", 1)
    assert after.blocks == (TextBlock("Firs", closed=False),)


def test_every_request_is_told_also_one_that_nobody_saw_the_end_of() -> None:
    log = Log()
    log.turn("U")
    log.send()
    log.attempt("error")
    log.send()
    log.reply(thought(), text("Done."))
    log.send()
    states = [(view.state, view.cause) for view in trajectory(log.records)]
    assert states == [(RequestState.ERROR, "error"), (RequestState.COMPLETED, ""), (RequestState.RUNNING, "")]
    log.close()
    assert trajectory(log.records)[-1].cause == "lost"
    assert all(view.result_seq is not None for view in trajectory(log.records))


# --- importing -----------------------------------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(SEEDS, PROVIDERS)
def test_what_was_written_is_read_as_what_it_was(seed: int, provider: Provider) -> None:
    messages = next_request(seed, provider)
    before = copy.deepcopy(messages)
    assert project(read_messages(messages, provider), provider) == before
    assert messages == before


@settings(max_examples=150)
@given(SEEDS, PROVIDERS, PROVIDERS)
def test_a_conversation_held_elsewhere_can_go_on_with_any_provider(seed: int, made_by: Provider, asked: Provider) -> None:
    messages = next_request(seed, made_by)
    assert check(project(read_messages(messages, made_by), asked), asked) == []


@pytest.mark.parametrize("asked", Provider)
@pytest.mark.parametrize("made_by", Provider)
@pytest.mark.case("H9")
def test_who_said_what_survives_every_way(made_by: Provider, asked: Provider) -> None:
    history = read_messages(WHOLE[made_by](), made_by)
    assert [type(entry) for entry in history.entries] == [Said, Replied, Replied, Said]
    (first, second) = history.replies()
    assert [(one.name, json.loads(one.arguments)) for one in first.calls] == [("read", {"path": "a"}), ("read", {"path": "b"})]
    assert [answer.content for answer in first.answers if answer] == [(Text("A"),), (Text("B"),)]
    assert [block.text for block in second.blocks if isinstance(block, TextBlock)] == ["Done."]
    sent = project(history, asked)
    assert check(sent, asked) == []
    again = read_messages(sent, asked)
    assert [type(entry) for entry in again.entries] == [Said, Replied, Replied, Said]
    assert json.dumps(sent).index("read both") < json.dumps(sent).index("thanks")


@pytest.mark.parametrize("provider", Provider)
def test_markers_are_read_as_markers_and_media_as_media(provider: Provider) -> None:
    log = Log(provider)
    log.turn("U")
    log.end()
    log.turn("V")
    history = read_messages(project(fold(log.records), provider), provider)
    assert [type(entry) for entry in history.entries] == [Said, Marked, Said]
    image = Image("iVBORw0KGgo=", "image/png")
    said = Said((Text("look"), image))
    again = read_messages(project(type(history)((said,)), provider), provider)
    (entry,) = again.entries
    assert isinstance(entry, Said)
    assert entry.content == (Text("look"), image)


@pytest.mark.parametrize("provider", Provider)
def test_a_call_without_a_result_is_read_as_one_that_waits(provider: Provider) -> None:
    whole = WHOLE[provider]()
    opened = whole[: {Provider.OPENAI_CHAT: 3, Provider.OPENAI_RESPONSES: 4, Provider.GEMINI_INTERACTIONS: 4}.get(provider, 2)]
    history = read_messages(opened, provider)
    assert [call.call_id for call in history.unanswered] == ["t1", "t2"]
    assert all(isinstance(call, CallBlock) for call in history.unanswered)
    with pytest.raises(Unanswered):
        project(history, provider)
