"""AbortSignal and AbortController: a request to stop that any thread may make and everybody may read.

State: one latch per controller, written once by an atomic store and never cleared. A merged signal owns no latch: it *pulls*
from its parts, so nothing has to be propagated and an abort cannot be lost between two of them. Nothing here takes a lock,
because `abort()` must be safe inside a signal handler or a finalizer that interrupted the very same code.
"""

import contextlib
import itertools
import logging
import math
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass
from typing import final

import anyio

from toolrunner.errors import ConfigError
from toolrunner.facts import AbortMode, AbortReason, Source
from toolrunner.facts.quick import quick
from toolrunner.loops import Post, call_later, poster

_logger = logging.getLogger("toolrunner")

_MODES = tuple(AbortMode)


def abort_mode(word: AbortMode | str) -> AbortMode:
    """What a caller means by `mode`. Raises `ConfigError` for a mode that does not exist."""
    if word not in _MODES:
        raise ConfigError("mode of abort", word, " or ".join(_MODES))
    return word if type(word) is AbortMode else AbortMode(word)


_orders = itertools.count(1)
"""Hands out the order of aborts over all latches; `next` on it is one C call, so two threads never get the same number."""


class AbortError(Exception):
    """Raised by `raise_if_aborted`: the block ends because it was asked to. A body that lets it out was stopped, not failed."""

    def __init__(self, reason: AbortReason | None) -> None:
        super().__init__(reason)
        self.reason = reason


@quick
@dataclass(frozen=True, slots=True)
class Cause:
    """One abort as it was stored: its place among all aborts, its reason, how hard it asks."""

    order: int
    reason: AbortReason
    mode: AbortMode


@final
class _Subscription:
    """One callback, to be run once on the loop it was registered on. It stands in the list of each part of its signal.

    State: `_fn`, taken by whoever runs it or takes it back, both on that loop.
    """

    __slots__ = ("_fn", "_post", "_signal")

    def __init__(self, fn: Callable[[], object], post: Post, signal: "AbortSignal") -> None:
        self._fn: Callable[[], object] | None = fn
        self._post = post
        self._signal = signal

    def fire(self) -> None:
        """Have the callback run soon. More than one part may fire, and each may do so once; it runs once all the same."""
        # A closed loop has nobody left to tell: RuntimeError (asyncio), trio.RunFinishedError (a RuntimeError too).
        with contextlib.suppress(RuntimeError):
            self._post(self._run)

    def take_back(self) -> None:
        """Forget the callback, and be forgotten by every part."""
        self._fn = None
        for part in self._signal._parts:  # noqa: SLF001 - a signal's subscription is its own
            part.latch.unsubscribe(self)

    def _run(self) -> None:
        fn = self._fn
        if fn is None:
            return
        # Off every part's list, too: one that lives on (a runner's shutdown) would keep all that `fn` refers to.
        self.take_back()
        self._signal._observe()  # noqa: SLF001
        try:
            fn()
        except Exception:  # foreign callback; on trio it would otherwise bring the whole run down
            _logger.exception("an on_abort callback raised")


@final
class _Latch:
    """Where one controller's aborts are kept.

    `_causes` has at most two keys: "first" (the cause everybody sees) and, if that is a drain, "upgrade" (the first immediate
    abort after it). Both are written with `dict.setdefault`, which is atomic, so the first writer wins.
    """

    __slots__ = ("_causes", "_subscriptions")

    def __init__(self) -> None:
        self._causes: dict[str, Cause] = {}
        self._subscriptions: dict[_Subscription, bool] = {}
        """Who is to be told, and whether of immediate aborts only."""

    def store(self, reason: AbortReason, mode: AbortMode) -> bool:
        cause = Cause(next(_orders), reason, mode)
        first = self._causes.setdefault("first", cause)
        won = first is cause
        if first.mode is AbortMode.DRAIN and mode is AbortMode.IMMEDIATE:
            won = self._causes.setdefault("upgrade", cause) is cause
        self._notify()
        return won

    def cause(self, *, immediate_only: bool) -> Cause | None:
        first = self._causes.get("first")
        if first is None or not immediate_only or first.mode is AbortMode.IMMEDIATE:
            return first
        # An upgraded drain: the reason is the drain's, its place among other aborts is that of the upgrade.
        upgrade = self._causes.get("upgrade")
        return None if upgrade is None else Cause(upgrade.order, first.reason, upgrade.mode)

    def subscribe(self, subscription: _Subscription, *, immediate_only: bool) -> None:
        # Of two parts with this latch the one that hears more counts.
        self._subscriptions[subscription] = immediate_only and self._subscriptions.get(subscription, True)
        # Registered first, looked at second: an abort between the two is seen by one of them, and `pop` lets only one fire.
        if self._causes:  # else there is nothing to tell anybody; a runner's shutdown has a subscription per running body
            self._notify()

    def unsubscribe(self, subscription: _Subscription) -> None:
        self._subscriptions.pop(subscription, None)

    def _notify(self) -> None:
        told = {only: self.cause(immediate_only=only) is not None for only in (False, True)}
        # A list of the keys alone: for pairs, or a tuple, a collection may begin in the middle of the walk (Python 3.11), and its
        # finalizers may abort or unsubscribe, too.
        for subscription in list(self._subscriptions):
            immediate_only = self._subscriptions.get(subscription)
            if immediate_only is None or not told[immediate_only]:
                continue
            if self._subscriptions.pop(subscription, None) is not None:
                subscription.fire()


@final
class _Part:
    """One source of a signal: a latch, read with or without drains, told under its own name or the merger's. Never changed.

    Not a frozen dataclass: each call makes a dozen of these, and those take several times as long to make.
    """

    __slots__ = ("immediate_only", "latch", "source")

    def __init__(self, latch: _Latch, immediate_only: bool = False, source: str | None = None) -> None:  # noqa: FBT002
        self.latch = latch
        self.immediate_only = immediate_only
        self.source = source

    def cause(self) -> Cause | None:
        cause = self.latch.cause(immediate_only=self.immediate_only)
        if cause is None or self.source is None:
            return cause
        return Cause(cause.order, AbortReason(self.source, cause.reason.text), cause.mode)


@final
class AbortSignal:
    """Read side of an abort. Cheap to read from any thread; waits and callbacks belong to the loop that registers them."""

    __slots__ = ("_derived_from", "_parts", "_seen", "observed")

    def __init__(self, parts: Iterable[_Part] = (), derived_from: "tuple[AbortSignal, ...]" = ()) -> None:
        self._parts = tuple(parts)
        self._derived_from = derived_from
        self._seen: dict[str, AbortReason] = {}
        self.observed = False
        """Whether somebody has learned of an abort through this very signal, or one derived from it. Only ever set to True."""

    @property
    def aborted(self) -> bool:
        """Whether an abort was requested. Never goes back to False."""
        if not self._requested() or all(part.cause() is None for part in self._parts):
            return False
        self._observe()
        return True

    @property
    def reason(self) -> AbortReason | None:
        """The first cause, or None. Once seen it never changes, whatever is aborted later."""
        if not self._requested():
            return None
        seen = self._seen.get("reason")
        if seen is None:
            causes = [cause for part in self._parts if (cause := part.cause()) is not None]
            if not causes:
                return None
            seen = self._seen.setdefault("reason", min(causes, key=lambda cause: cause.order).reason)
        self._observe()
        return seen

    def _requested(self) -> bool:
        """Whether any part has any cause, drains included: asked a dozen times per call, and nearly always not."""
        for part in self._parts:  # noqa: SIM110 - a generator takes three times as long
            if part.latch._causes:  # noqa: SLF001 - asked too often for a property
                return True
        return False

    def _observe(self) -> None:
        if self.observed:  # then all that it derives from was observed with it
            return
        self.observed = True
        for signal in self._derived_from:
            signal._observe()  # noqa: SLF001 - the same class

    def raise_if_aborted(self) -> None:
        """Raise `AbortError` if an abort was requested."""
        if self.aborted:
            raise AbortError(self.reason)

    async def wait(self) -> AbortReason:
        """Wait until an abort is requested and return its reason."""
        event = anyio.Event()
        unsubscribe = self.on_abort(event.set)
        try:
            await event.wait()
        finally:
            unsubscribe()
        reason = self.reason
        assert reason is not None  # the event is set by an abort only
        return reason

    def on_abort(self, fn: Callable[[], object]) -> Callable[[], None]:
        """Have `fn` called once, soon, on this loop, never inside `abort()`. Returns the way to take it back.

        A signal that is aborted already calls it soon as well. What `fn` raises is logged. Raises `ConfigError` outside a loop.
        """
        subscription = _Subscription(fn, poster(), self)
        for part in self._parts:
            part.latch.subscribe(subscription, immediate_only=part.immediate_only)
        return subscription.take_back

    @contextlib.asynccontextmanager
    async def scope(self) -> AsyncGenerator[anyio.CancelScope]:
        """Cancel the block when aborted; the block then ends quietly and `aborted` says why."""
        with anyio.CancelScope() as scope:
            unsubscribe = self.on_abort(scope.cancel)
            if self.aborted:
                scope.cancel()
            try:
                yield scope
            finally:
                unsubscribe()

    def immediate(self) -> "AbortSignal":
        """The same signal without drains: what bodies and the signal ladder see."""
        # Parts are never changed, so two signals may have the same one.
        return AbortSignal([one if one.immediate_only else _Part(one.latch, True, one.source) for one in self._parts], (self,))

    def named(self, source: str) -> "AbortSignal":
        """The same signal, told as coming from `source` (a wrapper's own signal, say)."""
        return AbortSignal([_Part(part.latch, part.immediate_only, source) for part in self._parts], (self,))

    @staticmethod
    def any(*signals: "AbortSignal") -> "AbortSignal":
        """A signal that is aborted when one of `signals` is; the earliest abort of them all gives the reason."""
        return AbortSignal([part for signal in signals for part in signal._parts], signals)  # noqa: SLF001 - the same class

    @staticmethod
    def timeout(seconds: float) -> "AbortSignal":
        """A signal that is aborted by itself after `seconds` on the running loop's clock, with source `timeout`."""
        if not math.isfinite(seconds) or seconds < 0:
            raise ConfigError("AbortSignal.timeout", seconds, "a finite number of seconds, 0 or more")
        controller = AbortController(source=Source.TIMEOUT)
        call_later(seconds, lambda: controller.abort(f"{seconds:g} s passed"))
        return controller.signal


@final
class AbortController:
    """Write side of an abort. `source` names who asks (`Source`, or `wrapper:NAME`)."""

    __slots__ = ("_latch", "_source", "signal")

    def __init__(self, *, source: str = Source.CALLER) -> None:
        self._latch = _Latch()
        self._source = str(source)
        self.signal = AbortSignal([_Part(self._latch)])

    def abort(self, text: str = "user", *, mode: AbortMode | str = AbortMode.IMMEDIATE, source: str | None = None) -> bool:
        """Request a stop. Returns True if this was the first request, or upgraded a drain to an immediate one.

        Callable from any thread, signal handler or finalizer, also after the loop closed; never blocks, never raises for
        being late. The first reason stays the reason. Raises `ConfigError` for a mode that does not exist.
        """
        return self._latch.store(AbortReason(source or self._source, text), abort_mode(mode))
