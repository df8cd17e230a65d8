"""What a policy is shown of a call: the arguments with the tool's defaults, and the surroundings of a command. No state."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from toolrunner.facts.annotations import Isolation
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.policy import Subject
from toolrunner.policy.reading.subject import NO_PROFILE
from toolrunner.sandbox import Sandbox

_SIMPLE = (str, int, float, bool, list, dict, type(None))


def containing(state: ActiveCall, services: Services) -> tuple[Sandbox, ...]:
    """What its process would be contained by: the runner's sandbox, then its own. A body in this process is contained by none."""
    assert state.registration is not None
    tool = state.registration.tool
    is_process = state.command is not None or state.line is not None or tool.isolation is Isolation.PROCESS
    own = state.command.containing if state.command is not None else None
    return tuple(one for one in (services.sandbox, own) if one is not None) if is_process else ()


def subject_of(state: ActiveCall, services: Services) -> Subject:
    """The call as it would run. After row 2, which found the tool and made its command."""
    assert state.registration is not None
    command, line = state.command, state.line
    sandboxes = containing(state, services)
    return Subject(
        tool=state.name,
        annotations=state.registration.tool.annotations,
        arguments=_with_defaults(state.kwargs, state.arguments),
        cwd=state.environment.cwd or None,
        argv=tuple(command.argv) if command is not None else None,
        line=line.text if line is not None else None,
        env=tuple(command.env) if command is not None else (),
        profile=sandboxes[0].name if sandboxes else NO_PROFILE,
    )


def _with_defaults(parsed: Mapping[str, Any], given: Any) -> dict[str, Any]:
    """A default is judged like an argument: leaving it out must not be a way round a rule. What was given stays as given."""
    known = {name: str(value) if isinstance(value, PurePath) else value for name, value in parsed.items()}
    defaults = {name: value for name, value in known.items() if isinstance(value, _SIMPLE)}
    return {**defaults, **given} if isinstance(given, Mapping) else defaults
