"""Whatever bodies, hooks and wrappers raise: it becomes the call's one result, and its code is kept."""

from collections.abc import Callable
from typing import Any

import pytest
from pipeline.bench import (
    HOOK_FAILED_AFTER,
    PRE_HOOK_FAILED,
    RAISED,
    WRAPPER_FAILED_BEFORE,
    Coded,
    check_never_started,
    effects,
    facts,
    open_runner,
    text,
)
from pipeline.failing import NoAttributes, boom, entered, fail, fail_in_thread, raised

from toolrunner import AbortSignal, Runner, ToolCall, ToolError, ToolResult
from toolrunner.facts import EffectState, Evidence
from toolrunner.results import Code

pytestmark = pytest.mark.anyio


class NoText(Exception):
    __str__ = __repr__ = boom


class NoClass(Exception):
    __class__ = property(boom)


class NoKind(Exception):
    kind = property(boom)


class OddKind(Exception):
    class kind:  # noqa: N801 - it stands for an attribute
        __str__ = boom


class HiddenName(type):
    __name__ = property(boom)


class NoTypeName(Exception, metaclass=HiddenName):
    pass


class NotInitialised(ToolError):
    def __init__(self) -> None:
        pass


class NoBool(Exception):
    class kind:  # noqa: N801
        def __bool__(self) -> bool:
            raise RuntimeError("looked at")


class Subclassed(str):
    __slots__ = ()

    def __str__(self) -> str:
        return self


HOSTILE: list[Callable[[], BaseException]] = [
    NoText,
    NoAttributes,
    NoClass,
    NoKind,
    OddKind,
    NoTypeName,
    NotInitialised,
    NoBool,
    lambda: ToolError(5),  # type: ignore[arg-type]
    lambda: ToolError("x", kind=5),  # type: ignore[arg-type]
    lambda: ToolError(None),  # type: ignore[arg-type]
    lambda: ToolError("\udc80", kind="\udc80"),
    lambda: ValueError("\udc80 is no file"),
    lambda: ValueError(Subclassed("x")),
    lambda: ExceptionGroup("several", [NoText(), NoAttributes(), ToolError("one", kind="k")]),
    lambda: BaseExceptionGroup("several", [GeneratorExit(), NoClass()]),
    lambda: ExceptionGroup("\udc80", [ValueError("\udc80")]),
    GeneratorExit,
    StopIteration,
    StopAsyncIteration,
    lambda: BaseException("base"),
]


def name_of(make: Callable[[], BaseException]) -> str:
    return getattr(make, "__qualname__", "") or "lambda"


@pytest.mark.case("T23")
@pytest.mark.parametrize("where", ["fail", "fail_in_thread"])
async def test_whatever_a_body_raises_is_an_ordinary_failed_result(where: str) -> None:
    async with open_runner([fail, fail_in_thread]) as runner:
        for number, make in enumerate(HOSTILE):
            raised[:] = [make()]
            result = await runner.run(ToolCall(where, call_id="c1"))
            assert (number, facts(result)) == (number, RAISED)
            assert effects(result) == (EffectState.UNKNOWN, None)
            assert result.error is not None
            assert type(result.error.message) is str
            assert result.error.message
            assert result.to_provider("anthropic")["is_error"]
            assert result.stop is None
    assert entered == [where] * len(HOSTILE)


def put(runner: Runner, where: str, error: BaseException) -> Callable[[], None]:
    """Register what raises `error`; returns the way to take it out."""

    async def pre(call: ToolCall, signal: AbortSignal) -> None:
        raise error

    def guard(call: ToolCall) -> None:
        raise error

    async def wrap(call: ToolCall, go_on: Any) -> None:
        if where == "wrapper out":
            await go_on(call)
        raise error

    async def post(call: ToolCall, result: ToolResult, signal: AbortSignal) -> None:
        raise error

    register: dict[str, Callable[[], Callable[[], None]]] = {
        "pre": lambda: runner.pre_execute(pre),
        "guard": lambda: runner.guard(guard),
        "post": lambda: runner.post_execute(post),
    }
    return register.get(where, lambda: runner.use(wrap))()


@pytest.mark.case("T19", "T23")
@pytest.mark.parametrize("where", ["pre", "guard", "wrapper in", "wrapper out", "post"])
async def test_whatever_foreign_code_around_a_body_raises_becomes_a_result(where: str) -> None:
    before = where not in ("wrapper out", "post")
    # A sync guard lets out what ends its program.
    made = [make() for make in HOSTILE]
    errors = [error for error in made if where != "guard" or issubclass(type(error), Exception)]
    async with open_runner([fail]) as runner:
        for error in errors:
            unregister = put(runner, where, error)
            result = await runner.run("fail")
            unregister()
            if before:
                check_never_started(result, WRAPPER_FAILED_BEFORE if where == "wrapper in" else PRE_HOOK_FAILED)
            else:
                assert facts(result) == HOOK_FAILED_AFTER
                assert (result.value, effects(result)) == ("done", (EffectState.COMPLETED, Evidence.ASSUMED))
            assert result.error is not None
            assert result.error.kind
    assert entered == ([] if before else ["fail"] * len(errors))


@pytest.mark.case("T19")
@pytest.mark.parametrize("where", ["pre", "guard", "wrapper in", "wrapper out", "post"])
async def test_the_code_of_what_hooks_and_wrappers_raise_is_preserved(where: str) -> None:
    async with open_runner([fail]) as runner:
        put(runner, where, Coded("no credit"))
        result = await runner.run("fail")
    assert result.code is Code.HOOK_ERROR
    assert result.error is not None
    assert result.error.kind == "quota"
    assert "Coded: no credit" in result.error.message
    assert "no credit" in text(result)
