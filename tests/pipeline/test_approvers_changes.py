"""Arguments that an approver changes: judged anew like the model's own, three times at most."""

from typing import Any

import pytest
from pipeline.asking import ASK, WRITE, Approver, check_denied, entered, write
from pipeline.bench import SUCCEEDED, check_never_started, facts, open_runner, text

from toolrunner import AbortSignal, Decision, MemoryJournal, ToolCall, ask
from toolrunner.policy import ApprovalRequest
from toolrunner.results import Code, ErrorKind, Outcome

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("times", [1, 3, 4])
async def test_an_approver_may_change_the_arguments_three_times(times: int) -> None:
    journal = MemoryJournal()
    hooks: list[Any] = []

    def change(request: ApprovalRequest) -> Decision:
        number = len(approver.asked)
        return Decision.allow(arguments={"path": f"p{number}"}) if number <= times else Decision.allow()

    approver = Approver(change)
    async with open_runner([write], policy=ASK, approver=approver, journal=journal) as runner:

        async def pre(call: ToolCall, signal: AbortSignal) -> None:
            hooks.append(call.arguments)

        runner.pre_execute(pre)
        result = await runner.run(WRITE)
    modified = [record.arguments for record in journal if record.type == "call/modified"]
    assert modified == [{"path": f"p{number}"} for number in range(1, times + 1)]
    assert [request.arguments for request in approver.asked] == [{"path": "a"}, *modified][: 4 if times == 4 else times + 1]
    assert len({request.digest for request in approver.asked}) == len(approver.asked)
    assert hooks == [request.arguments for request in approver.asked]  # each change is judged anew
    if times <= 3:
        assert facts(result) == SUCCEEDED
        assert entered == [{"path": f"p{times}", "text": ""}]
        assert (result.arguments, result.modified_by) == ({"path": f"p{times}"}, "approver")
    else:
        check_denied(result, ErrorKind.APPROVER)
        assert "more than 3 times" in text(result)


@pytest.mark.parametrize("arguments", [{"path": 5}, {"nobody": 1}, {}], ids=repr)
async def test_arguments_of_an_approver_that_do_not_fit_start_nothing(arguments: dict[str, Any]) -> None:
    async with open_runner([write], policy=ASK, approver=Approver(Decision.allow(arguments=arguments))) as runner:
        result = await runner.run(WRITE)
    check_never_started(result, (Outcome.REJECTED, Code.INVALID_ARGUMENTS, False, None))
    assert (result.arguments, result.modified_by, entered) == (arguments, "approver", [])


async def test_arguments_of_an_approver_that_cannot_be_frozen_start_nothing() -> None:
    async with open_runner([write], policy=ASK, approver=Approver(Decision.allow(arguments={"path": object()}))) as runner:
        result = await runner.run(WRITE)
    check_denied(result, ErrorKind.APPROVER)
    assert result.arguments == {"path": "a"}


async def test_the_same_arguments_from_an_approver_change_nothing() -> None:
    async with open_runner([write], policy=ASK, approver=Approver(Decision.allow(arguments={"path": "a"}))) as runner:
        result = await runner.run(WRITE)
    assert facts(result) == SUCCEEDED
    assert result.modified_by is None


async def test_a_policy_can_deny_what_an_approver_made_of_a_call() -> None:
    async with open_runner([write], approver=Approver(Decision.allow(arguments={"path": "/etc/passwd"}))) as runner:

        async def pre(call: ToolCall, signal: AbortSignal) -> Any:
            assert isinstance(call.arguments, dict)
            return Decision.deny("not there") if call.arguments["path"].startswith("/etc") else ask("sure?")

        runner.pre_execute(pre)
        result = await runner.run(WRITE)
    check_denied(result, ErrorKind.HOOK)
