"""Output of one body: from what it returned to JSON and content, or a message that says why that is not possible.

No state.
"""

import inspect
import json
from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, final

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from toolrunner.facts import Content, File, Image, Json, Text
from toolrunner.facts.frozen import freeze
from toolrunner.results import Error
from toolrunner.tools.arguments import expectation, location, shortened
from toolrunner.tools.command import Command
from toolrunner.tools.problems import InvalidOutput, told
from toolrunner.tools.reply import Reply

SHOWN_PROBLEMS = 3
"""How many mismatches a message names: the tool's author looks at the code, not at the message."""

_CONTENT: TypeAdapter[tuple[Content, ...]] = TypeAdapter(tuple[Content, ...])
_KINDS = (Text, Image, File, Json)


@final
@dataclass(frozen=True, slots=True)
class Output:
    """Reads what one function returns. `returns` validates its return annotation; None where everything that is JSON is right."""

    returns: TypeAdapter[Any] | None = None

    def dump(self, returned: object) -> Reply:
        """`returned` as JSON and content. Raises `InvalidOutput`."""
        if isinstance(returned, Reply):
            return _reply(returned)
        _refuse_undone(returned)
        value = returned if self.returns is None else _checked(self.returns, returned)
        if isinstance(value, Reply):
            return _reply(value)
        if isinstance(value, _KINDS):
            return Reply(content=_content((value,)))
        if isinstance(value, list | tuple) and any(isinstance(part, _KINDS) for part in value):
            return Reply(content=_content(value))
        plain = as_json(value)
        return Reply(value=plain, content=_shown(plain))


def as_json(value: object) -> JsonValue:
    """`value` as JSON that survives being written as UTF-8 and read again. Raises `InvalidOutput`."""
    if type(value) is str:
        return _unicode(value)
    try:
        plain: JsonValue = to_jsonable_python(value)
        # What pydantic lets through and JSON does not have: NaN, infinities, lone surrogates, ints too long to be written.
        json.dumps(plain, ensure_ascii=False, allow_nan=False).encode()
        return freeze(plain, "the value")  # it is shown to hooks, wrappers and observers, and a result is nobody's to change
    except UnicodeEncodeError as error:
        raise InvalidOutput(_no_unicode(value)) from error
    except Exception as error:  # a value's own serialiser, or nesting deeper than the stack
        raise InvalidOutput(f"returned {_named(value)}, which cannot be JSON: {told(error)}") from error


def _reply(reply: Reply) -> Reply:
    if reply.error is not None and not isinstance(reply.error, Error):
        raise InvalidOutput(f"Reply.error is {shortened(reply.error)}; expected a results.Error or None")
    value = as_json(reply.value)
    content = reply.content if isinstance(reply.content, Sequence) else (reply.content,)
    shown = _content(content)
    if not shown and reply.error is None:
        shown = _shown(value)
    if isinstance(reply.follow_up, str) or not isinstance(reply.follow_up, Sequence):
        raise InvalidOutput(f"Reply.follow_up is {shortened(reply.follow_up)}; expected a sequence of values")
    return Reply(value, shown, tuple(as_json(one) for one in reply.follow_up), reply.error)


def _shown(value: JsonValue) -> tuple[Content, ...]:
    if value is None:
        return ()
    return (Text(value),) if isinstance(value, str) else (Json(value),)


def _content(parts: Sequence[object]) -> tuple[Content, ...]:
    """Parts as content, copied and checked: a dataclass does not check its fields, and a wrong one breaks a whole request."""
    wrong = [part for part in parts if not isinstance(part, _KINDS)]
    if wrong:
        raise InvalidOutput(
            f"content holds {shortened(wrong[0])}; expected Text, Image, File or Json (a value goes in Reply.value)"
        )
    checked: tuple[Content, ...] = _checked(_CONTENT, tuple(as_json(part) for part in parts))
    return tuple(Json(freeze(part.json, "the content")) if isinstance(part, Json) else part for part in checked)


def _checked(returns: TypeAdapter[Any], returned: object) -> Any:
    try:
        return returns.validate_python(returned)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
        said = "; ".join(f"{location(('value', *one['loc']))}: {expectation(one['msg'])}" for one in found[:SHOWN_PROBLEMS])
        raise InvalidOutput(f"returned {shortened(returned)}, which its return annotation does not allow: {said}") from error
    except Exception as error:  # a validator of the tool's own
        raise InvalidOutput(f"returned {_named(returned)}, which could not be checked: {told(error)}") from error


def _refuse_undone(returned: object) -> None:
    """Refuse what only stands for something that was not done: reading it here would be running the body after its end."""
    if isinstance(returned, Command):
        raise InvalidOutput("returned a Command, which was not run; declare the tool with @command_tool")
    if inspect.iscoroutine(returned):
        returned.close()  # or the interpreter warns of it at some later moment, in some other test
    if inspect.isawaitable(returned):
        raise InvalidOutput("returned an awaitable instead of a value; declare the tool with `async def` and await it there")
    if inspect.isgenerator(returned) or inspect.isasyncgen(returned):
        raise InvalidOutput("returned a generator, whose code has not run; return a list instead")


def _unicode(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidOutput(_no_unicode(text)) from error
    return text


def _no_unicode(value: object) -> str:
    return f"returned {_named(value)} with a lone surrogate, as in the name of a file that is no UTF-8; replace it first"


def _named(value: object) -> str:
    return type(value).__name__ if is_dataclass(value) else f"{type(value).__name__} {shortened(value)}"
