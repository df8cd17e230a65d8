"""One effect around one act, as the author of a tool writes it: `async with`, or `with` in a sync body.

State: how far this one use has come. What it means for the call is told to the ledger.
"""

import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self, final

import anyio

from toolrunner.effects.undo import Undo
from toolrunner.errors import ConfigError
from toolrunner.facts import EffectStage
from toolrunner.facts.texts import well_formed

DURABLE_WAIT = 30.0
"""Seconds to wait until a plan is durable. Far more than a slow disk's flush; after it the act is refused, since an act that
nobody could record must not happen."""

_ERROR_CHARS = 500
"""How much of an exception's text is kept: enough to name the cause; bounded, because it is foreign."""


@final
@dataclass(frozen=True, slots=True)
class Declared:
    """One effect as it is declared, before anything is recorded of it."""

    kind: str
    target: str
    owner: str | None = None
    undo: Undo | None = None


class Ledger(Protocol):
    """What a scope needs of the ledger it was declared in. All but `plan_blocking` and `on_loop` are for the loop's thread."""

    def plan(self, declared: Declared) -> tuple[str, Awaitable[None] | None]:
        """Record the effect; returns its id and what to await until the record is durable."""
        ...

    def plan_blocking(self, declared: Declared) -> str:
        """The same from any thread, and wait."""
        ...

    def withdraw(self, effect_id: str, error: BaseException) -> None:
        """The block was never entered."""
        ...

    def close(self, effect_id: str, stage: EffectStage, *, receipt: str | None = None, error: str | None = None) -> None:
        """How the block was left."""
        ...

    def shield(self, change: int) -> None:
        """A shielded block was entered (+1) or left (-1)."""
        ...

    def on_loop(self, fn: Callable[[], None]) -> None:
        """Run `fn` on the loop, from any thread, and wait."""
        ...


@final
class EffectScope:
    """One effect around one act: planned before the block, applied after it, unknown when an error or a cancel left it.

    Set `receipt` to whatever the other side gave as proof. State: where it is in that life; used once, by one task or thread.
    """

    __slots__ = ("_declared", "_effect_id", "_ledger", "_not_applied", "_shield", "_shielded", "_used", "receipt")

    def __init__(self, ledger: Ledger, declared: Declared, *, shield: bool) -> None:
        self._ledger = ledger
        self._declared = declared
        self._shielded = shield
        self._shield: anyio.CancelScope | None = None
        self._effect_id = ""
        self._used = False
        self._not_applied = False
        self.receipt: str | None = None

    @property
    def effect_id(self) -> str:
        """Its id in the call's records; empty until the block is entered."""
        return self._effect_id

    def not_applied(self) -> None:
        """The act is known not to have happened, however the block is left."""
        self._not_applied = True

    async def __aenter__(self) -> Self:
        self._use()
        if self._shielded:
            self._ledger.shield(+1)
            self._shield = anyio.CancelScope(shield=True)
            self._shield.__enter__()
        try:
            # Inside the shield: clean-up in a scope that is cancelled already could otherwise never wait for its own plan.
            await self._planned()
        except BaseException as error:
            self._unshield(error)
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        self._end(error)
        return self._unshield(error)

    async def _planned(self) -> None:
        self._effect_id, durable = self._ledger.plan(self._declared)
        if durable is None:
            return
        try:
            with anyio.fail_after(DURABLE_WAIT):
                await durable
        except BaseException as error:
            self._ledger.withdraw(self._effect_id, error)
            raise

    def _unshield(self, error: BaseException | None) -> bool:
        if self._shield is None:
            return False
        try:
            return bool(self._shield.__exit__(type(error) if error else None, error, error.__traceback__ if error else None))
        finally:
            self._ledger.shield(-1)

    def __enter__(self) -> Self:
        self._use()
        self._effect_id = self._ledger.plan_blocking(self._declared)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ledger.on_loop(lambda: self._end(error))

    def _use(self) -> None:
        if self._used:
            raise ConfigError("an effect", self._declared.target, "one block for each effect; declare another one")
        self._used = True

    def _end(self, error: BaseException | None) -> None:
        text = None if error is None else error_text(error)
        receipt = None if self.receipt is None else well_formed(str(self.receipt))
        stage = EffectStage.APPLIED if error is None else EffectStage.UNKNOWN
        if self._not_applied:
            stage = EffectStage.NOT_APPLIED
        self._ledger.close(self._effect_id, stage, receipt=receipt, error=text)


def error_text(error: BaseException) -> str:
    # The traceback module survives an exception whose own __str__ fails.
    return well_formed("".join(traceback.format_exception_only(error)).strip()[:_ERROR_CHARS])
