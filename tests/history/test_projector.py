"""A log projected while it grows gives what it gives all at once, and what was carried is not written a second time."""

import copy
import random
from typing import Any

import pytest
from history.logs import Log, text
from history.random_logs import random_log
from hypothesis import given, settings
from hypothesis import strategies as st

from toolrunner.history import Projector, Unanswered, compaction, fold, project
from toolrunner.history import projection as module
from toolrunner.records import CompactedItem
from toolrunner.wire import Provider


@settings(max_examples=150)
@given(st.integers(0, 10**9), st.sampled_from(list(Provider)), st.booleans())
def test_it_gives_what_all_records_at_once_give(seed: int, provider: Provider, often: bool) -> None:
    rng = random.Random(seed)  # noqa: S311 - examples, no secrets
    log = random_log(rng, provider)
    projector = Projector(provider)
    handed_out = list[tuple[Any, Any]]()
    for number, record in enumerate(log.records, start=1):
        projector.add(record)
        if often or rng.random() < 0.2:
            history = fold(log.records[:number])
            if history.unanswered:
                with pytest.raises(Unanswered):
                    projector.messages()
                continue
            messages = projector.messages()
            assert messages == project(history, provider)
            handed_out.append((messages, copy.deepcopy(messages)))
    assert all(messages == before for messages, before in handed_out)


@pytest.mark.parametrize("provider", Provider)
def test_after_a_compaction_it_begins_anew(provider: Provider) -> None:
    log, projector = Log(provider), Projector(provider)
    seen = 0
    for number in range(4):
        log.turn(f"U{number}")
        log.send()
        log.reply(text("Done."))
        log.end("completed")
        if number == 2:
            log.add(compaction(log.records, len(log.records), [CompactedItem("s")], "test"))
        for record in log.records[seen:]:
            projector.add(record)
        seen = len(log.records)
        assert projector.messages() == project(fold(log.records), provider)


@pytest.mark.parametrize("provider", Provider)
def test_what_was_carried_is_written_once(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    written = 0
    real = module.entry_messages

    def counting(*args: Any) -> Any:
        nonlocal written
        written += 1
        return real(*args)

    monkeypatch.setattr(module, "entry_messages", counting)
    log, projector = Log(provider), Projector(provider)
    turns, seen = 60, 0
    for number in range(turns):
        log.turn(f"U{number}")
        for record in log.records[seen:]:
            projector.add(record)
        seen = len(log.records)
        projector.messages()
        log.send()
        log.reply(text("Done."))
        log.end("completed")
    # Each entry is written while it is new, and once more when it is kept.
    assert written <= 3 * 2 * turns
