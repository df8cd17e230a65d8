"""A tool that could not be run as declared is refused when it is defined, by name, with what to change."""

import functools
import math
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from toolrunner.errors import ToolDefinitionError
from toolrunner.facts import Annotations
from toolrunner.tools import (
    BodyKind,
    Command,
    Resource,
    RetryPolicy,
    Tool,
    ToolContext,
    ToolDefinitionWarning,
    command_tool,
    tool,
)


async def read(path: str) -> str:
    """Read a file."""
    return path


NO_SECONDS = [0, 0.0, -1, -0.5, math.nan, math.inf, -math.inf, True, "5"]


@pytest.mark.case("E11")
@pytest.mark.parametrize("seconds", NO_SECONDS)
def test_a_timeout_that_is_no_time_is_refused_at_definition(seconds: Any) -> None:
    with pytest.raises(ToolDefinitionError, match=r"tool 'read': timeout is .*finite number of seconds above 0"):
        tool(timeout=seconds)(read)


@pytest.mark.case("E11")
@pytest.mark.parametrize("seconds", [-1, math.nan, math.inf, False, "5"])
def test_a_grace_that_is_no_time_is_refused_at_definition(seconds: Any) -> None:
    with pytest.raises(ToolDefinitionError, match=r"tool 'read': kill_after is .*0 or more"):
        tool(kill_after=seconds)(read)


def test_a_grace_of_nothing_means_kill_at_once() -> None:
    assert tool(kill_after=0)(read).kill_after == 0


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, "5", None])
def test_an_expiry_of_deduplication_that_is_no_time_is_refused(seconds: Any) -> None:
    if seconds is None:
        assert tool(read).dedupe_by_arguments is False
        return
    with pytest.raises(ToolDefinitionError, match="dedupe_by_arguments is"):
        tool(dedupe_by_arguments=seconds)(read)


@pytest.mark.parametrize("count", [0, -1, 1.0, True, "2"])
def test_a_max_concurrency_that_is_no_count_is_refused(count: Any) -> None:
    with pytest.raises(ToolDefinitionError, match=r"max_concurrency is .*whole number, 1 or more"):
        tool(max_concurrency=count)(read)


@pytest.mark.parametrize(
    "retry",
    [
        0,
        -1,
        True,
        1.5,
        "3",
        RetryPolicy(0),
        RetryPolicy(2, wait_initial=-1),
        RetryPolicy(2, wait_initial=5, wait_max=1),
        RetryPolicy(2, wait_max=math.inf),
        RetryPolicy(2, wait_initial=math.nan),
    ],
)
def test_a_retry_that_cannot_be_followed_is_refused(retry: Any) -> None:
    with pytest.raises(ToolDefinitionError, match="retry"):
        tool(retry=retry)(read)


def test_a_number_of_attempts_is_a_retry_policy() -> None:
    assert tool(retry=3)(read).retry == RetryPolicy(3)


@pytest.mark.parametrize("name", ["", "a b", "a.b", "ä", "a" * 65, "a\n", 5])
def test_a_name_that_providers_refuse_is_refused(name: Any) -> None:
    with pytest.raises(ToolDefinitionError, match="a name that providers refuse"):
        tool(name=name)(read)


def test_a_lambda_has_no_name_to_give() -> None:
    with pytest.raises(ToolDefinitionError, match="<lambda>"):
        tool(lambda: 1)
    assert tool(name="one")(lambda: 1).name == "one"


def starred(*paths: str) -> None: ...
def double_starred(**paths: str) -> None: ...
def positional(path: str, /) -> None: ...
def unhinted(path) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001
def unresolved(path: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821
def callback(path: Callable[[], int]) -> None: ...
def opaque(path: "Opaque") -> None: ...
def returns_command() -> Command: ...  # type: ignore[empty-body]
def returns_opaque() -> "Opaque": ...  # type: ignore[empty-body]
def two_contexts(a: ToolContext[None], b: ToolContext[None]) -> None: ...
def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


class Opaque:
    def method(self, path: str) -> str:
        """Read with me."""
        return f"{type(self).__name__} {path}"


@pytest.mark.parametrize(
    "fn, said",
    [
        (starred, r"\*paths takes any number of arguments"),
        (double_starred, r"\*\*paths takes any argument"),
        (positional, "parameter 'path' is positional-only"),
        (unhinted, "parameter 'path' has no type hint"),
        (unresolved, "a type hint that cannot be resolved .*Nowhere"),
        (callback, "parameter 'path' cannot be given as JSON .*Callable"),
        (opaque, "parameter 'path' cannot be given as JSON .*Opaque"),
        (returns_opaque, "its return type .*Opaque.* cannot be turned into JSON"),
        (returns_command, "declare it with @command_tool"),
        (two_contexts, "takes the context more than once: a, b"),
        (generator, "is a generator; return one value"),
        (async_generator, "is a generator; return one value"),
        (Opaque.method, r"it takes self.*tool\(thing.method\)"),
        (staticmethod(starred), "put @staticmethod above the tool decorator"),
        (classmethod(starred), "put @classmethod above the tool decorator"),  # type: ignore[arg-type]
        (functools.partial(read, path="a"), "is a functools.partial, not a function"),
        (Opaque, "is a type, not a function"),
        (5, "is a int, not a function"),
        (tool(read), "is a tool already"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused_by_name(fn: Any, said: str) -> None:
    with pytest.raises(ToolDefinitionError, match=said):
        tool(fn)


def test_a_bound_method_is_a_tool() -> None:
    made = tool(Opaque().method)
    assert (made.name, made.description, list(made.parameters["properties"])) == ("method", "Read with me.", ["path"])
    assert made(path="x") == "Opaque x"


def test_an_unknown_option_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ToolDefinitionError, match=r"has no option 'sandboxed'; there are: .*timeout"):
        tool(sandboxed=True)(read)  # type: ignore[call-overload]


@pytest.mark.parametrize("option", ["read_only", "destructive", "idempotent", "open_world"])
def test_a_declaration_that_is_no_yes_or_no_is_refused(option: str) -> None:
    with pytest.raises(ToolDefinitionError, match=f"{option} is 'yes'; expected True or False"):
        tool(**{option: "yes"})(read)  # type: ignore[call-overload]


def test_read_only_and_destructive_contradict_each_other() -> None:
    with pytest.raises(ToolDefinitionError, match="read_only and destructive"):
        tool(read_only=True, destructive=True)(read)


@pytest.mark.parametrize("option", ["parallel_safe", "resources"])
def test_what_should_be_a_function_and_is_none_is_refused(option: str) -> None:
    with pytest.raises(ToolDefinitionError, match=f"{option} is 'x'; expected"):
        tool(**{option: "x"})(read)  # type: ignore[call-overload]


@pytest.mark.parametrize("watch", [5, [5], [b"x"], "", [""]])
def test_a_watch_that_names_no_folder_is_refused(watch: Any) -> None:
    with pytest.raises(ToolDefinitionError, match="watch"):
        tool(watch=watch)(read)


def test_one_watched_folder_needs_no_list(tmp_path: Any) -> None:
    assert tool(watch="data")(read).watch == ("data",)
    assert tool(watch=[tmp_path, "b"])(read).watch == (str(tmp_path), "b")


def test_a_sync_body_with_a_timeout_warns_once_that_a_thread_cannot_be_stopped() -> None:
    def wait(path: str) -> str:
        return path

    with pytest.warns(ToolDefinitionWarning, match="a thread cannot be stopped") as warned:
        made = tool(timeout=5)(wait)
    assert [one.filename for one in warned] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        replace(made, name="renamed")
        tool(timeout=5)(read)
        command_tool(timeout=5)(listing)


def listing(path: str, deep: bool = False) -> Command:
    """List a folder."""
    return Command(("ls", "-R" if deep else "-1", path))


def test_the_kind_of_body_is_told_from_the_function() -> None:
    assert tool(read).kind is BodyKind.ASYNC
    assert tool(Opaque().method).kind is BodyKind.SYNC
    assert command_tool(listing).kind is BodyKind.COMMAND


def test_a_tool_is_used_with_and_without_parentheses() -> None:
    @tool
    async def bare(path: str) -> str:
        return path

    @tool()
    async def empty(path: str) -> str:
        return path

    @tool(name="other", description="Said.", read_only=True, idempotent=True, open_world=False)
    async def full(path: str) -> str:
        """Not said."""
        return path

    assert [type(one) for one in (bare, empty, full)] == [Tool, Tool, Tool]
    assert (bare.name, empty.name, full.name) == ("bare", "empty", "other")
    assert full.description == "Said."
    assert full.annotations == Annotations(read_only=True, idempotent=True, open_world=False)


@pytest.mark.anyio
async def test_a_tool_is_called_like_its_function() -> None:
    assert await tool(read)("a") == "a"
    assert await tool(read)(path="b") == "b"


def test_a_tool_is_frozen_and_its_schema_cannot_be_changed_from_outside() -> None:
    made = tool(read)
    with pytest.raises((FrozenInstanceError, TypeError)):
        made.timeout = 3  # type: ignore[misc]
    made.parameters["properties"].clear()
    assert "path" in made.parameters["properties"]


def test_the_version_tells_changed_tools_apart_and_equal_ones_not() -> None:
    made = tool(read)
    assert made.version == tool(read).version
    different = {
        made.version,
        tool(name="other")(read).version,
        tool(read_only=True)(read).version,
        tool(Opaque().method).version,
        replace(made, name="third").version,
    }
    assert len(different) == 5


def test_the_version_sees_a_changed_body_without_its_source() -> None:
    made = []
    for body in ("return 1", "return path"):
        space: dict[str, Any] = {}
        exec(f"def f(path: str):\n    {body}", space)  # noqa: S102  # a function without a source file
        made.append(tool(space["f"]).version)
    assert made[0] != made[1]


@pytest.mark.parametrize(
    "answer, parallel",
    [(True, True), (False, False), (lambda args: True, True), (lambda args: 1, False), (lambda args: "yes", False)],
)
def test_only_an_exact_true_means_parallel(answer: Any, parallel: bool) -> None:
    assert tool(parallel_safe=answer)(read).is_parallel({"path": "a"}) is parallel


def test_a_parallel_safe_that_raises_means_exclusive() -> None:
    assert tool(parallel_safe=lambda args: args["nope"])(read).is_parallel({"path": "a"}) is False


def test_read_only_tools_are_parallel_and_others_exclusive_unless_they_say_so() -> None:
    assert tool(read_only=True)(read).is_parallel({}) is True
    assert tool(read).is_parallel({}) is False
    assert tool(read_only=True, parallel_safe=False)(read).is_parallel({}) is False


def test_locks_are_sorted_and_a_key_is_locked_once_as_hard_as_it_is_used() -> None:
    made = tool(
        resources=lambda args: ["z", Resource("b", "read"), Resource(args["path"], "read"), args["path"], Resource("z", "read")]
    )(read)
    assert made.locks({"path": "a"}) == (Resource("a"), Resource("b", "read"), Resource("z"))
    assert tool(read).locks({}) == ()
