"""Phrases that texts for models and sentences for people share: who asked for a stop, what changed, what still runs.

Nothing here may claim more than the facts: a change is claimed on reported or observed evidence only, and a change that others
may have made is never called the call's.
"""

from collections.abc import Sequence

from toolrunner.facts import Attribution, Effects, EffectStage, NoteKind, Source, StillRunning, Stop
from toolrunner.results.model import CallFacts
from toolrunner.results.words import Code, Ended

SHOWN_NAMES = 5
"""How many paths, targets or pids a sentence names before it only counts the rest."""

REASON_CHARS = 300
"""Characters of an error or a reason that a sentence shows; the whole of it is in the result."""

_ASKERS: dict[str, str] = {
    Source.CALLER: "the caller",
    Source.HOOK: "a hook",
    Source.TIMEOUT: "the time limit",
    Source.SHUTDOWN: "the closing of the runner",
    Source.HOST: "the host",
    Source.PARENT: "the call that made it",
    Source.APPROVER: "the approver",
    Source.COST: "the cost limit",
    Source.PEER_DISCONNECTED: "the loss of the connection",
}


def sentence(text: str) -> str:
    """Foreign text as a sentence of ours: one full stop at its end, unless it brings a mark of its own."""
    text = text.strip()
    return text if not text or text.endswith((".", "!", "?")) else text + "."


def one_line(text: str) -> str:
    """Foreign text without line breaks: a file's name must not look like a sentence of ours."""
    return " ".join(text.split())


def clause(text: str, limit: int) -> str:
    """Foreign text as a part of a sentence: on one line, not too long, without a full stop."""
    line = one_line(text).rstrip(".")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def asked_by(stop: Stop) -> str:
    """Who asked for the stop, and in which words."""
    asker = _ASKERS.get(stop.source) or one_line(stop.source.replace("wrapper:", "the wrapper ", 1))
    reason = clause(stop.reason, REASON_CHARS)
    return f"{asker} ({reason})" if reason else asker


def says_more(result: CallFacts) -> bool:
    """Whether its error says more than the row and the exit facts say already."""
    told = result.code in (Code.EXIT_STATUS, Code.KILLED_BY_SIGNAL, Code.KEEPER_LOST) and result.process is not None
    return result.error is not None and not told


def is_end_unknown(result: CallFacts) -> bool:
    """Whether nobody knows how a lost call ended; of a process that lost its supervisor the exit may be known all the same."""
    process = result.process
    return result.ended is Ended.LOST and (process is None or (process.signal is None and process.exit_code is None))


def was_found_since(result: CallFacts) -> bool:
    """Whether its facts left a doubt, and somebody looked since and found that it took effect."""
    return any(note.kind is NoteKind.RECONCILED for note in result.notes)


def naming(names: Sequence[str]) -> str:
    """Names after a colon, the first few of them; nothing without names."""
    if not names:
        return ""
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ": " + ", ".join(one_line(name) for name in names[:SHOWN_NAMES]) + more


def made(effects: Effects) -> list[str]:
    """What the tool is known to have changed: its applied records, and the files that only it can have changed."""
    targets = _targets(effects, EffectStage.APPLIED)
    told = {record.target for record in effects.records}
    return targets + [name for path, name in _files(effects, Attribution.EXCLUSIVE) if path not in told]


def in_doubt(effects: Effects) -> list[str]:
    """What the tool set out to change, without anybody knowing whether it did."""
    return _targets(effects, EffectStage.PLANNED, EffectStage.UNKNOWN)


def undone(effects: Effects) -> list[str]:
    """What the tool had changed and is known to have been taken back."""
    return _targets(effects, EffectStage.UNDONE)


def seen_by_chance(effects: Effects) -> list[str]:
    """Files that changed while others were writing too."""
    return [name for _, name in _files(effects, Attribution.SHARED)]


def made_around(effects: Effects) -> list[str]:
    """What hooks and wrappers did around the tool, each under its own name, as clauses."""
    said = []
    for owner in dict.fromkeys(record.owner for record in effects.records if record.is_around):
        own = [record for record in effects.records if record.owner == owner]
        for doubt, stages in (("", (EffectStage.APPLIED,)), (" may have", (EffectStage.PLANNED, EffectStage.UNKNOWN))):
            targets = [record.target for record in own if record.stage in stages]
            if targets:
                said.append(f"{one_line(owner or '')}{doubt} changed{naming(targets).replace(':', '', 1)}")
    return said


def _targets(effects: Effects, *stages: EffectStage) -> list[str]:
    return list(dict.fromkeys(record.target for record in effects.records if record.stage in stages and not record.is_around))


def _files(effects: Effects, attribution: Attribution) -> list[tuple[str, str]]:
    return [(one.path, f"{one.path} ({one.kind})") for one in effects.changes or () if one.attribution is attribution]


def still(running: Sequence[StillRunning]) -> str:
    """What still runs, as a clause."""
    names = [f"{one.what} (pid {one.pid})" if one.pid is not None else one.what for one in running]
    return f"still running{naming(names)}"
