"""JSON values that nobody can change: arguments are read once, frozen, and handed to everybody as they are.

Subclasses of dict and list rather than views, so that json, pydantic and tools see the plain types they know. A copy (copy,
deepcopy, pickle) is a plain dict or list again, which its owner may change.
"""

import math
import sys
from collections.abc import Mapping
from typing import Any, NoReturn, SupportsIndex, final

from pydantic import JsonValue

MAX_DEPTH = 200
"""Deeper nesting is refused: it would end in RecursionError in somebody's JSON writer."""


SAFE_BITS = 2_000
"""A whole number of so many bits can be written whatever the interpreter's limit is (640 digits at least, sys.int_info)."""


_SMALL = 2**63
"""Whole numbers below are written by every JSON writer."""


class FreezeError(ValueError):
    """A value that cannot become JSON without loss. The message names the place and the type."""


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("these arguments are frozen; copy them to change them")


@final
class FrozenDict(dict[str, Any]):
    """A dict that refuses every change."""

    __slots__ = ()
    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]:
        # The default fills an empty one of its own kind, which refuses.
        return dict, (dict(self),)


_EMPTY = FrozenDict()


@final
class FrozenList(list[Any]):
    """A list that refuses every change."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = clear = extend = insert = pop = remove = _refuse
    reverse = sort = _refuse

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]:
        return list, (list(self),)


def freeze_arguments(value: object, what: str = "arguments") -> dict[str, Any]:
    """A frozen copy of a call's arguments. Raises `FreezeError` for anything but an object that JSON can say exactly."""
    if not isinstance(value, Mapping):
        raise FreezeError(f"{what} are a {type(value).__name__}; expected an object")
    if not value and type(value) is dict:  # metadata mostly is; nobody can change it, so all may have the same one
        return _EMPTY
    return FrozenDict(
        {_key(key, what): item if _needs_no_look(item) else freeze(item, f"{what}.{key}", 1) for key, item in value.items()}
    )


def _needs_no_look(item: object) -> bool:
    """Whether it is what most arguments are: a plain short scalar, which JSON says exactly. Its place need not be named then."""
    kind = type(item)
    if kind is int:
        return -_SMALL < item < _SMALL  # type: ignore[operator]
    return item is None or kind is bool or (kind is str and item.isascii())  # type: ignore[attr-defined]


def freeze(value: object, path: str, depth: int = 0) -> JsonValue:
    """A frozen copy of a JSON value. Raises `FreezeError` for anything that JSON cannot say exactly.

    Tuples become lists; keys must be strings (JSON would turn others into strings silently); floats must be finite.
    """
    if depth > MAX_DEPTH:
        raise FreezeError(f"{path} is nested deeper than {MAX_DEPTH} levels")
    if value is None or isinstance(value, str | bool | int | float):
        return _plain_scalar(value, path)
    if isinstance(value, Mapping):
        return FrozenDict({_key(key, path): freeze(item, f"{path}.{key}", depth + 1) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return FrozenList([freeze(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)])
    raise FreezeError(f"{path} is a {type(value).__name__}, which JSON cannot say")


def _plain_scalar(value: str | float | None, path: str) -> JsonValue:
    # An enum member or another subclass would be written as its base and read back as something else.
    if type(value) not in (str, bool, int, float, type(None)):
        raise FreezeError(f"{path} is a {type(value).__name__}, which JSON cannot say")
    if isinstance(value, str) and not value.isascii():
        _refuse_lone_surrogates(value, path)
    if isinstance(value, float) and not math.isfinite(value):
        raise FreezeError(f"{path} is {value!r}; JSON has no such number")
    if isinstance(value, int) and value.bit_length() > SAFE_BITS:
        _refuse_unwritable(value, path)
    return value


def _refuse_unwritable(value: int, path: str) -> None:
    # Python refuses to write, and most readers to read, what has too many digits (CVE-2020-10735).
    try:
        str(value)
    except ValueError as error:
        raise FreezeError(f"{path} is a number of more than {sys.get_int_max_str_digits()} digits") from error


def _refuse_lone_surrogates(value: str, path: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise FreezeError(f"{path} holds a lone surrogate, which UTF-8 cannot say") from error


def _key(key: object, path: str) -> str:
    if type(key) is not str:
        raise FreezeError(f"{path} has the key {key!r}; JSON keys are strings")
    if not key.isascii():
        _refuse_lone_surrogates(key, f"a key of {path}")
    return key
