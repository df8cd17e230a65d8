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


@pytest.mark.case("A6")
@pytest.mark.parametrize(
    "make",
    [
        lambda: Decision("allow"),
        lambda: Decision(None),
        lambda: Decision.allow("forever"),
        lambda: Decision.allow(arguments="{}"),
        lambda: Decision.deny(3),
    ],
)
def test_anything_else_is_refused(make: Any) -> None:
    with pytest.raises(ConfigError):
        make()
