"""The parameters schema of a function, and the validators that belong to it, from its type hints and its docstring.

No state.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from toolrunner.errors import ToolDefinitionError
from toolrunner.tools.arguments import Arguments
from toolrunner.tools.command import Command
from toolrunner.tools.hints import NOTHING, Hints, Parameter, read_hints
from toolrunner.tools.output import Output


@final
@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes and gives. `schema` is the parameters schema as JSON text; `context` the parameter that gets it."""

    schema: str
    context: str | None
    arguments: Arguments
    output: Output


class _Schema(GenerateJsonSchema):
    """Without titles that only repeat a name (tokens that tell a model nothing), and quiet about defaults that are no JSON."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  # the base class's own declaration

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  # pydantic's
        return False


def read_signature(tool: str, fn: Callable[..., object], docs: Mapping[str, str]) -> Signature:
    """The signature of a function whose return value is the tool's output.

    Raises:
        ToolDefinitionError: naming the parameter that cannot be given as JSON, or the return type that cannot be JSON.
    """
    hints = read_hints(tool, fn)
    if hints.returns is Command:
        raise ToolDefinitionError(tool, "returns a Command, which only says what to start; declare it with @command_tool")
    return _signature(tool, hints, docs, Output(_returns(tool, hints.returns)))


def read_command_signature(tool: str, fn: Callable[..., object], docs: Mapping[str, str]) -> Signature:
    """The signature of a function that only says what to start.

    Raises:
        ToolDefinitionError: as `read_signature`; also if it takes a context or is not annotated to return a `Command`.
    """
    hints = read_hints(tool, fn)
    if hints.context is not None:
        # It runs while the call is prepared, before anything is decided: there is nothing yet that a context could speak of.
        raise ToolDefinitionError(tool, f"{hints.context!r} asks for a context, but a command is made before the call starts")
    if hints.returns is not Command:
        raise ToolDefinitionError(tool, "is a command tool; annotate its function with `-> Command`")
    return _signature(tool, hints, docs, Output())


def _signature(tool: str, hints: Hints, docs: Mapping[str, str], output: Output) -> Signature:
    model, schema = _model(tool, hints.parameters, docs)
    names = {field: one.name for field, one in _named(hints.parameters)}
    defs = schema.get("$defs", {})
    if len(schema["properties"]) != len(names):
        raise ToolDefinitionError(tool, "two of its parameters have the same alias")
    expected = {key: in_words(part, defs) for key, part in schema["properties"].items()}
    return Signature(json.dumps(schema), hints.context, Arguments(model, names, expected), output)


def _named(parameters: Iterable[Parameter]) -> Iterable[tuple[str, Parameter]]:
    return ((f"p{index}", one) for index, one in enumerate(parameters))


def _model(tool: str, parameters: tuple[Parameter, ...], docs: Mapping[str, str]) -> tuple[type[BaseModel], dict[str, Any]]:
    try:
        return _built(parameters, docs)
    except PydanticUserError as error:
        # One by one, because pydantic's own message names the type and not the parameter.
        for one in parameters:
            _probe(tool, one, docs)
        raise ToolDefinitionError(tool, f"its parameters have no JSON Schema: {_reason(error)}") from error


def _probe(tool: str, parameter: Parameter, docs: Mapping[str, str]) -> None:
    try:
        _built((parameter,), docs)
    except PydanticUserError as error:
        problem = f"parameter {parameter.name!r} cannot be given as JSON ({parameter.hint!r}): {_reason(error)}"
        raise ToolDefinitionError(tool, problem) from error


def _built(parameters: tuple[Parameter, ...], docs: Mapping[str, str]) -> tuple[type[BaseModel], dict[str, Any]]:
    fields: dict[str, Any] = {field: _field(one, docs.get(one.name)) for field, one in _named(parameters)}
    model = create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)
    schema = model.model_json_schema(schema_generator=_Schema)
    schema.pop("title", None)
    return model, {"type": "object", "properties": {}, **schema}


def _field(parameter: Parameter, doc: str | None) -> tuple[Any, Any]:
    """The field of a parameter. What its author said with `Field(...)`, in the hint or as the default, wins."""
    default = ... if parameter.default is NOTHING else parameter.default
    said = [FieldInfo.from_annotation(parameter.hint), *([default] if isinstance(default, FieldInfo) else [])]
    alias = None if any(one.alias or one.validation_alias for one in said) else parameter.name
    description = None if any(one.description for one in said) else doc
    # Not the model's alias_generator: pydantic hands it down to dataclasses and TypedDicts in hints and renames their fields.
    hint = parameter.hint
    for field in filter(None, (alias and Field(alias=alias), description and Field(description=description))):
        hint = Annotated[hint, field]
    return hint, default


def _reason(error: PydanticUserError) -> str:
    """The first sentence of pydantic's message; the rest advises settings that only a model class has."""
    return error.message.partition(". ")[0].removesuffix(".")


def _returns(tool: str, hint: Any) -> TypeAdapter[Any] | None:
    if hint is NOTHING or hint is Any:
        return None
    try:
        return TypeAdapter(hint)
    except PydanticUserError as error:
        problem = f"its return type {hint!r} cannot be turned into JSON: {_reason(error)}"
        raise ToolDefinitionError(tool, problem) from error


def in_words(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> str:
    """What a schema takes, in a few words for a message."""
    if "$ref" in schema:
        return in_words(defs.get(schema["$ref"].rpartition("/")[2], {}), {})
    if "enum" in schema or "const" in schema:
        return "one of " + ", ".join(json.dumps(one) for one in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(in_words(part, defs) for part in schema["anyOf"]))
    kind = schema.get("type", "any value")
    items = schema.get("items")
    return f"array of {in_words(items, defs)}" if kind == "array" and isinstance(items, Mapping) else str(kind)
