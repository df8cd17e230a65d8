"""Foreign exceptions as facts. They are looked at here and nowhere else: any attribute of theirs may raise when it is read.

No state.
"""

from toolrunner.errors import ToolError
from toolrunner.facts.texts import well_formed
from toolrunner.results import Error, ErrorKind


def is_a(error: BaseException, *kinds: type[BaseException]) -> bool:
    """`isinstance` by the real type alone: it would also ask `error.__class__`, which may be a property that raises."""
    return issubclass(type(error), kinds)


def type_name(error: BaseException) -> str:
    """The name of its type, also when a metaclass hides it."""
    try:
        return well_formed(str(type(error).__name__))
    except Exception:  # noqa: BLE001 - hostile metaclass
        return "an exception"


def text_of(error: BaseException) -> str:
    """Its text, also when its `__str__` raises."""
    try:
        return well_formed(str(error))
    except Exception:  # noqa: BLE001 - hostile or broken __str__
        return "(no text: its __str__ raised)"


def attribute(error: BaseException, name: str) -> str:
    """One of its attributes as text; empty when it has none, or none that can be read."""
    try:
        value = getattr(error, name, None)
        return well_formed(str(value)) if value else ""
    except Exception:  # noqa: BLE001 - hostile or broken attribute
        return ""


def members(error: BaseException) -> tuple[BaseException, ...]:
    """The exceptions in a group; none for anything else."""
    if not is_a(error, BaseExceptionGroup):
        return ()
    inside: tuple[BaseException, ...] = BaseExceptionGroup.exceptions.__get__(error)  # the slot itself, past any override
    return inside


def interrupt_in(error: BaseException) -> BaseException | None:
    """The KeyboardInterrupt or SystemExit that an exception is, or that a task group of the body wrapped; None for any other."""
    if is_a(error, KeyboardInterrupt, SystemExit):
        return error
    return next((found for inner in members(error) if (found := interrupt_in(inner)) is not None), None)


def error_fact(error: BaseException) -> Error:
    """What a body raised, as a fact. A `ToolError` speaks for itself; anything else is told with its type."""
    if is_a(error, ToolError):
        said = attribute(error, "message") or text_of(error) or type_name(error)
        return Error(attribute(error, "kind") or ErrorKind.TOOL_ERROR, said)
    name, text = type_name(error), text_of(error)
    inside = members(error)
    if inside:
        text = f"{attribute(error, 'message')}: {'; '.join(error_fact(one).message for one in inside)}"
    return Error(ErrorKind.EXCEPTION, f"{name}: {text}" if text else name)
