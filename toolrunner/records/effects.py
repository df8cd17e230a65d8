"""What became of one effect of a call. Frozen; no state."""

from dataclasses import dataclass
from typing import Literal

from toolrunner.facts import EffectRecord
from toolrunner.records.base import BaseRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectPlanned(BaseRecord):
    """Durable before the act."""

    effect: EffectRecord
    type: Literal["effect/planned"] = "effect/planned"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectApplied(BaseRecord):
    """The act was done; `effect.receipt` is its proof."""

    effect: EffectRecord
    type: Literal["effect/applied"] = "effect/applied"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectUnknown(BaseRecord):
    """The act was left by an exception or a cancel: it may have happened."""

    effect: EffectRecord
    type: Literal["effect/unknown"] = "effect/unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectNotApplied(BaseRecord):
    """The body knows that the act did not happen."""

    effect: EffectRecord
    type: Literal["effect/not_applied"] = "effect/not_applied"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectUndone(BaseRecord):
    """Its undo was confirmed."""

    effect: EffectRecord
    type: Literal["effect/undone"] = "effect/undone"
