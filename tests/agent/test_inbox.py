"""Inbox and wake latch as state machines: whatever is sent, claimed, cancelled and kept, nothing is lost or said twice."""

from collections.abc import Iterable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from toolrunner.agent.inbox import Inbox, Message, MessageSource, MessageState, Target, content_of, still_queued
from toolrunner.agent.phases import Phase, Phases, Wake
from toolrunner.errors import ConfigError
from toolrunner.facts import AbortReason, Source, Text
from toolrunner.records import InboxCancelled, InboxClaimed, Record

TARGETS: list[Target] = ["next-turn", "next-step"]
SOURCES: list[MessageSource] = ["human", "steer", "host", "note"]


def message_of(number: int, target: Target = "next-turn", source: MessageSource = "human", *, wake: bool = True) -> Message:
    return Message(f"m{number}", (Text(str(number)),), target, wake, source)


class InboxMachine(RuleBasedStateMachine):
    """Every message is in one state, and goes one way; the records alone tell what still waits."""

    def __init__(self) -> None:
        super().__init__()
        self.inbox = Inbox()
        self.sent: list[Message] = []
        self.admitted: set[str] = set()
        self.gone: set[str] = set()
        self.records: list[Record] = []

    @rule(where=st.sampled_from(TARGETS), source=st.sampled_from(SOURCES), wake=st.booleans())
    def send(self, where: Target, source: MessageSource, wake: bool) -> None:
        message = message_of(len(self.sent), where, source, wake=wake)
        self.inbox.queue(message)
        self.sent.append(message)
        self.records.append(message.record())

    @rule(opens=st.booleans())
    def claim(self, opens: bool) -> None:
        before = self.inbox.queued
        taken = self.inbox.claim(opens_turn=opens)
        steps = [one for one in before if one.target == "next-step"]
        turns = [one for one in before if one.target == "next-turn"]
        assert list(taken) == steps + (turns[:1] if opens else [])
        self.records.append(InboxClaimed(run_id="t", message_ids=tuple(one.id for one in taken)))

    @rule()
    def admit(self) -> None:
        self.admitted |= ids(self.inbox.admit())

    @rule()
    def end_turn(self) -> None:
        self.gone |= ids(self.inbox.end_turn())
        assert all(self.inbox.state(message_id) is MessageState.DONE for message_id in self.admitted)

    @rule()
    def drop(self) -> None:
        dropped = self.inbox.drop()
        assert [one.source for one in self.inbox.queued if one.source != "host"] == []
        assert [one.source for one in dropped if one.source == "host"] == []
        self._take_back(dropped)

    @rule(number=st.integers(0, 10))
    def remove(self, number: int) -> None:
        found = self.inbox.remove(f"m{number}")
        if found is not None:
            self._take_back([found])

    def _take_back(self, messages: Iterable[Message]) -> None:
        self.gone |= ids(messages)
        self.records.append(InboxCancelled(run_id="", message_ids=tuple(one.id for one in messages)))

    @invariant()
    def each_message_has_gone_one_way(self) -> None:
        for message in self.sent:
            state = self.inbox.state(message.id)
            waits = state in (MessageState.QUEUED, MessageState.CLAIMED)
            assert [waits, message.id in self.admitted, message.id in self.gone].count(True) == 1
            assert (state is None) == (message.id in self.gone)

    @invariant()
    def the_log_tells_what_waits(self) -> None:
        assert still_queued(self.records) == list(self.inbox.queued)


def ids(messages: Iterable[Message]) -> set[str]:
    return {message.id for message in messages}


class WakeMachine(RuleBasedStateMachine):
    """A driver as the agent has it: it claims when it starts and between turns, and looks at the latch when it has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.phases = Phases(Inbox())
        self.sent = 0
        self.is_parked = False
        """Whether what waits was left there by a stop."""

    @precondition(lambda self: not self.phases.is_disposed)
    @rule(where=st.sampled_from(TARGETS), wake=st.booleans())
    def send(self, where: Target, wake: bool) -> None:
        ending, busy = self.phases.is_ending, self.phases.activity
        message = self.phases.place(message_of(self.sent, where, wake=wake))
        self.sent += 1
        assert message.target == ("next-turn" if ending and wake else where)
        self.phases.inbox.queue(message)
        if not wake:
            return
        said = self.phases.wake(after_abort=ending)
        if busy is None:
            assert said is Wake.START
            self._start()
        else:
            assert said is (Wake.LATCHED if ending or busy.phase is Phase.MAINTENANCE else Wake.TAKEN)

    def _start(self) -> None:
        self.is_parked = False
        self.phases.begin(Phase.RUNNING)
        self.phases.inbox.claim(opens_turn=True)

    @precondition(lambda self: self.phases.activity is None and not self.phases.is_disposed)
    @rule()
    def maintain(self) -> None:
        self.phases.begin(Phase.MAINTENANCE)

    @rule(keeps=st.booleans())
    def cancel(self, keeps: bool) -> None:
        activity = self.phases.activity
        before = activity.reason if activity is not None else None
        dropped = self.phases.cancel(AbortReason(Source.CALLER, f"number {self.sent}"), keep_inbox=keeps)
        assert keeps == (dropped == ()) or not dropped
        if activity is not None:
            assert activity.signal.aborted
            assert before is None or activity.reason == before  # the first cause wins
        if not keeps:
            assert self.phases.inbox.queued == ()
            assert activity is None or not activity.wake_requested

    @precondition(lambda self: self.phases.activity is not None)
    @rule()
    def what_is_under_way_ends(self) -> None:
        activity, inbox = self.phases.activity, self.phases.inbox
        assert activity is not None
        goes_on = activity.phase is Phase.RUNNING and not activity.signal.aborted and inbox.has_work
        if goes_on:
            activity.renew()
            inbox.claim(opens_turn=True)
            return
        was_stopped, latched = activity.signal.aborted, activity.wake_requested
        ended = self.phases.converge()
        assert activity.over.is_set()
        if self.phases.must_start_again(ended):
            assert latched
            self._start()
        else:
            assert not (latched and inbox.queued) or self.phases.is_disposed
            self.is_parked |= was_stopped

    @rule()
    def dispose(self) -> None:
        self.phases.dispose("closed")
        assert self.phases.wake(after_abort=self.phases.is_ending) is Wake.REFUSED

    @invariant()
    def an_idle_agent_has_no_work_that_nobody_parked(self) -> None:
        if self.phases.activity is None and not self.phases.is_disposed:
            assert self.is_parked or not self.phases.inbox.has_work


TestInbox = InboxMachine.TestCase
TestWakes = WakeMachine.TestCase


@pytest.mark.parametrize("said", ["", " \n", [], [Text(" ")]])
def test_a_message_with_nothing_in_it_is_refused(said: object) -> None:
    with pytest.raises(ConfigError, match="a message"):
        content_of(said)  # type: ignore[arg-type]


def test_a_second_message_with_an_id_that_is_known_is_refused() -> None:
    inbox = Inbox([message_of(1)])
    with pytest.raises(ConfigError, match="m1"):
        inbox.queue(message_of(1))
