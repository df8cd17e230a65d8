"""Decisions: three, and nothing else."""

from typing import Any

import pytest

from toolrunner.errors import ConfigError
from toolrunner.policy import Decision, DecisionKind


def test_the_three_decisions() -> None:
    assert Decision.allow() == Decision(DecisionKind.ALLOW, "once")
    assert Decision.allow("session", {"a": 1}).arguments == {"a": 1}
    assert Decision.deny("use read_file").feedback == "use read_file"
    assert Decision.stop().kind is DecisionKind.STOP


untyped: Any = Decision  # what a program without a type checker can write


@pytest.mark.case("A6")
@pytest.mark.parametrize(
    "make",
    [
        lambda: untyped("allow"),
        lambda: untyped(None),
        lambda: untyped.allow("forever"),
        lambda: untyped.allow(arguments="{}"),
        lambda: untyped.deny(3),
    ],
)
def test_anything_else_is_refused(make: Any) -> None:
    with pytest.raises(ConfigError):
        make()
