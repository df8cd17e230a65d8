"""Whatever hooks, wrappers, bodies and observers raise or try to change: the call has one result, and that is what it was."""

import itertools
import logging
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import anyio
import pytest
from pipeline.bench import (
    DENIED,
    HOOK_FAILED_AFTER,
    PRE_HOOK_FAILED,
    RAISED,
    SUCCEEDED,
    WRAPPER_FAILED_BEFORE,
    check_never_started,
    check_round_trip,
    effects,
    facts,
    open_runner,
    text,
)

from toolrunner import AbortSignal, Reply, Runner, ToolCall, ToolContext, ToolError, ToolResult, ask, tool
from toolrunner.facts import EffectState, Evidence, Text
from toolrunner.results import Code, Ended, Error, ErrorKind, Outcome

pytestmark = pytest.mark.anyio

raised: list[BaseException] = []
entered: list[str] = []


@pytest.fixture(autouse=True)
def nothing_yet() -> None:
    raised.clear()
    entered.clear()


@tool
async def fail() -> str:
    """Raise what the test wants, or return."""
    entered.append("fail")
    if raised:
        raise raised[0]
    return "done"


@tool
def fail_in_thread() -> str:
    """Do the same in a thread."""
    entered.append("fail_in_thread")
    if raised:
        raise raised[0]
    return "done"


def boom(*_: object) -> Any:
    raise RuntimeError("looked at")


class NoText(Exception):
    __str__ = __repr__ = boom


class NoAttributes(Exception):
    def __getattribute__(self, name: str) -> Any:
        boom()


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


class Coded(Exception):
    kind = "quota"


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


@pytest.mark.parametrize("answer", [True, "allow", {"kind": "allow"}, 0, object()], ids=lambda answer: type(answer).__name__)
async def test_an_answer_of_a_pre_hook_that_is_none_starts_nothing(answer: Any) -> None:
    async with open_runner([fail]) as runner:

        async def pre(call: ToolCall, signal: AbortSignal) -> Any:
            return answer

        runner.pre_execute(pre)
        check_never_started(await runner.run("fail"), PRE_HOOK_FAILED)
    assert entered == []


async def test_a_pre_hook_that_is_no_coroutine_function_starts_nothing() -> None:
    async with open_runner([fail]) as runner:
        runner.pre_execute(lambda call, signal: None)  # type: ignore[arg-type,return-value]
        check_never_started(await runner.run("fail"), PRE_HOOK_FAILED)
    assert entered == []


@pytest.mark.virtual_time
async def test_a_pre_hook_that_hangs_starts_nothing_and_may_be_tried_again() -> None:
    async with open_runner([fail], hook_timeout=0.05) as runner:

        async def pre(call: ToolCall, signal: AbortSignal) -> None:
            await anyio.sleep_forever()

        runner.pre_execute(pre)
        result = await runner.run("fail")
    check_never_started(result, PRE_HOOK_FAILED)
    assert result.error is not None
    assert (result.error.kind, result.retry, entered) == (ErrorKind.HOOK_TIMEOUT, "safe", [])


async def test_a_guard_that_was_written_async_denies() -> None:
    """Its coroutine is no text and no None; letting it pass would be a guard that guards nothing."""

    async def guard(call: ToolCall) -> None:
        raise AssertionError("never awaited")

    async with open_runner([fail]) as runner:
        runner.guard(guard)  # type: ignore[arg-type]
        result = await runner.run("fail")
    check_never_started(result, PRE_HOOK_FAILED)
    assert result.error is not None
    assert "is no coroutine function" in result.error.message
    assert entered == []


SPOILING: list[Callable[[Any], object]] = [
    lambda r: setattr(r, "outcome", Outcome.FAILED),
    lambda r: setattr(r.effects, "state", EffectState.NONE),
    lambda r: r.value.update(path="other"),
    lambda r: r.value["lines"].append(2),
    lambda r: r.value["lines"][1].clear(),
    lambda r: r.arguments.update(path="other"),
    lambda r: r.content.append(Text("more")),
    lambda r: r.content[0].json.clear(),
    lambda r: r.follow_up[0]["kept"].append("no"),
    lambda r: r.provider_meta.update(x=1),
]


def refusals(result: ToolResult, where: str) -> list[str]:
    """Try to change everything that can be reached; returns what was refused."""
    found = []
    for number, attempt in enumerate(SPOILING):
        try:
            attempt(result)
        except (FrozenInstanceError, TypeError, AttributeError):
            found.append(f"{where} {number}")
    return found


@pytest.mark.case("T25")
async def test_no_hook_wrapper_or_observer_can_change_a_result_or_its_arguments() -> None:
    @tool
    async def describe(ctx: ToolContext[Any], path: str) -> dict[str, Any]:
        """Return something nested."""
        ctx.follow_up({"kept": ["yes"]})
        return {"path": path, "lines": [1, {"deep": True}]}

    refused: list[str] = []
    async with open_runner([describe]) as runner:

        async def wrap(call: ToolCall, go_on: Any) -> Any:
            with pytest.raises(TypeError):
                call.arguments["path"] = "other"  # type: ignore[index]
            result = await go_on(call)
            refused.extend(refusals(result, "wrapper"))
            return result

        async def post(call: ToolCall, result: ToolResult, signal: AbortSignal) -> None:
            refused.extend(refusals(result, "post"))

        def observe(record: Any) -> None:
            if record.type == "call/settled":
                refused.extend(refusals(record.result, "observer"))

        runner.use(wrap)
        runner.post_execute(post)
        runner.on_record(observe)
        result = await runner.run(ToolCall("describe", {"path": "a"}, provider_meta={"item": "x"}))
        refused.extend(refusals(result, "caller"))
    assert facts(result) == SUCCEEDED
    assert result.value == {"path": "a", "lines": [1, {"deep": True}]}
    assert (result.arguments, result.follow_up) == ({"path": "a"}, ({"kept": ["yes"]},))
    assert refused == [f"{where} {number}" for where in ("wrapper", "post", "observer", "caller") for number in range(10)]


async def test_what_a_body_returned_is_not_changed_by_what_it_does_to_it_later() -> None:
    kept: list[dict[str, int]] = []

    @tool
    async def lend() -> dict[str, int]:
        """Keep what is returned."""
        kept.append({"a": 1})
        return kept[0]

    async with open_runner([lend]) as runner:
        result = await runner.run("lend")
        kept[0]["a"] = 2
    assert result.value == {"a": 1}


@pytest.mark.case("T25")
async def test_an_observer_that_raises_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []
    async with open_runner([fail]) as runner:

        def observe(record: Any) -> None:
            seen.append(record.type)
            raise RuntimeError("broken observer")

        runner.on_record(observe)
        with caplog.at_level(logging.CRITICAL):
            batch = await runner.run_batch([ToolCall("fail"), ToolCall("fail")], on_event=observe)
    assert [facts(result) for result in batch] == [SUCCEEDED] * 2
    assert len(seen) == 2 * len({"call/recorded", "call/decided", "call/dispatched", "call/ended", "call/settled"}) * 2


@pytest.mark.parametrize("make", [NoAttributes, object, lambda: float("nan"), lambda: "\udc80", lambda: 10**5_000], ids=range(5))
async def test_a_return_value_that_cannot_be_said_is_the_tools_failure_and_it_ran(make: Callable[[], object]) -> None:
    @tool
    async def odd() -> Any:
        """Return it."""
        entered.append("odd")
        return make()

    async with open_runner([odd]) as runner:
        result = await runner.run("odd")
    assert entered == ["odd"]
    assert facts(result) == (Outcome.FAILED, Code.INVALID_OUTPUT, True, Ended.RETURNED)
    assert "not started" not in text(result)
    check_round_trip(result)


async def test_a_reply_with_an_error_is_a_failure_that_keeps_its_value() -> None:
    @tool
    async def half() -> Reply:
        """Do half."""
        return Reply({"sent": 3}, (Text("3 of 5 sent"),), error=Error("half", "2 were refused"))

    async with open_runner([half]) as runner:
        result = await runner.run("half")
    assert facts(result) == (Outcome.FAILED, Code.TOOL_ERROR, True, Ended.RETURNED)
    assert (result.value, result.content, result.is_error) == ({"sent": 3}, (Text("3 of 5 sent"),), True)
    assert effects(result) == (EffectState.UNKNOWN, None)
    assert "2 were refused" in text(result)


async def test_denials_stay_denials_whatever_post_hooks_do() -> None:
    async with open_runner([fail]) as runner:

        async def pre(call: ToolCall, signal: AbortSignal) -> Any:
            return ask("is that wise?")

        async def post(call: ToolCall, result: ToolResult, signal: AbortSignal) -> None:
            raise Coded("broken")

        runner.pre_execute(pre)
        runner.post_execute(post)
        result = await runner.run("fail")
    check_never_started(result, DENIED)
    assert result.error is not None
    assert result.error.kind == ErrorKind.APPROVER_UNAVAILABLE
    assert entered == []


async def test_each_registration_is_taken_out_by_what_it_returned_and_only_once() -> None:
    count = itertools.count()
    async with open_runner([fail]) as runner:

        async def pre(call: ToolCall, signal: AbortSignal) -> None:
            next(count)

        first, second = runner.pre_execute(pre), runner.pre_execute(pre)
        await runner.run("fail")
        assert next(count) == 2
        first()
        first()
        await runner.run("fail")
        assert next(count) == 4
        second()
        await runner.run("fail")
        assert next(count) == 5
