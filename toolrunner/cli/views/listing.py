"""Records as lines for people: `toolrunner log`. Pure. Everything foreign goes through `printable`."""

from typing import Any

from rich.text import Text

from toolrunner.cli.printable import printable, shown
from toolrunner.cli.views.conversation import subject
from toolrunner.cli.views.steps import step_name, told

SHORT_ID = 8
"""Characters of a run id that are shown; any prefix that is unique is understood."""

LONGEST = 300
"""Characters said about one record in a line."""

_STYLES = {
    "call/stop_requested": "yellow",
    "call/stop_delivered": "yellow",
    "effect/unknown": "red",
    "effect/applied": "cyan",
    "effect/undone": "cyan",
    "call/settled": "bold",
    "user/message": "bold",
    "assistant/message": "bold",
}


def plain_line(record: Any, name: str) -> str:
    """One record in one line, its columns separated by two blanks. `name` is its call's."""
    at = _time(record, "%Y-%m-%d %H:%M:%S.%f")
    words = [at, printable(record.run_id[:SHORT_ID]), printable(_about(record, name), LONGEST), step_name(record)]
    said = printable(told(record), LONGEST)
    return "  ".join([*words, said] if said else words)


def styled_line(record: Any, name: str) -> Text:
    """The same for a terminal."""
    at = _time(record, "%H:%M:%S.%f")
    line = Text.assemble((at, "dim"), "  ", shown(record.run_id[:SHORT_ID], "dim"), "  ")
    line.append_text(shown(_about(record, name), limit=LONGEST)).append("  ")
    line.append(step_name(record), _style(record))
    said = told(record)
    return line.append("  ").append_text(shown(said, limit=LONGEST)) if said else line


def _about(record: Any, name: str) -> str:
    """The call's name; of a conversation, who speaks or acts; else a dash, so that every line has the same columns."""
    return name or subject(record) or "-"


def _time(record: Any, form: str) -> str:
    """Its wall time in local time; a record of later days that cannot be read as one has none."""
    at = getattr(record, "at", None)
    return at.astimezone().strftime(form)[:-3] if at is not None else "-"


def _style(record: Any) -> str:
    result = getattr(record, "result", None)
    if str(record.type) == "call/settled" and result is not None and result.is_error:
        return "bold red"
    return _STYLES.get(str(record.type), "")
