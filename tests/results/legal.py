"""Every kind of legal result, for tests that go through all of them, and hypothesis strategies for whole results."""

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from toolrunner.facts import (
    Attribution,
    Change,
    ChangeKind,
    Containment,
    Drained,
    EffectRecord,
    Effects,
    EffectStage,
    EffectState,
    Evidence,
    File,
    Image,
    Json,
    Note,
    NoteKind,
    Process,
    Source,
    StillRunning,
    StillRunningKind,
    Stop,
    StopPhase,
    Text,
)
from toolrunner.results import ROWS, Code, Ended, Error, Outcome, Retry, Sandbox, ToolResult, Transaction, illegal

AT = datetime(2026, 3, 4, 5, 6, 7, 890123, tzinfo=UTC)
MINE = Change("/w/mine.txt", ChangeKind.CREATED)
SHARED = Change("/w/shared.txt", ChangeKind.MODIFIED, Attribution.SHARED)


def record(target: str, stage: EffectStage, owner: str | None = None) -> EffectRecord:
    return EffectRecord(f"r/{target}", "write", target, stage, owner=owner)


DONE, BEGUN = record("done.txt", EffectStage.APPLIED), record("begun.txt", EffectStage.PLANNED)
DOUBTED, UNDONE = record("doubted.txt", EffectStage.UNKNOWN), record("undone.txt", EffectStage.UNDONE)
AVOIDED = record("avoided.txt", EffectStage.NOT_APPLIED)
AROUND = record("audit.log", EffectStage.APPLIED, "wrapper:audit")

RECORDS: tuple[tuple[EffectRecord, ...], ...] = (
    (),
    (DONE,),
    (DONE, BEGUN),
    (DOUBTED,),
    (UNDONE,),
    (AVOIDED,),
    (AROUND,),
    (DONE, AROUND),
)
CHANGES: tuple[tuple[Change, ...] | None, ...] = (None, (), (MINE,), (SHARED,), (MINE, SHARED))
STOP = Stop(Source.CALLER, "user pressed stop", StopPhase.RUNNING, AT, AT, AT)
ESCALATED = Stop(
    Source.TIMEOUT, "the time limit of 30 s is over", StopPhase.RUNNING, AT, AT, AT, ("SIGTERM", "SIGKILL"), escalated=True
)
PROCESSES: tuple[Process | None, ...] = (
    None,
    Process(4711, Containment.KEEPER, exit_code=0, drained=Drained.EOF),
    Process(4711, Containment.KEEPER, exit_code=3, stdout="out", stdout_bytes=3, drained=Drained.EOF),
    Process(4711, Containment.BEST_EFFORT, signal="SIGKILL", leftovers=(StillRunning("sleep", StillRunningKind.PROCESS, 4712),)),
)
RUNNING: tuple[tuple[StillRunning, ...] | None, ...] = (
    (),
    None,
    (StillRunning("watcher", StillRunningKind.PROCESS, 4713, 0, AT), StillRunning("body", StillRunningKind.BODY)),
)


def combinations() -> Iterator[tuple[Outcome, Code | None, bool, Ended | None]]:
    """What the table allows, without effects."""
    for row in ROWS:
        yield from itertools.product((row.outcome,), row.codes, row.started, row.ended)


def all_effects() -> Iterator[Effects]:
    """Every state on every evidence, with every kind of record and change, sensible or not."""
    for state, evidence, records, changes in itertools.product(EffectState, (None, *Evidence), RECORDS, CHANGES):
        yield Effects(state, evidence, records, changes, detail="no change seen in /w" if changes == () else None)


EFFECTS = tuple(all_effects())
_BY_ROW = {one: [effects for effects in EFFECTS if illegal(*one, effects) is None] for one in set(combinations())}


def result(**facts: Any) -> ToolResult:
    """A result of a tool named `write`; by default one that succeeded."""
    default: dict[str, Any] = {
        "run_id": "run-1",
        "name": "write",
        "outcome": Outcome.SUCCEEDED,
        "started": True,
        "ended": Ended.RETURNED if facts.get("outcome", Outcome.SUCCEEDED) is Outcome.SUCCEEDED else None,
        "effects": Effects(EffectState.UNKNOWN)
        if facts.get("started", True)
        else Effects(EffectState.NONE, Evidence.NOT_STARTED),
    }
    return ToolResult(**{**default, **facts})


def every_legal_result() -> Iterator[ToolResult]:
    """Every legal row with every legal effects, and each state of those with every stop, process and rest that can go with it."""
    for outcome, code, started, ended in sorted(set(combinations()), key=str):
        stops = (STOP, ESCALATED) if outcome in (Outcome.ABORTED, Outcome.TIMED_OUT) else (None, STOP)
        processes = PROCESSES if started else (None,)
        left = RUNNING[2:] if started and ended is None else RUNNING if started else ((),)
        error = Error("kind", "it went wrong") if outcome in (Outcome.FAILED, Outcome.DENIED, Outcome.REJECTED) else None
        seen = set()
        for effects in _BY_ROW[outcome, code, started, ended]:
            whole = (effects.state, effects.evidence) not in seen
            seen.add((effects.state, effects.evidence))
            for around in itertools.product(stops, processes, left) if whole else ((stops[0], processes[0], left[0]),):
                yield result(
                    outcome=outcome, code=code, started=started, ended=ended, effects=effects, stop=around[0],
                    process=around[1], still_running=around[2], error=error,
                )  # fmt: skip


# Whole results, for round trips.

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
times = st.integers(0, 2**32).map(lambda seconds: datetime.fromtimestamp(seconds + 0.25, tz=UTC))
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
contents = st.one_of(
    st.builds(Text, texts), st.builds(Json, json_values), st.builds(Image, texts, texts), st.builds(File, texts, texts, texts)
)
running = st.lists(st.from_type(StillRunning), max_size=2).map(tuple)
st.register_type_strategy(datetime, times)
st.register_type_strategy(str, texts)


def _tuples(kind: type[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(st.from_type(kind), max_size=2).map(tuple)


@st.composite
def results(draw: st.DrawFn) -> ToolResult:
    """Any result that can be built."""
    row = draw(st.sampled_from(sorted(set(combinations()), key=str)))
    outcome, code, started, ended = row
    left = draw(st.none() | running)
    if started and ended is None and not left:
        left = RUNNING[2]
    return ToolResult(
        run_id=draw(texts), name=draw(texts), outcome=outcome, code=code, started=started, ended=ended,
        effects=draw(st.sampled_from(_BY_ROW[row])),
        call_id=draw(st.none() | texts), kind=draw(texts), provider_meta=draw(st.dictionaries(texts, json_values, max_size=2)),
        arguments=draw(json_values), modified_by=draw(st.none() | texts), parent_run_id=draw(st.none() | texts),
        value=draw(json_values), content=draw(st.lists(contents, max_size=3).map(tuple)),
        follow_up=draw(st.lists(json_values, max_size=2).map(tuple)), error=draw(st.none() | st.builds(Error, texts, texts)),
        attempts=draw(st.integers(0, 9)), replayed=draw(st.booleans()), about_run_id=draw(st.none() | texts),
        retry=draw(st.sampled_from(Retry)), stop=draw(st.none() | st.from_type(Stop)),
        process=draw(st.none() | st.from_type(Process)),
        sandbox=draw(st.none() | st.builds(Sandbox, texts, texts, _tuples(str), st.sampled_from(Transaction), _tuples(str))),
        still_running=left, enforced=draw(_tuples(str)), missing=draw(_tuples(str)),
        notes=draw(st.lists(st.builds(Note, st.sampled_from(NoteKind), texts), max_size=2).map(tuple)),
    )  # fmt: skip


def said(one: ToolResult) -> str:
    """What a model reads of it."""
    return " ".join(part.text for part in one.content_for_model() if isinstance(part, Text))
