"""A conversation in `toolrunner log`: lines that say who did what, harmlessly, and on one line each."""

from typing import Any

import pytest

from toolrunner import records
from toolrunner.cli.views.listing import plain_line, styled_line
from toolrunner.facts import Image, Text
from toolrunner.journal import RawRecord

MODEL: dict[str, Any] = {"provider": "anthropic", "model": "claude", "step": 1}
SAID = (Text("Hello\nthere \x1b[31m"), Image("AAAA", "image/png"))
ANSWER = (
    records.ReasoningBlock("hm"),
    records.TextBlock("I look."),
    records.CallBlock("shell", "{}", call_id="c1"),
    records.CallBlock("shell", "{", closed=False),
    records.UnknownBlock({"type": "web_search"}),
)
CONVERSATION: tuple[tuple[Any, str], ...] = (
    (records.InboxQueued(run_id="m1", content=SAID), "inbox  queued  for the next turn: Hello there \\x1b[31m [image]"),
    (records.InboxClaimed(run_id="t1", message_ids=("m1",)), "inbox  claimed  1 message"),
    (
        records.InboxCancelled(run_id="t1", message_ids=("m1", "m2"), reason="never mind"),
        "inbox  taken back  2 messages: never mind",
    ),
    (records.TurnStarted(run_id="t1"), "turn  begins"),
    (records.UserMessage(run_id="t1", content=SAID), "user  says  Hello there \\x1b[31m [image]"),
    (records.UserMessage(run_id="t1", content=(Text("no"),), source="steer"), "user, meanwhile  says  no"),
    (records.StepStarted(run_id="t1", step=2), "step 2  begins"),
    (records.RequestSent(run_id="t1", upto_seq=4, **MODEL), "step 1  asks  anthropic claude"),
    (
        records.AssistantMessage(run_id="t1", blocks=ANSWER, interrupted=True, **MODEL),
        "model  answers  [thoughts]; I look.; calls shell (c1); calls shell, cut off; [web_search]; stopped here",
    ),
    (
        records.AssistantAttempt(run_id="t1", cause="error", text="HTTP\n529", **MODEL),
        "model  breaks off  the request failed; HTTP 529",
    ),
    (records.StepEnded(run_id="t1", step=2), "step 2  ends"),
    (records.TurnEnded(run_id="t1", outcome="completed"), "turn  ends  completed"),
    (records.TurnEnded(run_id="t1", outcome="aborted", source="caller", reason="Esc"), "turn  ends  aborted by caller: Esc"),
    (records.TurnEnded(run_id="t1", outcome="interrupted"), "turn  ends  interrupted: its program died"),
    (
        records.HistoryCompacted(run_id="t1", through_seq=9, items=(records.CompactedItem("In short: no."),), by="model"),
        "history  compacted  everything up to record 9, by model: In short: no.",
    ),
)


@pytest.mark.parametrize("record, words", CONVERSATION, ids=lambda value: getattr(value, "type", ""))
def test_a_record_of_a_conversation_says_who_did_what(record: Any, words: str) -> None:
    line = plain_line(record, "")
    assert line.split("  ", 2)[1:] == [record.run_id, words]
    assert styled_line(record, "").plain.split("  ", 1)[1] == f"{record.run_id}  {words}"


def test_every_record_of_a_conversation_is_among_them() -> None:
    kinds = {
        name for name in dir(records) if name.startswith(("Turn", "User", "Step", "Request", "Assistant", "History", "Inbox"))
    }
    assert {type(record).__name__ for record, _ in CONVERSATION} == kinds


def test_a_record_that_cannot_be_read_has_the_columns_of_the_others() -> None:
    later = RawRecord(seq=1, type="dream/dreamt", run_id="d1", v=7, content="{}", problem="of a later version")
    assert plain_line(later, "") == "-  d1  -  dreamt"
    assert (
        plain_line(RawRecord(seq=1, type="turn/start", run_id="t1", v=7, content="{}", problem="later"), "")
        == "-  t1  turn  begins"
    )
