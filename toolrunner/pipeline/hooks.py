"""Hooks: the caller's own code around a call, and how it is run: in model order, each within its bound, failing closed.

State: the registered hooks, changed by `Runner.use`, `pre_execute`, `post_execute`, `guard` and by the functions they return.
A hook never ends a started body and never erases what is known of one.
"""

import contextvars
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, final

import anyio
from pydantic import JsonValue

from toolrunner.abort import AbortError, AbortSignal
from toolrunner.calls import ToolCall
from toolrunner.facts import Content, File, Image, Json, Text
from toolrunner.loops import call_later
from toolrunner.pipeline.foreign import attribute, is_a, text_of, type_name
from toolrunner.policy import Decision
from toolrunner.results import Error, ErrorKind, ToolResult
from toolrunner.tasks import TaskRoot, wait_through

HOOK_STOP_BOUND = 1.0
"""Seconds a hook that ran over its time-out gets to end after it was cancelled; then the call goes on without it."""

F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Ask:
    """A pre-execute hook wants somebody to be asked."""

    text: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """A pre-execute hook denies the call and aborts its batch."""

    text: str


@dataclass(frozen=True, slots=True)
class Replace:
    """A post-execute hook shows the model something else. The facts of the call stay."""

    content: tuple[Content, ...]
    follow_up: tuple[JsonValue, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """A post-execute hook withholds the content. The facts of the call stay."""

    text: str


def ask(text: str) -> Ask:
    """For a pre-execute hook: have the approver asked, with this text."""
    return Ask(text)


def cancel(text: str) -> Cancel:
    """For a pre-execute hook: deny this call and abort the batch, source `hook`."""
    return Cancel(text)


def replace(content: str | Content | Sequence[Content], *, follow_up: Sequence[JsonValue] = ()) -> Replace:
    """For a post-execute hook: show the model this content instead, and add `follow_up`."""
    if isinstance(content, str):
        return Replace((Text(content),), tuple(follow_up))
    if isinstance(content, Text | Image | File | Json):
        return Replace((content,), tuple(follow_up))
    return Replace(tuple(content), tuple(follow_up))


def block(text: str) -> Block:
    """For a post-execute hook: withhold the content and say why."""
    return Block(text)


PreVerdict = Decision | Ask | Cancel | None
PostVerdict = Replace | Block | None
PreHook = Callable[[ToolCall, AbortSignal], Awaitable[PreVerdict]]
PostHook = Callable[[ToolCall, ToolResult, AbortSignal], Awaitable[PostVerdict]]
Guard = Callable[[ToolCall], str | None]


class Next(Protocol):
    """What a wrapper calls, once, to go on. `signal` is added to the caller's and to outer wrappers'."""

    async def __call__(self, call: ToolCall, /, *, signal: AbortSignal | None = None) -> ToolResult:
        """Run the rest and return its result."""


Wrapper = Callable[[ToolCall, Next], Awaitable[Any]]


@dataclass(slots=True)
class Hooks:
    """Everything registered, in order of registration. Tuples are replaced, never changed, so a call in flight keeps its own."""

    pre: tuple[PreHook, ...] = ()
    post: tuple[PostHook, ...] = ()
    guards: tuple[Guard, ...] = ()
    wrappers: tuple[Wrapper, ...] = ()

    def add(self, kind: str, hook: Any) -> Callable[[], None]:
        """Register a hook of one kind ("pre", "post", "guards", "wrappers"); returns the way to take it back."""
        setattr(self, kind, (*getattr(self, kind), hook))

        def unregister() -> None:
            current: tuple[Any, ...] = getattr(self, kind)
            if hook in current:
                index = current.index(hook)
                setattr(self, kind, current[:index] + current[index + 1 :])

        return unregister


def hook_name(hook: object) -> str:
    """How records and errors call a hook."""
    return str(getattr(hook, "__name__", None) or type(hook).__name__)


@final
class HookFailed(Exception):
    """A hook raised, or ran over its bound. `stopped`: it only handed on the abort that its signal showed it."""

    def __init__(self, error: Error, *, stopped: bool = False) -> None:
        super().__init__(error.message)
        self.error = error
        self.stopped = stopped


def hook_error(hook: object, error: BaseException) -> Error:
    """What a hook raised, as a fact. An error that carries a `kind` of its own keeps it."""
    text = text_of(error)
    said = f"hook {hook_name(hook)!r} raised {type_name(error)}{f': {text}' if text else ''}"
    return Error(attribute(error, "kind") or ErrorKind.HOOK, said)


@dataclass(slots=True)
class _Box:
    value: Any = None
    error: BaseException | None = None
    expired: bool = False
    done: bool = False
    over: anyio.Event = field(default_factory=anyio.Event)


async def run_hook(
    root: TaskRoot, context: contextvars.Context, hook: object, call: Callable[[], Awaitable[Any]], limit: float
) -> Any:
    """Run one hook in a task of its own and return its answer. Raises `HookFailed`.

    Not in the call's own task: a hook that swallows its cancellation would otherwise hold the call for ever.
    """
    box = _Box()

    async def run() -> None:
        try:
            box.value = await call()
        except BaseException as error:  # noqa: BLE001 - foreign code; whatever it raised is the call's answer
            box.error = error
        box.done = True
        box.over.set()

    task = root.spawn(run, f"hook {hook_name(hook)}", context=context.copy())
    timers: list[Callable[[], None]] = []

    def expire() -> None:
        if not box.done:
            box.expired = True
            task.cancel()
            timers.append(call_later(HOOK_STOP_BOUND, box.over.set))

    timers.append(call_later(limit, expire))
    try:
        await wait_through(box.over, task.cancel)
    finally:
        for take_back in timers:
            take_back()
    if box.expired:
        raise HookFailed(Error(ErrorKind.HOOK_TIMEOUT, f"hook {hook_name(hook)!r} did not answer within {limit:g} s"))
    if box.error is not None:
        raise HookFailed(hook_error(hook, box.error), stopped=is_a(box.error, AbortError)) from box.error
    return box.value
