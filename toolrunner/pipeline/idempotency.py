"""KeyTable: which idempotency keys this session has seen, and what became of the call that used each.

State: key -> entry, changed by `claim` and `Claim.finish`, synchronously: two calls cannot both find a key free. Only a call that
proved to have no effects gives its key back. In memory; the key's truth across processes is the journal's.
"""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import final

import anyio

from toolrunner.facts import EffectState
from toolrunner.results import Outcome, ToolResult

KEPT_KEYS = 10_000
"""Completed keys are forgotten beyond this many, oldest first; keys in doubt are never forgotten."""


def arguments_digest(tool: str, arguments: object) -> str:
    """SHA-256 of a tool's name and its arguments in canonical JSON."""
    return hashlib.sha256(json.dumps([tool, arguments], sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class KeyState(StrEnum):
    """What a key says to the next call that brings it."""

    RUNNING = "running"
    COMPLETED = "completed"
    IN_DOUBT = "in_doubt"


@dataclass(slots=True, eq=False)
class Entry:
    """One key. `result` is set unless its call still runs; `freed` says that the call gave the key back."""

    digest: str
    run_id: str
    expires: float | None
    state: KeyState = KeyState.RUNNING
    result: ToolResult | None = None
    freed: bool = False
    waiters: list[anyio.Event] = field(default_factory=list)


@final
class KeyTable:
    """The keys of one session."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._entries: dict[str, Entry] = {}
        self._clock = clock

    def claim(self, key: str, digest: str, run_id: str, seconds: float | None = None) -> Entry | None:
        """Take a free key: None, and `finish` must follow. Else the entry that has it, with the same digest or another."""
        entry = self._entries.get(key)
        expired = entry is not None and entry.expires is not None and entry.expires <= self._clock()
        if entry is not None and not (expired and entry.state is KeyState.COMPLETED):
            return entry
        self._entries.pop(key, None)
        self._entries[key] = Entry(digest, run_id, None if seconds is None else self._clock() + seconds)
        return None

    def finish(self, key: str, result: ToolResult) -> None:
        """Say what became of the call that claimed `key`."""
        entry = self._entries[key]
        entry.result = result
        if result.outcome is Outcome.SUCCEEDED or _change_is_certain(result):
            entry.state = KeyState.COMPLETED
        elif not result.started or result.effects.state in (EffectState.NONE, EffectState.REVERTED):
            entry.freed = True
            del self._entries[key]
        else:
            entry.state = KeyState.IN_DOUBT
        for waiter in entry.waiters:
            waiter.set()
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        surplus = len(self._entries) - KEPT_KEYS
        if surplus > 0:
            completed = [key for key, entry in self._entries.items() if entry.state is KeyState.COMPLETED]
            for key in completed[:surplus]:
                del self._entries[key]


def _change_is_certain(result: ToolResult) -> bool:
    return result.effects.state is EffectState.COMPLETED and result.effects.evidence in ("reported", "observed")
