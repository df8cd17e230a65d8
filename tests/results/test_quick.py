"""`quick`: the same dataclass, made faster."""

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace

import pytest

from toolrunner.facts.quick import quick


@dataclass(frozen=True, slots=True)
class Base:
    """What both have."""

    first: int
    made: list[int] = field(default_factory=list)
    word: str = "word"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain(Base):
    """As `dataclass` makes it."""

    last: int = 4

    def __post_init__(self) -> None:
        if self.first < 0:
            raise ValueError(self.first)


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Quick(Base):
    """The same, made faster."""

    last: int = 4

    def __post_init__(self) -> None:
        if self.first < 0:
            raise ValueError(self.first)


def values(one: Base) -> dict[str, object]:
    return {part.name: getattr(one, part.name) for part in fields(one)}


@pytest.mark.parametrize(
    "given", [((1,), {}), ((1, [2], "x"), {"last": 5}), ((), {"first": 1, "made": [3], "word": "y"}), ((1,), {"last": 0})]
)
def test_it_has_the_same_fields_however_it_is_called(given: tuple[tuple[object, ...], dict[str, object]]) -> None:
    args, kwargs = given
    assert values(Quick(*args, **kwargs)) == values(Plain(*args, **kwargs))  # type: ignore[arg-type]
    assert inspect.signature(Quick) == inspect.signature(Plain)
    assert str(inspect.signature(Quick)) == str(inspect.signature(Plain))


@pytest.mark.parametrize("given", [((), {}), ((1, [2], "x", 4), {}), ((1,), {"other": 1}), ((1,), {"first": 1})])
def test_it_refuses_what_the_original_refuses(given: tuple[tuple[object, ...], dict[str, object]]) -> None:
    args, kwargs = given
    for made in (Plain, Quick):
        with pytest.raises(TypeError):
            made(*args, **kwargs)  # type: ignore[arg-type]


def test_nobody_can_change_it_and_its_check_is_made() -> None:
    one = Quick(1)
    for name in ("first", "last", "new"):
        with pytest.raises((FrozenInstanceError, TypeError)):
            setattr(one, name, 2)
    with pytest.raises(ValueError, match="-1"):
        Quick(-1)


def test_each_has_what_its_factory_makes() -> None:
    assert Quick(1).made == []
    assert Quick(1).made is not Quick(1).made


def test_it_is_replaced_copied_compared_and_pickled() -> None:
    one = Quick(1, [2], last=3)
    assert replace(one, last=4) == Quick(1, [2], last=4) != one
    assert copy.deepcopy(one) == one == pickle.loads(pickle.dumps(one))  # noqa: S301 - our own
    assert repr(one) == "Quick(first=1, made=[2], word='word', last=3)"


def test_a_class_without_slots_or_with_a_field_that_is_not_given_is_refused() -> None:
    @dataclass(frozen=True)
    class NoSlots:
        first: int = 1

    @dataclass(frozen=True, slots=True)
    class NotGiven:
        first: int = field(init=False, default=1)

    for cls in (NoSlots, NotGiven):
        with pytest.raises(TypeError, match="first is no slot"):
            quick(cls)
