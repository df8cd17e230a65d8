"""A conversation goes on with another model: calls without ids, arguments that are no JSON, lost signatures."""

import json
from dataclasses import replace

import pytest
from history.logs import asked, call

from toolrunner.history import check
from toolrunner.history.fold import fold
from toolrunner.history.projection import project
from toolrunner.history.repairs.content import SKIP_SIGNATURE
from toolrunner.records import CallBlock
from toolrunner.wire import Provider


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
