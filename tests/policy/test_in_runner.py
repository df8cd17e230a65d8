"""A policy in a Runner: what it is shown of a call, what it leaves in the journal, what answers are worth under it."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from toolrunner import Command, Decision, MemoryJournal, Runner, ToolCall, ask, command_tool, tool
from toolrunner.policy import Policy, Remember, Rule, Verdict, remember
from toolrunner.records import CallAnswered, CallAsked, CallDecided

pytestmark = pytest.mark.anyio
ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY


@tool(read_only=True)
async def look(path: str = "/etc") -> str:
    """Look."""
    return path


@command_tool()
def act(word: str) -> Command:
    """Act."""
    return Command(["echo", word])


class Yes:
    """Allows whatever it is asked, for the session."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def decide(self, request: Any, signal: Any) -> Decision | None:
        self.asked.append(request)
        return Decision.allow("session")


def kinds(journal: MemoryJournal, kind: type) -> list[Any]:
    return [record for record in journal if isinstance(record, kind)]


async def test_every_decision_is_journalled_with_the_rule_that_made_it() -> None:
    journal = MemoryJournal()
    policy = Policy([Rule(DENY, paths=["/etc/**"], name="the machine's", text="Not here."), Rule(ALLOW, ["look"])], name="house")
    async with Runner([look], policy=policy, journal=journal) as runner:
        denied = await runner.run("look", {"path": "/usr/../etc/x"})
        allowed = await runner.run("look", {"path": "/usr"})
    assert (denied.outcome, denied.started, allowed.outcome) == ("denied", False, "succeeded")
    assert denied.error is not None
    assert denied.error.message == "Not here."
    assert [(one.decision, one.by) for one in kinds(journal, CallDecided)] == [
        ("deny", "house: the machine's"),
        ("allow", "house: allow look"),
    ]


async def test_a_default_is_judged_like_an_argument() -> None:
    policy = Policy([Rule(DENY, paths=["/etc/**"]), Rule(ALLOW, ["look"])])
    async with Runner([look], policy=policy) as runner:
        assert (await runner.run("look", {})).outcome == "denied"


async def test_a_command_is_judged_by_what_would_be_run() -> None:
    policy = Policy([Rule(DENY, commands=["echo secret"]), Rule(ALLOW, ["act"])])
    async with Runner([act], policy=policy) as runner:
        assert (await runner.run("act", {"word": "secret"})).outcome == "denied"


async def test_what_is_allowed_in_a_sandbox_is_not_allowed_in_this_process() -> None:
    policy = Policy([Rule(ALLOW, profiles=["workspace-write"])], default=DENY, profile="workspace-write")
    async with Runner([look], policy=policy) as runner:
        assert (await runner.run("look", {"path": "x"})).outcome == "denied"


@pytest.mark.case("A12")
async def test_where_nobody_is_asked_no_approver_is_consulted_not_even_by_a_hook() -> None:
    approver, journal = Yes(), MemoryJournal()
    policy = Policy([Rule(ALLOW, ["look"])], asks=False)
    async with Runner([look, act], policy=policy, approver=approver, journal=journal) as runner:
        silent = await runner.run("act", {"word": "x"})
        runner.pre_execute(hook)
        asked = await runner.run("look", {})
    assert [silent.outcome, asked.outcome, approver.asked] == ["denied", "denied", []]
    assert silent.error is not None
    assert "nobody is asked" in silent.error.message
    assert kinds(journal, CallAsked) == []


async def hook(call: ToolCall, signal: Any) -> Any:
    return ask("Really?")


@pytest.mark.parametrize("remembers, questions", [(Remember.NO, 2), (Remember.SESSION, 1), (Remember.USER, 1)])
async def test_an_answer_lasts_no_longer_than_the_policy_lets_it(
    remembers: Remember, questions: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    approver = Yes()
    async with Runner([look], policy=Policy([], remember=remembers), approver=approver) as runner:
        for _ in range(2):
            assert (await runner.run("look", {"path": "a"})).outcome == "succeeded"
        await runner.run("look", {"path": "b"})
    assert len(approver.asked) == questions + 1


async def test_what_the_user_allowed_for_good_is_not_asked_again_unless_it_is_denied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    approver, journal = Yes(), MemoryJournal()
    policy = Policy([], remember=Remember.USER)
    async with Runner([look], policy=policy, approver=approver) as runner:
        await runner.run("look", {"path": "a"})
    remember(approver.asked[0].digest, "look", {"path": "a"})
    async with Runner([look], policy=policy, journal=journal) as runner:
        kept, other = await runner.run("look", {"path": "a"}), await runner.run("look", {"path": "b"})
    assert (kept.outcome, other.outcome) == ("succeeded", "denied")
    assert [one.by for one in kinds(journal, CallDecided)] == [
        "policy: no rule matches",
        "remembered answer",
        "policy: no rule matches",
    ]
    async with Runner([look], policy=Policy([Rule(DENY, ["look"])], remember=Remember.USER)) as runner:
        assert (await runner.run("look", {"path": "a"})).outcome == "denied"
    async with Runner([look], policy=Policy([], remember=Remember.SESSION)) as runner:
        assert (await runner.run("look", {"path": "a"})).outcome == "denied"


async def test_a_file_of_kept_answers_that_cannot_be_read_means_that_more_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "toolrunner").mkdir(mode=0o700)
    (tmp_path / "toolrunner" / "remembered.json").write_text("{")
    async with Runner([look], policy=Policy([], remember=Remember.USER)) as runner:
        assert (await runner.run("look", {"path": "a"})).outcome == "denied"
    assert "what it remembers does not count" in caplog.text


@pytest.mark.virtual_time
async def test_the_policy_may_wait_less_long_for_an_answer() -> None:
    class Nobody:
        async def decide(self, request: Any, signal: Any) -> Decision | None:
            await anyio.sleep_forever()
            return None

    journal = MemoryJournal()
    async with Runner([look], policy=Policy([], approval_timeout=7), approver=Nobody(), journal=journal) as runner:
        began = anyio.current_time()
        result = await runner.run("look", {})
        assert anyio.current_time() - began == pytest.approx(7)
    assert result.outcome == "denied"
    assert kinds(journal, CallAnswered)[0].answer == "timeout"
