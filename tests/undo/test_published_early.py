"""A result that is published while a call is still being undone tells what stands; nothing changes behind its back."""

from collections.abc import Awaitable
from typing import Any

import anyio
import pytest
from undo.worlds import World, tool_of

from toolrunner import Runner, ToolCall
from toolrunner.effects.ledger import BEING_UNDONE
from toolrunner.facts import EffectStage
from toolrunner.testing import Gate

pytestmark = pytest.mark.anyio

BOUND = 60
"""For hangs only."""


async def test_no_undo_begins_after_the_result_was_published_while_its_announcement_was_on_its_way_to_disk() -> None:
    gate = Gate()

    class SlowJournal(World):
        """Says that an undo is about to begin when the gate is opened."""

        def append(self, *records: Any) -> Awaitable[None] | None:
            super().append(*records)
            announced = any(one.type == "effect/unknown" and one.effect.error == BEING_UNDONE for one in records)
            return gate.wait() if announced else None

    world = SlowJournal()
    with anyio.fail_after(BOUND):
        async with Runner([tool_of(world, ["a"], world.undo)], journal=world) as runner:

            def stop_when_made(record: Any) -> None:
                if record.type == "effect/applied":
                    batch.abort()

            batch = runner.start_batch([ToolCall("write")], on_event=stop_when_made)
            await gate.reached()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: runner.aclose(limit=0.02))
                [result] = await batch.results()
                gate.open()
    assert result.still_running == ()
    assert world.undone == []
    assert world.there == {"a"}
    last = [one.effect for one in world.records if one.type.startswith("effect/")][-1]
    assert (last.stage, last.error) == (EffectStage.APPLIED, "not undone: the result was published meanwhile")
