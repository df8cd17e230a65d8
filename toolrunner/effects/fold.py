"""From what is known of a body, its records and a scan to the one statement about its effects. Pure; no state.

How strong a statement is: `unknown` says nothing; `partial` says that the named changes were made; `completed` says that the
tool's change was made; `none` and `reverted` say that nothing of it is there. Doubt about any input only ever weakens it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from toolrunner.facts import Attribution, Change, EffectRecord, Effects, EffectStage, EffectState, Evidence
from toolrunner.facts.quick import quick


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class BodyFacts:
    """How one body ran, as far as its effects go.

    `returned`: it came to its own end, a process by its own exit. `succeeded`: the tool reported no error of its own, whatever
    became of the call afterwards. `saw_abort`: it was told of an abort before it returned (it read the signal, or the cancel
    reached it), so it may have left the rest undone. `process_exit_zero` is None for what is no process. `silent_children`: a
    child call may have changed something that no record tells of; no declaration of this tool can take that back.
    `records_before`: how many of the records were planned before this attempt; what of those is known to be gone counts no more.
    """

    started: bool
    read_only: bool = False
    returned: bool = False
    succeeded: bool = False
    saw_abort: bool = False
    process_exit_zero: bool | None = None
    silent_children: bool = False
    records_before: int = 0

    @property
    def ran_through(self) -> bool:
        """It returned, without an error and without having been asked to stop: what it is for has probably been done."""
        return self.returned and self.succeeded and not self.saw_abort and self.process_exit_zero is not False


@dataclass(frozen=True, slots=True)
class Scan:
    """What the scans before and after a call showed in `where`. `complete` is False when one of them could not read all of it."""

    changes: tuple[Change, ...] = ()
    where: tuple[str, ...] = ()
    complete: bool = True
    applied: bool = True
    """False: the changes were kept apart, and are not in `where`."""
    is_all: bool = False
    """Nothing else can have changed: no other folder, and nothing over a network."""


def fold(body: BodyFacts, records: Sequence[EffectRecord], scan: Scan | None = None) -> Effects:
    """The effects of one call. `scan` is None when nobody looked.

    The state is that of the tool: its body and its child calls. What hooks and wrappers recorded is listed under their own name
    and changes nothing in it. Records count before a scan, a scan before the declaration: a `read_only` tool that recorded an
    effect, or in whose call alone a file changed, is judged like any other.

    A stopped body with exclusive changes is `unknown`, not `partial`: a scan sees one directory and not the network, so the
    rest is not known, and invariant 5 forbids to sound as if it were. The changes are listed and the evidence is `observed`.
    Recorded effects that were all applied are `partial` when the body did not return, or saw the abort first (case E30):
    those changes were made, and nothing says that they were all.
    """
    records = tuple(records)
    if not body.started:
        return Effects(EffectState.NONE, Evidence.NOT_STARTED, records, None, complete=True)
    if not records and scan is None:  # most calls, and this is asked twice of each
        return Effects(*_unrecorded(body, None))
    own = _that_count(records, body.records_before)
    proven = [change for change in scan.changes if change.attribution is Attribution.EXCLUSIVE] if scan is not None else []
    state: EffectState
    evidence: Evidence | None
    if own:
        state, evidence = _recorded(body, own, proven)
    elif proven and scan is not None and not scan.applied:
        state, evidence = (EffectState.REVERTED if scan.is_all else EffectState.UNKNOWN), Evidence.OBSERVED
    elif proven:
        state, evidence = (EffectState.COMPLETED if body.ran_through else EffectState.UNKNOWN), Evidence.OBSERVED
    else:
        state, evidence = _unrecorded(body, scan)
    detail = _detail(scan) if state is EffectState.UNKNOWN and not proven else None
    return Effects(state, evidence, records, scan.changes if scan is not None else None, complete=False, detail=detail)


def _that_count(records: Sequence[EffectRecord], before: int) -> list[EffectRecord]:
    """The tool's own. An earlier attempt that left nothing must not make the one that did everything look like a part."""
    gone = (EffectStage.NOT_APPLIED, EffectStage.UNDONE)
    return [one for index, one in enumerate(records) if not one.is_around and not (index < before and one.stage in gone)]


def _recorded(body: BodyFacts, own: Sequence[EffectRecord], proven: Sequence[Change]) -> tuple[EffectState, Evidence]:
    stages = {record.stage for record in own}
    if stages & {EffectStage.PLANNED, EffectStage.UNKNOWN}:
        return EffectState.UNKNOWN, Evidence.OBSERVED if proven else Evidence.REPORTED
    if EffectStage.APPLIED in stages:
        whole = stages == {EffectStage.APPLIED} and body.returned and not body.saw_abort
        return EffectState.COMPLETED if whole else EffectState.PARTIAL, Evidence.REPORTED
    if body.silent_children:
        return EffectState.UNKNOWN, Evidence.REPORTED
    # From here on the records say that nothing of theirs is there. An undone write still shows, by its times; it is
    # explained by its record. Any other change means that the records are not all there is.
    undone = {record.target for record in own if record.stage is EffectStage.UNDONE}
    if any(change.path not in undone for change in proven):
        return EffectState.UNKNOWN, Evidence.OBSERVED
    if undone:
        return EffectState.REVERTED, Evidence.REPORTED
    # A body that did not return may have been on its way to an act that it had not declared yet.
    return EffectState.NONE if body.returned else EffectState.UNKNOWN, Evidence.REPORTED


def _unrecorded(body: BodyFacts, scan: Scan | None) -> tuple[EffectState, Evidence | None]:
    if body.read_only and not body.silent_children:
        return EffectState.NONE, Evidence.DECLARED
    # Where somebody looked and saw nothing, assuming a change would be odd and excluding one would be wrong.
    seen_nothing = scan is not None and not scan.changes
    if body.ran_through and not seen_nothing:
        return EffectState.COMPLETED, Evidence.ASSUMED
    return EffectState.UNKNOWN, None


def _detail(scan: Scan | None) -> str | None:
    if scan is None or not scan.where:
        return None
    where = ", ".join(scan.where)
    if scan.changes:
        return f"changes were seen in {where}, where others were writing too"
    return f"no change seen in {where}" + ("" if scan.complete else ", which could not be read completely")
