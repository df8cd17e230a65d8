"""Arguments of one call: from what a model sent to what the function takes, or a message that lets the model correct itself.

No state.
"""

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from toolrunner.tools.problems import InvalidArguments, told

SHOWN_PROBLEMS = 8
"""How many bad fields a message names: a model corrects a few at a time, and a wrong list may have thousands."""

SHOWN_CHARACTERS = 60
"""How much of a bad value is shown: enough to recognise it by, and a whole file may have been sent."""


class _Short(reprlib.Repr):
    def repr_instance(self, x: object, level: int) -> str:  # noqa: ARG002  # reprlib's
        try:
            return _cut(repr(x))
        except Exception:  # noqa: BLE001  # foreign
            return f"<{type(x).__name__}>"


_short = _Short()
_short.maxstring = _short.maxother = _short.maxlong = SHOWN_CHARACTERS
_short.maxlevel = 2
_short.maxdict = _short.maxlist = 3


@final
@dataclass(frozen=True, slots=True)
class Arguments:
    """Reads arguments for one function.

    `model` has one field per parameter, under a name of ours (a parameter may be called `json` or `_x`, a pydantic field may
    not); `names` maps those to the parameters. `expected` says in words what each known key takes.
    """

    model: type[BaseModel]
    names: Mapping[str, str]
    expected: Mapping[str, str]

    def parse(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments for the function. Raises `InvalidArguments`."""
        if not isinstance(arguments, Mapping):
            raise InvalidArguments(f"got {shortened(arguments)}; expected an object with {self._known()}")
        try:
            # A copy: what was recorded, judged and approved must not change when the body changes what it was given.
            fields = vars(self.model.model_validate(_thawed(arguments)))
        except ValidationError as error:
            raise InvalidArguments(self._message(error.errors(include_url=False, include_context=False))) from error
        except Exception as error:  # a validator of the tool's own, or nesting deeper than the stack
            raise InvalidArguments(f"the arguments could not be checked: {told(error)}") from error
        return {name: fields[field] for field, name in self.names.items()}

    def _message(self, problems: Sequence[ErrorDetails]) -> str:
        said = [self._sentence(problem) for problem in problems[:SHOWN_PROBLEMS]]
        if len(problems) > SHOWN_PROBLEMS:
            said.append(f"and {len(problems) - SHOWN_PROBLEMS} more")
        return "; ".join(said)

    def _sentence(self, problem: ErrorDetails) -> str:
        where = location(problem["loc"])
        match problem["type"]:
            case "missing":
                what = self.expected.get(where)
                return f"{where}: missing{f', expected {what}' if what else ''}"
            case "extra_forbidden" if len(problem["loc"]) == 1:
                return f"{shortened(where)}: no such parameter, {self._nearest(where)}"
            case "extra_forbidden" | "unexpected_keyword_argument":
                return f"{where}: no such field"
        return f"{where}: got {shortened(problem['input'])}, {expectation(problem['msg'])}"

    def _nearest(self, unknown: str) -> str:
        near = get_close_matches(unknown[:SHOWN_CHARACTERS], self.expected, n=1)
        return f"did you mean {near[0]!r}?" if near else f"expected {self._known()}"

    def _known(self) -> str:
        return f"only {', '.join(map(repr, self.expected))}" if self.expected else "no arguments"


def _thawed(value: Any) -> Any:
    """JSON that was frozen in whatever way in new dicts and lists, which is what pydantic takes everywhere."""
    if isinstance(value, Mapping):
        return {key: _thawed(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_thawed(one) for one in value]
    return value


def location(loc: Sequence[int | str]) -> str:
    """Where in the arguments: `files[2].path`."""
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc)
    return _cut(steps.removeprefix(".")) or "arguments"


def shortened(value: object) -> str:
    """A value in at most a line. Never raises: the value is foreign, and so is its `__repr__`."""
    try:
        return _cut(_short.repr(value))
    except Exception:  # noqa: BLE001  # keys that cannot be sorted, a type that lies
        return f"<{type(value).__name__}>"


def _cut(text: str) -> str:
    return text if len(text) <= 2 * SHOWN_CHARACTERS else text[: 2 * SHOWN_CHARACTERS] + "..."


def expectation(message: str) -> str:
    """A sentence of pydantic's as a part of ours."""
    for theirs, ours in (("Input should be ", "expected "), ("Value error, ", ""), ("Assertion failed, ", "")):
        if message.startswith(theirs):
            return ours + message.removeprefix(theirs)
    return message[:1].lower() + message[1:]
