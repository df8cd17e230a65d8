"""KeyTable: which idempotency keys this session has seen, and what became of the call that used each.

State: key -> entry, changed by `claim` and `finish`, synchronously: two calls cannot both find a key free. Only a call that
proved to have no effects gives its key back. What earlier owners of the session's journal did with a key is looked up there
(`past`), when it is brought for the first time.
"""

import hashlib
import json
import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, final

import anyio

from toolrunner.facts import EffectState
from toolrunner.journal.clocks import boottime
from toolrunner.pipeline.circles import HeldUp, WaitGraph
from toolrunner.pipeline.leases import WouldDeadlock
from toolrunner.results import Outcome, ToolResult

KEPT_KEYS = 10_000
"""Completed keys are forgotten beyond this many, oldest first; keys in doubt are never forgotten."""


def arguments_digest(tool: str, arguments: object) -> str:
    """SHA-256 of a tool's name and its arguments in canonical JSON."""
    return hashlib.sha256(json.dumps([tool, arguments], sort_keys=True, separators=(",", ":")).encode()).hexdigest()


CLAIMED_BY = "dedupe_by_arguments"
"""Who says in a `call/decided` that a call took the key of its arguments, which no other record names."""

_CLAIM = re.compile(r"(arguments:\S+) until (\S+) for (\S+)")


@dataclass(frozen=True, slots=True)
class Claim:
    """A key as the journal keeps it. `expires` in seconds of CLOCK_BOOTTIME of the boot it was taken in, after `seconds`."""

    key: str
    expires: float | None
    seconds: float | None

    def text(self) -> str:
        """As `call/decided` says it."""
        return f"{self.key} until {self.expires if self.expires is not None else '-'} for {self.seconds or '-'}"

    @classmethod
    def read(cls, text: str) -> "Claim | None":
        """What `text` wrote; None if it did not."""
        found = _CLAIM.fullmatch(text)
        return cls(found[1], _number(found[2]), _number(found[3])) if found is not None else None


def _number(text: str) -> float | None:
    return None if text == "-" else float(text)


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

    digest: str | None
    """None: the arguments were masked when they were written, so they cannot be compared; the key alone decides."""
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
    """A call that waits for a key: a `Wait`. `leases` are those of the calls in whose bodies it was made."""

    entry: Entry
    line: frozenset[str]
    leases: frozenset[object]
    woken: anyio.Event = field(default_factory=anyio.Event)

    def above(self) -> AbstractSet[object]:
        """What those calls hold."""
        return self.leases

    def can_go_on(self, held: HeldUp) -> bool:
        """A key is free again when its call has settled: after its child calls, and after the calls before it in its batch."""
        holder = self.entry.holder
        while holder is not None and holder.result is None:
            if holder.run_id in held.calls:
                return False
            holder = holder.previous
        return True


@final
class KeyTable:
    """The keys of one session."""

    def __init__(
        self,
        graph: WaitGraph | None = None,
        clock: Callable[[], float] = boottime,
        past: Callable[[str, str], Entry | None] | None = None,
    ) -> None:
        """`past(key, run_id)`: what a call other than `run_id` made of a key that is not in the table, by the journal."""
        self._past = past
        self._graph = graph if graph is not None else WaitGraph()
        self._entries: dict[str, Entry] = {}
        self._waiting: dict[Waiting, None] = {}
        self._clock = clock
        self._cleared: set[str] = set()
        """Calls whose key was found to be free since: the journal still tells of them as it did. A few at the most."""

    def claim(self, key: str, digest: str, holder: Holder, seconds: float | None = None) -> Entry | None:
        """Take a free key: None, and `finish` must follow. Else the entry that has it, with the same digest or another."""
        entry = self._entries.get(key)
        if entry is None and self._past is not None:
            entry = self._past(key, holder.run_id)
            if entry is not None and entry.run_id in self._cleared:
                entry = None
            if entry is not None:
                self._entries[key] = entry
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
        state = state_after(result)
        if state is None:
            entry.freed = True
            del self._entries[key]
        else:
            entry.state = state
        for waiting in self._waiting:
            if waiting.entry is entry:
                waiting.woken.set()
        self._forget_oldest()

    def clear_up(self, run_id: str, *, completed: bool) -> None:
        """Somebody found out what became of a call: its key, if it is in doubt, is completed, or free again."""
        for key, entry in tuple(self._entries.items()):
            if entry.run_id == run_id and entry.state is KeyState.IN_DOUBT:
                if completed:
                    entry.state = KeyState.COMPLETED
                else:
                    entry.freed = True
                    del self._entries[key]
                    self._cleared.add(run_id)

    def wait(self, entry: Entry, line: frozenset[str], leases: frozenset[object] = frozenset()) -> Waiting:
        """Have `woken` set when the call that has the key settles. `leave` must follow.

        Raises `WouldDeadlock` when that call waits for one of this `line`, in whatever way.
        """
        waiting = Waiting(entry, line, leases)
        self._waiting[waiting] = None
        self._graph.enter(waiting, for_key=True)
        if self._graph.is_stuck(waiting):
            self.leave(waiting)
            raise WouldDeadlock
        return waiting

    def leave(self, waiting: Waiting) -> None:
        """It waits no more."""
        del self._waiting[waiting]
        self._graph.leave(waiting)

    def _forget_oldest(self) -> None:
        surplus = len(self._entries) - KEPT_KEYS
        if surplus > 0:
            completed = [key for key, entry in self._entries.items() if entry.state is KeyState.COMPLETED]
            for key in completed[:surplus]:
                del self._entries[key]


def state_after(result: ToolResult) -> KeyState | None:
    """What a key says once the call that took it has this result; None = it is free again."""
    if result.outcome is Outcome.SUCCEEDED or _change_is_certain(result):
        return KeyState.COMPLETED
    if not result.started or result.effects.state in (EffectState.NONE, EffectState.REVERTED):
        return None
    return KeyState.IN_DOUBT


def _change_is_certain(result: ToolResult) -> bool:
    return result.effects.state is EffectState.COMPLETED and result.effects.evidence in ("reported", "observed")
