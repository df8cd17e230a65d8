"""Choice: which rule speaks about a call, found without asking each of them. State: a table for each kind of call seen so far.

What a rule says of tools, annotations and profile is settled once for all calls of a kind; what it says of arguments is asked
only of rules that share a key with the call: a folder, a domain, a word. With 200 rules that is the difference between one
millisecond and a few hundredths of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

from toolrunner.facts import Annotations
from toolrunner.policy.conditions import Conditions, compiled
from toolrunner.policy.reading.call import Reading
from toolrunner.policy.reading.paths import lookups
from toolrunner.policy.reading.subject import Subject
from toolrunner.policy.rule import Rule
from toolrunner.policy.verdicts import STRICTEST_FIRST, Verdict

MOST_KINDS = 256
"""Kinds of calls whose tables are kept: tools times their annotations, so far more than a runner has."""

_Kind = tuple[str, Annotations, str]


@final
@dataclass(frozen=True, slots=True)
class _Table:
    """The rules of one verdict for one kind of call. `certain` matches whatever the arguments are."""

    certain: Rule | None
    always: tuple[tuple[Rule, Conditions], ...]
    by_key: dict[str, list[tuple[Rule, Conditions]]]

    def find(self, reading: Reading, keys: Iterable[str] | None) -> Rule | None:
        """The rule that matches. `keys` None: the call cannot be read whole, so every rule is asked."""
        if self.certain is not None:
            return self.certain
        for rule, conditions in self.always:
            if conditions.match(reading):
                return rule
        if keys is None:
            several: Iterable[Sequence[tuple[Rule, Conditions]]] = self.by_key.values()
        else:
            several = [self.by_key[key] for key in keys if key in self.by_key]
        for candidates in several:
            for rule, conditions in candidates:
                if conditions.match(reading):
                    return rule
        return None


_Tables = tuple[list[_Table], frozenset[str]]
"""By verdict, the strictest first; and the sorts of keys in them."""


@final
class Choice:
    """The rules of one policy. `workspace` is where their relative paths begin."""

    def __init__(self, rules: Sequence[Rule], workspace: str) -> None:
        self._rules = [(rule, _conditions(rule, workspace)) for rule in rules]
        self._tables: dict[_Kind, _Tables] = {}

    def find(self, reading: Reading) -> Rule | None:
        """The strictest rule that speaks about the call."""
        tables, sorts = self._of(reading.subject)
        keys = _keys(reading, sorts) if sorts else ()
        for table in tables:
            found = table.find(reading, keys)
            if found is not None:
                return found
        return None

    def every(self, reading: Reading) -> list[Rule]:
        """All rules that speak about the call, in their order; for whoever asks why."""
        subject = reading.subject
        return [
            rule
            for rule, conditions in self._rules
            if rule.is_for(subject.tool, subject.annotations, subject.profile)
            and (conditions is None or conditions.match(reading))
        ]

    def _of(self, subject: Subject) -> _Tables:
        kind = _kind(subject)
        found = self._tables.get(kind)
        if found is None:
            if len(self._tables) >= MOST_KINDS:
                self._tables.clear()
            chosen = [one for one in self._rules if one[0].is_for(*kind)]
            tables = [_table([one for one in chosen if one[0].decision is verdict]) for verdict in STRICTEST_FIRST]
            found = self._tables[kind] = (tables, frozenset(key.partition(" ")[0] for one in tables for key in one.by_key))
        return found


def _kind(subject: Subject) -> _Kind:
    return subject.tool, subject.annotations, subject.profile


def _conditions(rule: Rule, workspace: str) -> Conditions | None:
    return compiled(rule.patterns, workspace, strict=rule.decision is not Verdict.ALLOW) if rule.patterns else None


def _table(rules: list[tuple[Rule, Conditions | None]]) -> _Table:
    """What is certain for a kind of call needs no look at its arguments, so then nothing else is kept."""
    always: list[tuple[Rule, Conditions]] = []
    by_key: dict[str, list[tuple[Rule, Conditions]]] = {}
    certain = None
    for rule, conditions in rules:
        if conditions is None:
            certain = certain or rule
            continue
        keys = conditions.keys()
        if keys is None:
            always.append((rule, conditions))
        for key in keys or ():
            by_key.setdefault(key, []).append((rule, conditions))
    return _Table(None, tuple(always), by_key) if certain is None else _Table(certain, (), {})


def _keys(reading: Reading, sorts: frozenset[str]) -> Iterable[str] | None:
    """What rules are looked up by, of the sorts that any rule has; None when the call cannot be read whole."""
    found: dict[str, None] = {}
    if "name" in sorts:
        found.update((f"name {name}", None) for name in reading.subject.arguments)
    if "path" in sorts or "part" in sorts:
        for path in reading.paths:
            found.update(dict.fromkeys(lookups(path)))
    if "host" in sorts:
        for host in reading.hosts:
            if host is None:
                return None
            found.update((f"host {key}", None) for key in host.lookups())
    if "word" in sorts:
        found.update(dict.fromkeys(_words(reading)))
    unread = reading.line is not None and not reading.line.commands
    return None if unread or not reading.paths_readable else found


def _words(reading: Reading) -> Iterator[str]:
    """Of a program under some path its own name too."""
    for word in reading.words:
        yield f"word {word}"
        yield f"word {word.rpartition('/')[2]}"
