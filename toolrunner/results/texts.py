"""What a model reads of a result: the real content, then what is true of the call, from a closed set of sentences.

Nothing here may claim more than the facts; "not started" is said only of a call that was not.
"""

from toolrunner.facts import Content, Effects, EffectState, Evidence, NoteKind, Source, Text
from toolrunner.results.content import bounded, cut
from toolrunner.results.model import CallFacts
from toolrunner.results.phrases import (
    asked_by,
    in_doubt,
    is_end_unknown,
    made,
    made_around,
    naming,
    one_line,
    says_more,
    seen_by_chance,
    sentence,
    still,
    undone,
    was_found_since,
)
from toolrunner.results.rows import find_row
from toolrunner.results.words import Outcome

PROVEN = (Evidence.REPORTED, Evidence.OBSERVED)
"""Only these let a text claim a change."""

_STOPPED = (Outcome.ABORTED, Outcome.TIMED_OUT)


def content_for_model(result: CallFacts, max_chars: int | None = None) -> tuple[Content, ...]:
    """What the model reads. `max_chars` bounds all text, head and tail kept; what is true of the call comes last and is not cut.

    (The message of an error is content of the tool's, so it is cut like content where the rest leaves it too little room.)
    """
    if max_chars is None:
        status = status_text(result)
        return (*result.content, Text(status)) if status else result.content
    status = _status(result, message_limit=max_chars - len(_status(result, message_limit=0)) - len(": "))
    # The last part of the content is followed by a line break only where a status follows it.
    kept = bounded(result.content, max_chars - len(status) if status else max_chars + 1)
    return (*kept, Text(status)) if status else kept


def status_text(result: CallFacts) -> str:
    """What the model must know beside the content; empty for a plain success."""
    return _status(result, message_limit=None)


def _status(result: CallFacts, message_limit: int | None) -> str:
    if result.outcome is Outcome.SUCCEEDED and not result.still_running and not result.replayed:
        return " ".join(part for part in (_spilled(result), _around(result), _notes(result)) if part)
    said = [
        _happened(result, message_limit),
        _stop(result),
        _exit(result),
        _spilled(result),
        _effects(result),
        _around(result),
        f"This is the recorded result of the earlier call {result.about_run_id}; nothing was run again."
        if result.replayed
        else "",
        _still(result),
        _notes(result),
    ]
    return " ".join(part for part in said if part)


def _happened(result: CallFacts, limit: int | None) -> str:
    row = find_row(result.outcome, result.code, result.started, result.ended)
    assert row is not None  # no result without a row can be built
    # A post hook that blocks puts its text into the content as well.
    if not says_more(result) or result.error is None or Text(result.error.message) in result.content:
        return row.text
    message = result.error.message.strip() if limit is None else cut(result.error.message.strip(), limit)
    return sentence(f"{row.text.removesuffix('.')}: {message}" if row.text and message else row.text or message)


def _stop(result: CallFacts) -> str:
    stop = result.stop
    if stop is None or result.outcome is Outcome.SUCCEEDED:
        return ""
    if result.outcome is Outcome.TIMED_OUT and stop.source == Source.TIMEOUT:
        reason = stop.reason.strip()
        return sentence(reason[:1].upper() + reason[1:])
    if result.outcome in _STOPPED:
        return f"The stop came from {asked_by(stop)}."
    return f"It had also been asked to stop, by {asked_by(stop)}."


def _spilled(result: CallFacts) -> str:
    files = result.process.spill if result.process is not None else ()
    return f"More of its output is in {', '.join(map(one_line, files))}." if files else ""


def _effects(result: CallFacts) -> str:
    if result.outcome is Outcome.SUCCEEDED:
        return ""
    if was_found_since(result):  # "check before you repeat it" is over: the note says what was found
        return "When it ended, it was not known whether it had taken effect."
    return effects_text(result.effects)


def effects_text(effects: Effects) -> str:
    """What is known of the effects, in a sentence or two."""
    match effects.state:
        case EffectState.NONE:
            return _none(effects)
        case EffectState.COMPLETED if effects.evidence in PROVEN:
            return f"Its change was made{naming(made(effects))}."
        case EffectState.COMPLETED:
            return "It ran to its end, so assume that it took effect; check before you repeat it."
        case EffectState.PARTIAL:
            known = f"At least part of its changes were made{naming(made(effects))}; check before you repeat it."
            return known + (f" Undone{naming(undone(effects))}." if undone(effects) else "")
        case EffectState.REVERTED:
            return "Its changes were undone."
        case EffectState.UNKNOWN:
            return _unknown(effects)


def _none(effects: Effects) -> str:
    match effects.evidence:
        case Evidence.NOT_STARTED:
            return "It was not started, so it had no effects."
        case Evidence.DECLARED:
            return "The tool is declared to change nothing."
        case Evidence.REPORTED:
            return "The tool reported that it changed nothing."
        case _:
            return "It had no effects."


def _unknown(effects: Effects) -> str:
    known, doubtful, chance = made(effects), in_doubt(effects), seen_by_chance(effects)
    said = [
        "It may have taken effect; check before you repeat it.",
        f"Known to be done{naming(known)}." if known else "",
        f"Not known whether done{naming(doubtful)}." if doubtful else "",
        f"Undone{naming(undone(effects))}." if undone(effects) else "",
        f"Changed meanwhile, by this call or by others{naming(chance)}." if chance else "",
        sentence(one_line(effects.detail[:1].upper() + effects.detail[1:])) if effects.detail and not chance else "",
    ]
    return " ".join(part for part in said if part)


def _around(result: CallFacts) -> str:
    return " ".join(f"Apart from the tool, {clause}." for clause in made_around(result.effects))


def _exit(result: CallFacts) -> str:
    process = result.process
    if is_end_unknown(result):
        return "How it ended is not known."
    if process is None or not result.started or result.outcome is Outcome.SUCCEEDED:
        return ""
    if process.signal is not None:
        return f"Signal: {process.signal}."
    return f"Exit status: {process.exit_code}." if process.exit_code is not None else ""


def _still(result: CallFacts) -> str:
    if result.still_running is None:
        return "Nothing of it was found running, but that cannot be proven here."
    running = still(result.still_running)
    return f"{running[0].upper()}{running[1:]}." if result.still_running else ""


def _notes(result: CallFacts) -> str:
    return " ".join(sentence(note.text) for note in result.notes if note.kind is not NoteKind.HOOKS_LOST)
