"""What is raised: misuse and broken configuration, each with a message that says what to do; never what a tool did."""

import inspect
import pickle

import pytest

from toolrunner import errors
from toolrunner.errors import (
    ConfigError,
    DuplicateTool,
    NestedRun,
    NotSettled,
    RunnerClosed,
    ToolDefinitionError,
    ToolError,
    ToolrunnerError,
    ToolrunnerInternalError,
    UnknownRun,
    UntrueResult,
)

OWN = [one for _, one in inspect.getmembers(errors, inspect.isclass) if one.__module__ == errors.__name__]
RAISED: list[tuple[ToolrunnerError, str]] = [
    (DuplicateTool("write"), "a tool named 'write' is already registered"),
    (ToolDefinitionError("write", "its path has no type"), "tool 'write': its path has no type"),
    (ConfigError("timeout", -1, "a number above 0"), "timeout is -1; expected a number above 0"),
    (RunnerClosed("it is closed"), "this runner takes no calls: it is closed"),
    (NestedRun(), "use ctx.run"),
    (NotSettled("r1"), "call 'r1' has not settled yet"),
    (UnknownRun("r1"), "no call with run_id 'r1' is known here"),
    (UntrueResult("r1", "no row has it"), "the result of call r1 cannot be true: no row has it"),
]


@pytest.mark.parametrize("error, message", RAISED, ids=lambda value: type(value).__name__)
def test_an_error_says_what_is_wrong(error: ToolrunnerError, message: str) -> None:
    assert message in str(error)
    assert isinstance(error, ToolrunnerError)
    assert "None" not in str(error)


def test_everything_raised_has_one_base_and_a_tools_own_failure_is_not_of_it() -> None:
    assert {one for one in OWN if not issubclass(one, ToolrunnerError)} == {ToolError}
    assert all(one.__doc__ for one in OWN)


def test_errors_can_be_caught_by_the_names_python_has_for_them() -> None:
    assert issubclass(ConfigError, ValueError)
    assert issubclass(UnknownRun, LookupError)
    assert issubclass(UntrueResult, ToolrunnerInternalError)
    assert issubclass(UntrueResult, ValueError), "so that reading one is a ValidationError"


def test_a_tool_error_has_a_message_for_the_model_and_a_kind_for_programs() -> None:
    error = ToolError("disk full")
    assert (str(error), error.message, error.kind) == ("disk full", "disk full", "tool_error")
    assert ToolError("x", kind="limit").kind == "limit"


@pytest.mark.parametrize(
    "error", [*(error for error, _ in RAISED), ToolError("disk full", kind="limit")], ids=lambda one: type(one).__name__
)
def test_an_error_comes_whole_out_of_another_process(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
