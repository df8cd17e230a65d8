"""What a policy is shown of a call: the arguments with the tool's defaults, and the surroundings of a command. No state."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from toolrunner.pipeline.state import ActiveCall
from toolrunner.policy import Subject

_SIMPLE = (str, int, float, bool, list, dict, type(None))


def subject_of(state: ActiveCall) -> Subject:
    """The call as it would run. After row 2, which found the tool and made its command."""
    assert state.registration is not None
    command, line = state.command, state.line
    return Subject(
        tool=state.name,
        annotations=state.registration.tool.annotations,
        arguments=_with_defaults(state.kwargs, state.arguments),
        cwd=state.environment.cwd or None,
        argv=tuple(command.argv) if command is not None else None,
        line=line.text if line is not None else None,
        env=tuple(command.env) if command is not None else (),
    )


def _with_defaults(parsed: Mapping[str, Any], given: Any) -> dict[str, Any]:
    """A default is judged like an argument: leaving it out must not be a way round a rule. What was given stays as given."""
    known = {name: str(value) if isinstance(value, PurePath) else value for name, value in parsed.items()}
    defaults = {name: value for name, value in known.items() if isinstance(value, _SIMPLE)}
    return {**defaults, **given} if isinstance(given, Mapping) else defaults
