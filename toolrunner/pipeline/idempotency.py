"""KeyTable: which idempotency keys this session has seen, and what became of the call that used each.

State: key -> entry, changed by `claim` and `Claim.finish`, synchronously: two calls cannot both find a key free. Only a call that
proved to have no effects gives its key back. In memory; the key's truth across processes is the journal's.
"""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, final

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


class Holder(Protocol):
    """A call that has a key, or waits for one. It settles after `previous`, the call before it in its batch."""

    @property
    def run_id(self) -> str: ...
    @property
    def result(self) -> ToolResult | None: ...
    @property
    def previous(self) -> "Holder | None": ...


@dataclass(slots=True, eq=False)
class Entry:
    """One key. `result` is set unless its call still runs; `freed` says that the call gave the key back."""

    digest: str
    run_id: str
    holder: Holder | None
    """The call itself, until it has settled."""
    expires: float | None
    state: KeyState = KeyState.RUNNING
    result: ToolResult | None = None
    freed: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """A call that waits for a key. `line`: its run id and those of the calls in whose bodies it was made."""

    entry: Entry
    line: frozenset[str]
    woken: anyio.Event


@final
class KeyTable:
    """The keys of one session."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._entries: dict[str, Entry] = {}
        self._waiting: dict[Waiting, None] = {}
        self._clock = clock

    def claim(self, key: str, digest: str, holder: Holder, seconds: float | None = None) -> Entry | None:
        """Take a free key: None, and `finish` must follow. Else the entry that has it, with the same digest or another."""
        entry = self._entries.get(key)
        expired = entry is not None and entry.expires is not None and entry.expires <= self._clock()
        if entry is not None and not (expired and entry.state is KeyState.COMPLETED):
            return entry
        self._entries.pop(key, None)
        self._entries[key] = Entry(digest, holder.run_id, holder, None if seconds is None else self._clock() + seconds)
        return None

    def finish(self, key: str, result: ToolResult) -> None:
        """Say what became of the call that claimed `key`."""
        entry = self._entries[key]
        entry.result, entry.holder = result, None
        if result.outcome is Outcome.SUCCEEDED or _change_is_certain(result):
            entry.state = KeyState.COMPLETED
        elif not result.started or result.effects.state in (EffectState.NONE, EffectState.REVERTED):
            entry.freed = True
            del self._entries[key]
        else:
            entry.state = KeyState.IN_DOUBT
        for waiting in self._waiting:
            if waiting.entry is entry:
                waiting.woken.set()
        self._forget_oldest()

    def closes_circle(self, entry: Entry, line: frozenset[str]) -> bool:
        """Whether a call of this `line` would wait for one that waits for the line.

        A key is free again when its call has settled: after all its child calls, and after the calls before it in its batch.
        """
        ahead, seen = [entry.holder], set[str]()
        while ahead:
            holder = ahead.pop()
            if holder is None:
                continue
            if holder.run_id in line:
                return True
            if holder.run_id not in seen:
                seen.add(holder.run_id)
                ahead += [waiting.entry.holder for waiting in self._waiting if holder.run_id in waiting.line]
                if holder.previous is not None and holder.previous.result is None:
                    ahead.append(holder.previous)
        return False

    def wait(self, entry: Entry, line: frozenset[str], woken: anyio.Event) -> Waiting:
        """Have `woken` set when the call that has the key settles. `leave` must follow."""
        waiting = Waiting(entry, line, woken)
        self._waiting[waiting] = None
        return waiting

    def leave(self, waiting: Waiting) -> None:
        """It waits no more."""
        del self._waiting[waiting]

    def _forget_oldest(self) -> None:
        surplus = len(self._entries) - KEPT_KEYS
        if surplus > 0:
            completed = [key for key, entry in self._entries.items() if entry.state is KeyState.COMPLETED]
            for key in completed[:surplus]:
                del self._entries[key]


def _change_is_certain(result: ToolResult) -> bool:
    return result.effects.state is EffectState.COMPLETED and result.effects.evidence in ("reported", "observed")
