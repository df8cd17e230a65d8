"""The ten invariants of the design, as questions to one `World` after something happened in it.

`violations` compares what the runner said with what is true, and lists every difference in a sentence.
"""

from collections.abc import Iterator, Sequence

import anyio
from invariants.world import BOUND, Truth, World

from toolrunner import ToolResult
from toolrunner.facts import EffectRecord, EffectStage, EffectState, Evidence, StopPhase, Text
from toolrunner.records import CallEnded, CallRecorded
from toolrunner.results import Code, Ended, Outcome, Retry
from toolrunner.testing import Entry

NEXT_CALL_EVERY = 4
"""Checks per call that is made to see whether the runner still works. That it holds nothing is looked at in each of them."""

PROVEN = (Evidence.REPORTED, Evidence.OBSERVED)


async def check(world: World, results: Sequence[ToolResult] | None = None) -> None:
    """Fail with all that is wrong. `results` are those that the caller was given, in model order; None: it was given none."""
    parts = world.runner._services
    assert parts is not None
    with anyio.fail_after(BOUND):
        await parts.root.wait_empty()  # nothing to wait for but what a host left behind that did not wait itself
    found = [*violations(world, results), *what_stays_behind(world)]
    world.checks += 1
    if not found and world.runner._closed is None and world.checks % NEXT_CALL_EVERY == 1:
        found += await the_next_call(world)
    said = "\n".join(f"    {one.run_id[:6]} {one.type}" for one in world.recorder)
    assert not found, "\n  ".join(["", *found, "records:", said])


def violations(world: World, results: Sequence[ToolResult] | None) -> Iterator[str]:
    yield from world.early
    yield from (f"looking at a record failed: {error!r}" for error in world.recorder.errors)
    for call in world.accepted:
        yield from (f"{call.name}: {text}" for text in one_call(world, call))
    top = [one.run_id for one in world.accepted if one.parent_run_id is None]
    if results is not None and [one.run_id for one in results] != top:
        yield "the caller was not given one result per call, in the order of the calls (1)"
    committed = [one.run_id for one in world.recorder.of("call/settled") if one.run_id in top]
    if world.is_one_batch and committed != top:
        yield "the calls of the batch were not committed in the model's order"


def one_call(world: World, call: CallRecorded) -> Iterator[str]:
    settled = world.recorder.of("call/settled", run_id=call.run_id)
    if len(settled) != 1:
        yield f"{len(settled)} settled records (invariant 1)"
        return
    result: ToolResult = settled[0].result
    if world.runner.result(call.run_id) is not result:
        yield "the runner hands out another result than the one it recorded (1)"
    truth = world.then[call.run_id]
    if world.truth(call.run_id).made != truth.made and not result.still_running:
        yield f"it made {world.truth(call.run_id).made} in the end, and {truth.made} when it was settled with nothing running (6)"
    yield from started(world, result, truth)
    yield from order(world, result)
    yield from nothing_is_dropped(world, result, truth)
    yield from effects(world, result, truth)
    yield from texts(result, truth)
    yield from stops(result)
    yield from repeats(world, result, truth)


def started(world: World, result: ToolResult, truth: Truth) -> Iterator[str]:
    """3: `started` says exactly whether the body was entered."""
    entered = len(truth.entries)
    if result.name in world.tools and not result.replayed and (result.started, result.attempts) != (bool(entered), entered):
        yield f"started={result.started}, attempts={result.attempts}, but the body was entered {entered} times (3, 5)"
    if truth.entries:
        yield from ended(result, truth.entries[-1])


def ended(result: ToolResult, last: Entry) -> Iterator[str]:
    """5: `ended` says how the last body got to its end."""
    if result.ended is not None and result.ended != last.left:
        yield f"ended={result.ended}, but the body was left as {last.left} (5)"
    if result.ended is None and not result.still_running:
        yield "nobody saw the body's end, and it is not listed as running (6)"


def order(world: World, result: ToolResult) -> Iterator[str]:
    """1, 6: the records of a call tell its life, once."""
    types = world.recorder.types(result.run_id)
    wanted = ["call/recorded", *(["call/dispatched", "call/ended"] if result.started and result.ended else []), "call/settled"]
    rest = iter(types)
    if result.replayed is False and not all(one in rest for one in wanted):
        yield f"expected {wanted} in this order: {types} (1)"
    if types and types[-1] != "call/settled" and result.ended is not None:
        yield f"something came after call/settled: {types} (6)"
    if not result.started and "call/ended" in types:
        yield "it has a call/ended without having been started (3)"
    if types.count("call/asked") != types.count("call/answered"):
        yield "asked and answered are not paired (A8)"
    if types.count("call/stop_requested") > 1 or types.count("call/stop_delivered") > types.count("call/dispatched"):
        yield f"a stop was told more than once: {types} (E18)"
    ended: list[CallEnded] = world.recorder.of("call/ended", run_id=result.run_id)
    if ended and (ended[-1].started, ended[-1].ended) != (result.started, result.ended) and result.ended is not None:
        yield "call/ended and the result differ in how the body ended (5)"
    if len(ended) > 1 and len(ended) != result.attempts:
        yield f"{len(ended)} call/ended for {result.attempts} attempts (1)"


def nothing_is_dropped(world: World, result: ToolResult, truth: Truth) -> Iterator[str]:
    """4: an abort takes nothing away."""
    if truth.entries and truth.entries[-1].finished and result.ended is Ended.RETURNED:
        value = world.tools[result.name].script.value
        if result.value != value and result.code is not Code.HOOK_ERROR and not world.answers_are_replaced:
            yield f"the body returned {value!r}, but the result has {result.value!r} (4)"


def effects(world: World, result: ToolResult, truth: Truth) -> Iterator[str]:
    """5: no effect is claimed that did not happen, and none is denied that did."""
    said = result.effects
    if result.replayed:
        return
    if truth.made and said.state in (EffectState.NONE, EffectState.REVERTED):
        yield f"effects={said.state} ({said.evidence}), but it made {truth.made}"
    claims = said.state in (EffectState.PARTIAL, EffectState.REVERTED) or (
        said.state is EffectState.COMPLETED and said.evidence in PROVEN
    )
    if claims and not truth.made:
        yield f"effects={said.state} ({said.evidence}), but it made nothing"
    for record in said.records:
        yield from one_effect(record, result, truth)
    told = {record.target for record in said.records if record.stage is not EffectStage.NOT_APPLIED}
    for entry in truth.entries:
        if world.tools[entry.tool].script.declares and not set(entry.made) <= told:
            yield f"it declared and made {entry.made}, but the result tells of {sorted(told)}"


def one_effect(record: EffectRecord, result: ToolResult, truth: Truth) -> Iterator[str]:
    if record.kind != "test":
        return
    if record.stage is EffectStage.APPLIED and record.target not in truth.made:
        yield f"{record.target} is recorded as applied, but was not made"
    if record.stage is EffectStage.NOT_APPLIED and record.target in truth.made and result.attempts < 2:
        yield f"{record.target} is recorded as not applied, but was made"
    if record.stage is EffectStage.PLANNED and result.ended is not None:
        yield f"{record.target} is left as planned by a body that is over"


def texts(result: ToolResult, truth: Truth) -> Iterator[str]:
    """5: no text claims more than is known."""
    for_model = " ".join(part.text for part in result.content_for_model() if isinstance(part, Text))
    for_people = result.summary()
    if result.started:
        for words in ("not started", "before it started", "was not executed", "nothing was changed", "not allowed", "refused"):
            if words in for_model or words in for_people:
                yield f"the body was entered, and a text says {words!r}: {for_model!r} {for_people!r}"
    if truth.made and ("no effects" in for_model or "no effects" in for_people):
        yield f"it made {truth.made}, and a text says that it had no effects: {for_model!r} {for_people!r}"
    if not truth.made and not result.replayed and ("change was made" in for_model or "change was made" in for_people):
        yield f"it made nothing, and a text says that its change was made: {for_model!r} {for_people!r}"
    if result.ended is Ended.STOPPED and "finished before it could be stopped" in for_model:
        yield "it was stopped, and the text says that it finished"


def stops(result: ToolResult) -> Iterator[str]:
    """5: who stopped it, and when, fits what became of it."""
    stop = result.stop
    if result.outcome in (Outcome.ABORTED, Outcome.TIMED_OUT) and stop is None and result.error is None:
        yield "it was stopped, and nobody is said to have asked for that"
    if stop is None:
        return
    if (stop.phase is StopPhase.BEFORE_DISPATCH) and result.started:
        yield "its stop is said to have come before its dispatch, but it was started"
    if not result.started and stop.delivered_at is not None:
        yield "a stop is said to have been delivered to a body that was never entered"
    if result.ended is Ended.STOPPED and stop.delivered_at is None:
        yield "it ended by a stop that was never delivered"
    if result.outcome is Outcome.SUCCEEDED:
        yield "it succeeded although it was stopped"


def repeats(world: World, result: ToolResult, truth: Truth) -> Iterator[str]:
    """8: what is not idempotent is started again only after it is known to have changed nothing."""
    if not truth.entries:
        return
    declared = world.tools[result.name].tool.annotations
    if not declared.idempotent and any(entry.made for entry in truth.entries[:-1]):
        yield "it was started again although it had made a change (8)"
    if result.retry is Retry.SAFE and truth.made and not declared.idempotent:
        yield f"retry=safe, but it made {truth.made} (5)"


def what_stays_behind(world: World) -> Iterator[str]:
    """9: the runner holds nothing."""
    runner, parts = world.runner, world.runner._services
    assert parts is not None
    desk, asks = parts.leases, parts.approvals
    for what, left in {
        "leases": desk.held,
        "places": sum(desk._used.values()),
        "calls waiting for a lease": len(desk._queue),
        "open questions": len(asks._open) + len(asks._line) + (asks._turn is not None),
        "running calls on the shelf": len(list(runner._shelf.running())),
        "attached observers": len(runner._hub._by_run),
        "busy threads": parts.threads._count - len(parts.threads._idle) if runner._closed is None else 0,
        "watches": len(parts.watches._active),
        "keys that look as if in use": sum(str(one.state) == "running" for one in parts.keys._entries.values()),
        "processes": sum(one.running for one in world.processes.processes),
    }.items():
        if left:
            yield f"{left} {what} left behind (9)"


async def the_next_call(world: World) -> list[str]:
    """9: the runner is usable."""
    with anyio.fail_after(BOUND):
        probe = await world.runner.run("probe")
    if probe.outcome is Outcome.SUCCEEDED or world.probe_may_fail:
        return []
    return [f"the next call did not succeed: {probe.summary()} (9)"]
