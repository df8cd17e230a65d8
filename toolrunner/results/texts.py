"""Sentences about a result, from the closed set: one per legal row, one per state of the effects, one per way of stopping.

Nothing here may claim more than the facts: a change is claimed on reported or observed evidence only, and "not started" is
said only of a call that was not.
"""

import json
from collections.abc import Sequence

from toolrunner.facts import Change, Content, Effects, EffectState, Evidence, File, Image, Json, NoteKind, StillRunning, Text
from toolrunner.results.model import CallFacts
from toolrunner.results.rows import find_row
from toolrunner.results.words import Code, Ended, Outcome

SHOWN_NAMES = 5
"""How many paths, targets or pids a sentence names before it only counts the rest."""

_PROVEN = (Evidence.REPORTED, Evidence.OBSERVED)


def content_for_model(result: CallFacts, max_chars: int | None = None) -> tuple[Content, ...]:
    """What the model reads: the real content, then what is true of the call. `max_chars` bounds all text, head and tail kept."""
    parts: list[Content] = list(result.content)
    status = status_text(result)
    if status:
        parts.append(Text(status))
    if max_chars is None:
        return tuple(parts)
    # The status comes last and is short; it is what must never be cut, so the content is cut to make room for it.
    room = max(0, max_chars - len(status))
    bounded: list[Content] = []
    for part in parts[: len(result.content)]:
        text = plain_text((part,))
        if isinstance(part, Image | File) or len(text) <= room:
            bounded.append(part)
        else:
            bounded.append(Text(cut(text, room)))
        room = max(0, room - len(text))
    return (*bounded, *parts[len(result.content) :])


def plain_text(content: Sequence[Content]) -> str:
    """Content as one text; what is no text is named, not shown."""
    return "\n".join(_plain(part) for part in content)


def _plain(part: Content) -> str:
    match part:
        case Text(text=text):
            return text
        case Json(json=value):
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        case Image(media_type=media_type):
            return f"[image {media_type}]"
        case File(name=name, media_type=media_type):
            return f"[file {name} {media_type}]"


def cut(text: str, limit: int) -> str:
    """The head and tail of `text` within `limit` characters, saying how much is left out."""
    if len(text) <= limit:
        return text
    mark = f"\n[... {len(text) - limit} characters left out ...]\n"
    half = max(0, limit - len(mark)) // 2
    return text[:half] + mark + (text[-half:] if half else "")


def status_text(result: CallFacts) -> str:
    """What the model must know beside the content; empty for a plain success."""
    if result.outcome is Outcome.SUCCEEDED and not result.still_running and not result.replayed:
        return _notes(result)
    row = find_row(result.outcome, result.code, result.started, result.ended)
    said = [row.text if row else ""]
    if result.stop is not None and result.stop.reason and result.outcome in (Outcome.ABORTED, Outcome.TIMED_OUT):
        said.append(f"Asked for by {result.stop.source}: {result.stop.reason}.")
    if result.error is not None:
        said.append(result.error.message)
    said.append(_exit(result))
    if result.started and result.outcome is not Outcome.SUCCEEDED:
        said.append(effects_text(result.effects))
    if result.replayed:
        said.append(f"This is the recorded result of the earlier call {result.about_run_id}; nothing was run again.")
    said.append(_still(result.still_running))
    said.append(_notes(result))
    return " ".join(part for part in said if part)


def effects_text(effects: Effects) -> str:
    """What is known of the effects, in a sentence or two."""
    match effects.state:
        case EffectState.NONE:
            return "It had no effects."
        case EffectState.COMPLETED if effects.evidence in _PROVEN:
            return f"Its change was made{_naming(_made(effects))}."
        case EffectState.COMPLETED:
            return "It ran to its end, so assume that it took effect; check before you repeat it."
        case EffectState.PARTIAL:
            return f"Part of its changes were made{_naming(_made(effects))}; check before you repeat it."
        case EffectState.REVERTED:
            return "Its changes were undone."
        case EffectState.UNKNOWN:
            seen = f" Seen to have changed{_naming(_made(effects))}." if effects.changes else ""
            detail = f" {effects.detail}." if effects.detail else ""
            return f"It may have taken effect; check before you repeat it.{seen}{detail}"


def _made(effects: Effects) -> list[str]:
    targets = [record.target for record in effects.records if record.stage == "applied"]
    return targets + [_change(change) for change in effects.changes or ()]


def _change(change: Change) -> str:
    return f"{change.path} ({change.kind})"


def _naming(names: Sequence[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ": " + ", ".join(names[:SHOWN_NAMES]) + more


def _exit(result: CallFacts) -> str:
    process = result.process
    if process is None or not result.started:
        return ""
    if process.signal is not None:
        return f"Signal: {process.signal}."
    return f"Exit status: {process.exit_code}." if process.exit_code else ""


def _still(still: Sequence[StillRunning] | None) -> str:
    if still is None:
        return "Nothing of it was found running, but that cannot be proven here."
    if not still:
        return ""
    names = [f"{one.what} (pid {one.pid})" if one.pid is not None else one.what for one in still]
    return f"Still running{_naming(names)}."


def _notes(result: CallFacts) -> str:
    return " ".join(note.text for note in result.notes if note.kind is not NoteKind.HOOKS_LOST)


_WHAT_HAPPENED: dict[tuple[Outcome, bool], str] = {
    (Outcome.SUCCEEDED, True): "succeeded",
    (Outcome.SUCCEEDED, False): "was answered without being run",
    (Outcome.FAILED, True): "failed",
    (Outcome.FAILED, False): "failed before it was started",
    (Outcome.ABORTED, True): "was stopped",
    (Outcome.ABORTED, False): "was stopped before it started",
    (Outcome.TIMED_OUT, True): "ran over its time limit",
    (Outcome.TIMED_OUT, False): "missed the deadline before it started",
    (Outcome.DENIED, False): "was not allowed",
    (Outcome.REJECTED, False): "was refused",
}


def summary(result: CallFacts) -> str:
    """One sentence for people: what happened, how it ended, what it changed, what is left."""
    happened = _WHAT_HAPPENED[result.outcome, result.started]
    if result.replayed:
        happened += f" earlier (recorded result of {result.about_run_id})"
    details = [part for part in (_why(result), _how(result), _changed(result), _left(result)) if part]
    return f"{result.name} {happened}" + "".join(f"; {detail}" for detail in details) + "."


def _why(result: CallFacts) -> str:
    if result.error is not None:
        return result.error.message.rstrip(".")
    if result.stop is not None and result.outcome in (Outcome.ABORTED, Outcome.TIMED_OUT):
        return f"asked by {result.stop.source} ({result.stop.reason})" if result.stop.reason else f"asked by {result.stop.source}"
    return ""


def _how(result: CallFacts) -> str:
    if not result.started or result.outcome is Outcome.SUCCEEDED:
        return ""
    process = result.process
    if result.code in (Code.EXIT_STATUS, Code.KILLED_BY_SIGNAL):
        return ""  # its error has said it
    if process is not None and process.signal is not None:
        by = "after the grace period" if result.stop is not None and result.stop.escalated else ""
        return f"ended by {process.signal} {by}".rstrip()
    if process is not None and process.exit_code is not None:
        return f"exit status {process.exit_code}"
    if result.ended is Ended.RETURNED and result.outcome is not Outcome.FAILED:
        return "it had finished before it could be stopped"
    return ""


def _changed(result: CallFacts) -> str:
    effects = result.effects
    if not result.started:
        return "nothing was changed"
    if effects.changes:
        shared = " (not only by this call)" if any(change.attribution == "shared" for change in effects.changes) else ""
        return f"changed{_naming([_change(change) for change in effects.changes])}{shared}".replace("changed:", "changed")
    words = {
        EffectState.NONE: "no effects",
        EffectState.REVERTED: "changes undone",
        EffectState.PARTIAL: "part of its changes were made",
        EffectState.UNKNOWN: f"effects unknown{f', {effects.detail}' if effects.detail else ''}",
    }
    if effects.state is EffectState.COMPLETED:
        return "its change was made" if effects.evidence in _PROVEN else "effects not recorded"
    return words[effects.state]


def _left(result: CallFacts) -> str:
    if result.still_running is None:
        return "nothing found still running (not provable here)"
    if result.still_running:
        return _still(result.still_running).rstrip(".").replace("Still running", "still running")
    ended = len(result.process.leftovers) if result.process is not None else 0
    if ended:
        return f"{ended} leftover process{'es' if ended > 1 else ''} ended, nothing left running"
    return "nothing left running" if result.process is not None and result.started else ""
