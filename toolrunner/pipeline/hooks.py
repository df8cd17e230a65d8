"""Hooks: the caller's own code around a call, and how it is run: in model order, each within its bound, failing closed.

State: the registered hooks, changed by `Runner.use`, `pre_execute`, `post_execute`, `guard` and by the functions they return.
A hook never ends a started body and never erases what is known of one.
"""

import contextvars
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import anyio
from pydantic import JsonValue

from toolrunner.abort import AbortError, AbortSignal
from toolrunner.calls import ToolCall
from toolrunner.facts import Content, File, Image, Json, Text
from toolrunner.facts.texts import well_formed
from toolrunner.loops import call_later
from toolrunner.pipeline.foreign import attribute, interrupt_in, is_a, text_of, type_name
from toolrunner.policy import Decision
from toolrunner.results import Error, ErrorKind, ToolResult
from toolrunner.tasks import TaskRoot, wait_through

HOOK_STOP_BOUND = 1.0
"""Seconds a hook that ran over its time-out gets to end after it was cancelled; then the call goes on without it."""


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
    return Ask(well_formed(str(text)))


def cancel(text: str) -> Cancel:
    """For a pre-execute hook: deny this call and abort the batch, source `hook`."""
    return Cancel(well_formed(str(text)))


def replace(content: str | Content | Sequence[Content], *, follow_up: Sequence[JsonValue] = ()) -> Replace:
    """For a post-execute hook: show the model this content instead, and add `follow_up`."""
    if isinstance(content, str):
        return Replace((Text(content),), tuple(follow_up))
    if isinstance(content, Text | Image | File | Json):
        return Replace((content,), tuple(follow_up))
    return Replace(tuple(content), tuple(follow_up))


def block(text: str) -> Block:
    """For a post-execute hook: withhold the content and say why."""
    return Block(well_formed(str(text)))


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
        registered = True

        def unregister() -> None:
            nonlocal registered
            # Once: the same hook may be registered again, and that registration is somebody else's to take back.
            current: tuple[Any, ...] = getattr(self, kind) if registered else ()
            registered = False
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


@final
class HookTask:
    """One hook, run in a task of its own: one that swallows its cancellation would else hold the call for ever.

    State: how far it is; changed by its task and by its clock, which runs from `limit` on.
    """

    def __init__(
        self, root: TaskRoot, hook: object, call: Callable[[], Awaitable[Any]], context: contextvars.Context | None = None
    ) -> None:
        self._hook = hook
        self._call = call
        self._value: Any = None
        self._error: BaseException | None = None
        self._seconds: float | None = None
        self._expired = False
        self._done = False
        self._over = anyio.Event()
        self._timers: list[Callable[[], None]] = []
        self._task = root.spawn(self._run, f"hook {hook_name(hook)}", context=context, foreign=True)

    async def _run(self) -> None:
        try:
            self._value = await self._call()
        except BaseException as error:  # noqa: BLE001 - foreign code; whatever it raised is the call's answer
            self._error = error
        self._done = True
        self._over.set()

    def limit(self, seconds: float) -> None:
        """Start its clock; one that runs already goes on."""
        if self._seconds is None and not self._over.is_set():
            self._seconds = seconds
            self._timers.append(call_later(seconds, self._expire))

    def _expire(self) -> None:
        if not self._done:
            self._expired = True
            self._task.cancel()
            self._timers.append(call_later(HOOK_STOP_BOUND, self._over.set))

    async def answer(self) -> Any:
        """What it returned. Raises `HookFailed`, whose cause is what it raised; a KeyboardInterrupt or SystemExit as it is."""
        try:
            await wait_through(self._over, self._task.cancel)
        finally:
            for take_back in self._timers:
                take_back()
        if self._expired:
            text = f"hook {hook_name(self._hook)!r} did not answer within {self._seconds:g} s"
            raise HookFailed(Error(ErrorKind.HOOK_TIMEOUT, text))
        if self._error is not None:
            if interrupt_in(self._error) is not None:
                raise self._error
            raise HookFailed(hook_error(self._hook, self._error), stopped=is_a(self._error, AbortError)) from self._error
        return self._value


async def run_hook(
    root: TaskRoot, context: contextvars.Context, hook: object, call: Callable[[], Awaitable[Any]], limit: float
) -> Any:
    """Run one hook within `limit` seconds and return its answer. Raises `HookFailed`."""
    task = HookTask(root, hook, call, context.copy())
    task.limit(limit)
    return await task.answer()
