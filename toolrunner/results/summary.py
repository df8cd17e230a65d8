"""What people read of a result: one line. It says what happened, why, how it ended, what it changed and what is left."""

from toolrunner.facts import EffectState, Evidence, Source
from toolrunner.results.model import CallFacts
from toolrunner.results.phrases import (
    REASON_CHARS,
    asked_by,
    clause,
    in_doubt,
    is_end_unknown,
    made,
    made_around,
    naming,
    one_line,
    says_more,
    seen_by_chance,
    still,
    undone,
    was_found_since,
)
from toolrunner.results.rows import find_row
from toolrunner.results.words import Outcome

_PROVEN = (Evidence.REPORTED, Evidence.OBSERVED)


def summary(result: CallFacts) -> str:
    """One sentence for people: what happened, why, how it ended, what it changed, what is left."""
    row = find_row(result.outcome, result.code, result.started, result.ended)
    assert row is not None  # no result without a row can be built
    happened = row.happened + (f" (recorded result of {result.about_run_id})" if result.replayed else "")
    found = "found since to have taken effect" if was_found_since(result) else ""
    said = (_error(result), _stop(result), _how(result), _changed(result), found, *made_around(result.effects), _left(result))
    return one_line(f"{result.name} {happened}" + "".join(f"; {part}" for part in said if part) + ".")


def _error(result: CallFacts) -> str:
    return clause(result.error.message, REASON_CHARS) if result.error is not None and says_more(result) else ""


def _stop(result: CallFacts) -> str:
    stop = result.stop
    if stop is None or result.outcome is Outcome.SUCCEEDED:
        return ""
    if result.outcome is Outcome.TIMED_OUT and stop.source == Source.TIMEOUT:
        return clause(stop.reason, REASON_CHARS)
    asked = "asked by" if result.outcome in (Outcome.ABORTED, Outcome.TIMED_OUT) else "it had also been asked to stop by"
    return f"{asked} {asked_by(stop)}"


def _how(result: CallFacts) -> str:
    process = result.process
    if is_end_unknown(result):
        return "how it ended is not known"
    if process is None or not result.started or result.outcome is Outcome.SUCCEEDED:
        return ""
    if process.signal is not None:
        by = " after SIGTERM" if result.stop is not None and result.stop.escalated else ""
        return f"ended by {process.signal}{by}"
    return f"exit status {process.exit_code}" if process.exit_code is not None else ""


def _changed(result: CallFacts) -> str:
    effects = result.effects
    known = naming(made(effects)).removeprefix(":")
    match effects.state:
        case EffectState.NONE:
            return _nothing(result)
        case EffectState.COMPLETED if effects.evidence in _PROVEN:
            return f"changed{known}"
        case EffectState.COMPLETED:
            return f"effects not recorded{_by_chance(result)}"
        case EffectState.PARTIAL:
            return f"changed at least{known}{_undone(result)}"
        case EffectState.REVERTED:
            return "changes undone"
        case EffectState.UNKNOWN:
            doubtful = naming(in_doubt(effects)).removeprefix(":")
            said = [
                f"changed{known}" if known else "",
                f"not known whether it changed{doubtful}"
                if doubtful
                else "other effects unknown"
                if known
                else "effects unknown",
            ]
            return ", ".join(part for part in said if part) + _undone(result) + _by_chance(result)


def _undone(result: CallFacts) -> str:
    targets = undone(result.effects)
    return f", undone{naming(targets).replace(':', '', 1)}" if targets else ""


def _nothing(result: CallFacts) -> str:
    if not result.started:
        return "the call itself changed nothing" if made_around(result.effects) else "nothing was changed"
    return "declared to change nothing" if result.effects.evidence is Evidence.DECLARED else "changed nothing"


def _by_chance(result: CallFacts) -> str:
    chance = naming(seen_by_chance(result.effects)).removeprefix(":")
    if chance:
        return f", seen to change while others were writing too:{chance}"
    return f", {clause(result.effects.detail, REASON_CHARS)}" if result.effects.detail else ""


def _left(result: CallFacts) -> str:
    if result.still_running is None:
        return "nothing found still running (not provable here)"
    if result.still_running:
        return still(result.still_running)
    ended = len(result.process.leftovers) if result.process is not None else 0
    if ended:
        return f"{ended} leftover process{'es' if ended > 1 else ''} ended, nothing left running"
    return "nothing left running" if result.process is not None and result.started else ""
