"""Which tools may ask for a process of their own is told when they are defined, or when they are registered."""

import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from isolation import workers

from toolrunner import Command, Runner, command_tool, tool
from toolrunner.errors import ToolDefinitionError
from toolrunner.facts import Isolation
from toolrunner.tools import Catalogue


def top() -> str:
    return "top"


class Owner:
    def method(self) -> str:
        return "bound"

    @staticmethod
    def static() -> str:
        return "static"


def made_inside() -> Callable[[], str]:
    def inner() -> str:
        return "inner"

    return inner


@pytest.mark.parametrize(
    "fn, said",
    [
        (made_inside(), "was made inside another function"),
        (lambda: 1, "was made inside another function"),
        (Owner().method, "is a method, not a plain function"),
        (Owner.static, "belongs to a class"),
    ],
    ids=["closure", "lambda", "method", "static"],
)
def test_a_function_that_no_worker_could_import_is_refused(fn: Callable[..., Any], said: str) -> None:
    with pytest.raises(ToolDefinitionError, match=said):
        tool(fn, name="it", isolation="process")


def test_a_function_of_the_script_that_is_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top, "__module__", "__main__")
    with pytest.raises(ToolDefinitionError, match="is defined in the script that is being run"):
        tool(top, isolation="process")


def test_a_function_of_no_module_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "by_hand", types.ModuleType("by_hand"))
    monkeypatch.setattr(top, "__module__", "by_hand")
    with pytest.raises(ToolDefinitionError, match="its module 'by_hand' cannot be imported"):
        tool(top, isolation="process")


def test_a_function_that_its_module_does_not_have_is_refused_when_it_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    made = tool(top, isolation="process")
    Catalogue([made])
    monkeypatch.setattr(sys.modules[top.__module__], "top", made_inside())
    for register in (lambda: Catalogue([made]), lambda: Runner([made])):
        with pytest.raises(ToolDefinitionError, match="has something else, or nothing, under the name top"):
            register()


def test_isolation_is_a_field_of_the_tool_and_only_its_words_are_taken() -> None:
    assert workers.hello.isolation is Isolation.PROCESS
    assert tool(top).isolation is Isolation.NONE
    assert tool(top, isolation=Isolation.PROCESS).isolation is Isolation.PROCESS
    with pytest.raises(ToolDefinitionError, match="isolation is 'thread'; expected 'none' or 'process'"):
        tool(top, isolation="thread")  # type: ignore[call-overload]


def test_a_command_tool_is_a_process_already() -> None:
    def listing() -> Command:
        return Command(("ls",))

    with pytest.raises(ToolDefinitionError, match="is a command tool, which runs as a process already"):
        command_tool(listing, isolation="process")


def test_a_sync_tool_with_a_time_limit_warns_only_where_it_cannot_be_stopped() -> None:
    with pytest.warns(UserWarning, match='use isolation="process"'):
        tool(top, timeout=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tool(top, timeout=1, isolation="process")
