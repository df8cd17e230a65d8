"""What single records mean for the history: which call an answer belongs to, what counts and what does not."""

from dataclasses import replace

import pytest
from history.logs import C1, asked, result, text

from toolrunner.facts import Text
from toolrunner.history import check
from toolrunner.history.fold import fold
from toolrunner.history.projection import Unanswered, project
from toolrunner.records import CallRecorded


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
