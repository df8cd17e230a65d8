"""What a command's exit and output mean for its call. Pure."""

from collections.abc import Sequence
from typing import Any

from toolrunner.facts import Process, Text
from toolrunner.results import Code, Error, ErrorKind


def exit_failure(facts: Process, ok: Sequence[int]) -> tuple[Code | None, Error | None]:
    """Why a command that ended by itself failed; nothing when its status is one of `ok`."""
    if facts.signal is not None:
        text = f"killed by {facts.signal}, which toolrunner did not send"
        return Code.KILLED_BY_SIGNAL, Error(ErrorKind.KILLED_BY_SIGNAL, text)
    if facts.exit_code not in ok:
        return Code.EXIT_STATUS, Error(ErrorKind.EXIT_STATUS, f"exit status {facts.exit_code}")
    return None, None


def exit_value(facts: Process) -> dict[str, Any]:
    """What programs read."""
    return {"exit_code": facts.exit_code, "signal": facts.signal, "stdout": facts.stdout, "stderr": facts.stderr}


def output_content(facts: Process) -> tuple[Text, ...]:
    """What the model reads."""
    parts = [facts.stdout, f"[stderr]\n{facts.stderr}" if facts.stderr else ""]
    return tuple(Text(part) for part in parts if part)
