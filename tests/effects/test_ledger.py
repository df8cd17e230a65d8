"""The ledger: planned before the act, told the truth about afterwards."""

import anyio
import pytest
from anyio.lowlevel import checkpoint
from effects.ledgers import APPLIED, NOT_APPLIED, PLANNED, UNKNOWN, Journal, ledger_of
from stillness import all_blocked

from toolrunner.effects import fold
from toolrunner.effects.fold import BodyFacts
from toolrunner.errors import ConfigError
from toolrunner.facts import EffectRecord, EffectState

pytestmark = pytest.mark.anyio


async def test_an_act_is_planned_before_and_applied_after_with_its_receipt() -> None:
    journal = Journal()
    ledger = ledger_of(journal)
    async with ledger.declare("write", "/w/a") as effect:
        assert journal.types == ["effect/planned"]
        assert ledger.records[0].stage is PLANNED
        effect.receipt = "etag 7"
    assert journal.types == ["effect/planned", "effect/applied"]
    assert ledger.records == (EffectRecord("run1/1", "write", "/w/a", APPLIED, receipt="etag 7"),)
    assert effect.effect_id == "run1/1"


async def test_the_block_waits_until_its_plan_is_durable() -> None:
    gate = anyio.Event()
    ledger = ledger_of(Journal(gate))
    entered = anyio.Event()

    async def body() -> None:
        async with ledger.declare("write", "/w/a"):
            entered.set()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(body)
            await all_blocked()
            assert not entered.is_set()
            gate.set()
    assert entered.is_set()


async def test_an_act_that_is_left_by_an_exception_is_unknown_and_keeps_the_error() -> None:
    journal = Journal()
    ledger = ledger_of(journal)
    effect = ledger.declare("write", "/w/a")
    effect.receipt = "first page"
    with pytest.raises(ValueError, match="half"):
        async with effect:
            raise ValueError("half")
    assert ledger.records[0].stage is UNKNOWN
    assert ledger.records[0].error == "ValueError: half"
    assert ledger.records[0].receipt == "first page"
    assert journal.types == ["effect/planned", "effect/unknown"]


@pytest.mark.parametrize("raises", [True, False])
async def test_an_act_that_is_known_not_to_have_happened_says_so(raises: bool) -> None:
    ledger = ledger_of(Journal())
    try:
        async with ledger.declare("write", "/w/a") as effect:
            effect.not_applied()
            if raises:
                raise ValueError("refused")
    except ValueError:
        assert raises
    assert ledger.records[0].stage is NOT_APPLIED


@pytest.mark.case("E2")
async def test_an_act_that_is_left_by_a_cancel_is_unknown() -> None:
    ledger = ledger_of(Journal())
    with anyio.CancelScope() as scope:
        async with ledger.declare("write", "/w/a"):
            scope.cancel()
            await anyio.sleep_forever()
    assert ledger.records[0].stage is UNKNOWN
    assert fold(BodyFacts(started=True, saw_abort=True), ledger.records).state is EffectState.UNKNOWN


async def test_an_act_whose_plan_could_not_wait_is_not_begun() -> None:
    journal = Journal(anyio.Event())
    ledger = ledger_of(journal)
    entered = False
    with anyio.move_on_after(0) as scope:
        async with ledger.declare("write", "/w/a"):
            entered = True
    assert scope.cancelled_caught
    assert not entered
    assert ledger.records[0].stage is NOT_APPLIED
    assert journal.types == ["effect/planned", "effect/not_applied"]


async def test_an_act_that_cannot_be_recorded_is_not_begun() -> None:
    ledger = ledger_of(Journal(fail="effect/planned"))
    entered = False
    with pytest.raises(OSError, match="disk full"):
        async with ledger.declare("write", "/w/a", shield=True):
            entered = True
    assert not entered
    assert ledger.records[0].stage is NOT_APPLIED
    assert not ledger.shielded


async def test_a_failing_record_of_the_end_does_not_tell_the_body_that_its_act_failed(caplog: pytest.LogCaptureFixture) -> None:
    ledger = ledger_of(Journal(fail="effect/applied"))
    async with ledger.declare("write", "/w/a"):
        pass
    assert ledger.records[0].stage is APPLIED
    assert "could not be recorded" in caplog.text


async def test_a_shielded_block_is_not_cancelled() -> None:
    ledger = ledger_of(Journal())
    with anyio.fail_after(60), anyio.CancelScope() as scope:
        async with ledger.declare("write", "/w/a", shield=True):
            scope.cancel()
            await checkpoint()
            await checkpoint()
        assert ledger.records[0].stage is APPLIED
        await anyio.sleep_forever()
    assert scope.cancelled_caught


async def test_clean_up_in_a_cancelled_scope_can_record_its_own_shielded_act() -> None:
    gate = anyio.Event()
    ledger = ledger_of(Journal(gate))
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:

            async def body() -> None:
                with anyio.CancelScope() as scope:
                    scope.cancel()
                    try:
                        await anyio.sleep_forever()
                    finally:
                        async with ledger.declare("delete", "/w/a", shield=True):
                            await checkpoint()

            group.start_soon(body)
            await all_blocked()
            gate.set()
    assert ledger.records[0].stage is APPLIED


async def test_a_stop_is_kept_back_until_the_last_shield_is_gone() -> None:
    ledger = ledger_of(Journal())
    told: list[str] = []
    ledger.after_shields(lambda: told.append("at once"))
    assert told == ["at once"]
    async with ledger.declare("write", "/w/a", shield=True):
        async with ledger.declare("write", "/w/b", shield=True):
            ledger.after_shields(lambda: told.append("later"))
            assert ledger.shielded
        assert told == ["at once"]
    assert told == ["at once", "later"]
    assert not ledger.shielded


async def test_an_effect_is_used_once() -> None:
    effect = ledger_of(Journal()).declare("write", "/w/a")
    async with effect:
        pass
    with pytest.raises(ConfigError, match="one block"):
        async with effect:
            pass


async def test_owners_are_hooks_and_wrappers() -> None:
    ledger = ledger_of(Journal())
    async with ledger.declare("log", "audit", owner="wrapper:audit"):
        pass
    assert ledger.records[0].owner == "wrapper:audit"
    with pytest.raises(ConfigError, match="hook:NAME"):
        ledger.declare("log", "audit", owner="audit")


async def test_the_records_of_a_child_call_are_rolled_up_under_its_run_id() -> None:
    journal = Journal()
    ledger = ledger_of(journal)
    child = EffectRecord("child/1", "write", "/w/a", APPLIED)
    hooked = EffectRecord("child/2", "log", "audit", APPLIED, owner="hook:audit")
    ledger.roll_up([child, hooked], owner="child")
    assert [record.owner for record in ledger.records] == ["child", "hook:audit"]
    assert journal.types == []


async def test_an_exception_with_a_hostile_text_is_still_recorded() -> None:
    class Hostile(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    ledger = ledger_of(Journal())
    with pytest.raises(Hostile):
        async with ledger.declare("write", "/w/a"):
            raise Hostile
    assert ledger.records[0].stage is UNKNOWN
    assert "Hostile" in (ledger.records[0].error or "")
    with pytest.raises(ValueError, match="x"):
        async with ledger.declare("write", "/w/a"):
            raise ValueError("x" * 10_000)
    assert len(ledger.records[1].error or "") == 500
