"""Questions and their answers on record: an id each, one answer, and nothing starts that could not be recorded."""

from typing import Any

import pytest
from pipeline.asking import ASK, WRITE, Approver, check_denied, entered, write
from pipeline.bench import open_runner, text, types_of

from toolrunner import Decision, MemoryJournal, ToolCall
from toolrunner.results import ErrorKind, Outcome

pytestmark = pytest.mark.anyio


@pytest.mark.case("A8", "A14")
async def test_every_question_has_an_id_of_its_own_and_one_answer_on_record() -> None:
    journal = MemoryJournal()
    answers = [Decision.allow(), Decision.deny("no"), RuntimeError("gone"), "nonsense", Decision.allow()]
    async with open_runner([write], policy=ASK, approver=Approver(*answers), journal=journal) as runner:
        batch = await runner.run_batch([ToolCall("write", {"path": str(number)}) for number in range(5)])
    asked = [record for record in journal if record.type == "call/asked"]
    answered = [record for record in journal if record.type == "call/answered"]
    assert [record.approval_id for record in asked] == [record.approval_id for record in answered]
    assert len({record.approval_id for record in asked}) == 5
    assert [record.run_id for record in asked] == [result.run_id for result in batch]
    assert [record.answer for record in answered] == ["allow", "deny", "unavailable", "unavailable", "allow"]
    assert [result.outcome for result in batch] == [Outcome.SUCCEEDED, *[Outcome.DENIED] * 3, Outcome.SUCCEEDED]


class FailingJournal:
    """Refuses one type of record, the way that is named: by raising, by an error that stays, or when it is waited for."""

    def __init__(self, refused: str, how: str) -> None:
        self._refused = refused
        self._how = how
        self._error: str | None = None

    @property
    def error(self) -> str | None:
        return self._error

    def append(self, *records: Any) -> Any:
        if self._refused not in types_of(records):
            return None
        if self._how == "raises":
            raise OSError("disk full")
        if self._how == "stays broken":
            self._error = "disk full"
            return None
        return self._fail()

    async def _fail(self) -> None:
        raise OSError("disk full")

    async def aclose(self) -> None:
        pass


@pytest.mark.case("A15")
@pytest.mark.parametrize("how", ["raises", "stays broken", "later"])
@pytest.mark.parametrize("refused", ["call/asked", "call/answered"])
async def test_an_approval_that_cannot_be_recorded_starts_nothing(refused: str, how: str) -> None:
    async with open_runner(
        [write], policy=ASK, approver=Approver(Decision.allow()), journal=FailingJournal(refused, how)
    ) as runner:
        result = await runner.run(WRITE)
    assert entered == []
    assert not result.started
    assert result.outcome is not Outcome.SUCCEEDED
    assert "disk full" in text(result)
    if how != "stays broken":
        check_denied(result, ErrorKind.APPROVER_UNAVAILABLE)
