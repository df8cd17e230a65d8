"""Conditions of a rule over what a call is about. Frozen values; no state.

One rule of reading for all of them: a rule that asks or forbids matches if anything in the call fits, and if something cannot be
read; a rule that allows matches only if there is something to fit and all of it does. So a doubt is never a permission.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from toolrunner.errors import PolicyError
from toolrunner.policy.reading import hosts as host_patterns
from toolrunner.policy.reading.call import Reading
from toolrunner.policy.reading.commands import CommandPattern, Line
from toolrunner.policy.reading.hosts import HostPattern
from toolrunner.policy.reading.paths import CompiledPath, PathPattern
from toolrunner.policy.reading.wildcards import wildcard


@final
@dataclass(frozen=True, slots=True)
class Patterns:
    """What a rule says of arguments, as it was written. None: it says nothing of them."""

    paths: tuple[str, ...] | None = None
    hosts: tuple[str, ...] | None = None
    commands: tuple[str, ...] | None = None
    arguments: tuple[tuple[str, tuple[str, ...]], ...] | None = None

    def __bool__(self) -> bool:
        return any(one is not None for one in (self.paths, self.hosts, self.commands, self.arguments))

    def covers(self, other: "Patterns") -> bool:
        """Whether they fit whatever the other ones fit. Only what is plain to see counts."""
        pairs = (
            (self.paths, other.paths),
            (self.hosts, other.hosts),
            (self.commands, other.commands),
            (self.arguments, other.arguments),
        )
        return all(ours is None or (theirs is not None and set(ours) >= set(theirs)) for ours, theirs in pairs)


@final
@dataclass(frozen=True, slots=True)
class Conditions:
    """The same, ready to be matched for a rule of one verdict. An empty list fits nothing."""

    strict: bool
    paths: tuple[CompiledPath, ...] | None
    hosts: tuple[HostPattern, ...] | None
    commands: tuple[CommandPattern, ...] | None
    arguments: tuple[tuple[tuple[str, ...], tuple[re.Pattern[str], ...]], ...] | None

    def match(self, reading: Reading) -> bool:
        return (
            (self.arguments is None or all(self._has(reading, *one) for one in self.arguments))
            and (self.commands is None or self._runs(reading, self.commands))
            and (self.hosts is None or self._reaches(reading, self.hosts))
            and (self.paths is None or self._touches(reading, self.paths))
        )

    def _has(self, reading: Reading, name: tuple[str, ...], globs: tuple[re.Pattern[str], ...]) -> bool:
        fits = [any(glob.fullmatch(text) for glob in globs) for text in _values(reading.subject.arguments, name)]
        return any(fits) if self.strict else bool(fits) and all(fits)

    def _runs(self, reading: Reading, patterns: tuple[CommandPattern, ...]) -> bool:
        line = reading.line
        if line is None:
            return False
        if self.strict:
            return any(one.stands_in(line) for one in patterns) or bool(patterns and not line.commands)
        # Variables can make another program of the same words (PATH, LD_PRELOAD, GIT_SSH), so they are not covered.
        return not reading.subject.env and (any(one.is_every for one in patterns) or _all_are(line, patterns))

    def _reaches(self, reading: Reading, patterns: tuple[HostPattern, ...]) -> bool:
        found = reading.hosts
        if self.strict:
            return bool(patterns) and any(
                host is None or any(one.matches(host, strict=True) for one in patterns) for host in found
            )
        return bool(found) and all(
            host is not None and any(one.matches(host, strict=False) for one in patterns) for host in found
        )

    def _touches(self, reading: Reading, patterns: tuple[CompiledPath, ...]) -> bool:
        if self.strict:
            hit = any(one.regex.fullmatch(path) for path in reading.paths for one in patterns)
            return hit or (bool(patterns) and not reading.paths_readable)
        named = reading.named_paths
        return bool(named) and all(any(one.regex.fullmatch(path) for one in patterns) for path in named)

    def keys(self) -> frozenset[str] | None:
        """A call that shows none of these cannot match; None: any call may."""
        if self.paths is not None:
            return frozenset(one.key for one in self.paths)
        if self.hosts is not None:
            return frozenset(f"host {one.key}" for one in self.hosts)
        if self.commands is not None and all(one.key is not None for one in self.commands):
            return frozenset(f"word {one.key}" for one in self.commands)
        if self.arguments:
            return frozenset((f"name {self.arguments[0][0][0]}",))
        return None


def _all_are(line: Line, patterns: tuple[CommandPattern, ...]) -> bool:
    """Whether the line is nothing but such commands."""
    return line.plain and bool(line.commands) and all(any(one.fits(words) for one in patterns) for words in line.commands)


def compiled(patterns: Patterns, workspace: str, *, strict: bool) -> Conditions:
    """Ready for matching, with relative paths beginning in `workspace`. Raises PolicyError for what is no pattern."""
    paths, hosts, commands, arguments = patterns.paths, patterns.hosts, patterns.commands, patterns.arguments
    return Conditions(
        strict=strict,
        paths=None
        if paths is None
        else tuple(one for text in paths for one in PathPattern(text).compiled(workspace, strict=strict)),
        hosts=None if hosts is None else tuple(map(host_patterns.pattern, hosts)),
        commands=None if commands is None else tuple(map(CommandPattern, commands)),
        arguments=None
        if arguments is None
        else tuple((tuple(name.split(".")), tuple(map(wildcard, texts))) for name, texts in arguments),
    )


def read_arguments(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """`{"branch": ["main", "release/*"]}`; one text stands for a list of one. Raises PolicyError."""
    if not isinstance(value, Mapping) or not value:
        raise PolicyError(f"arguments is {value!r}; expected a table of names and texts")
    found = []
    for name, texts in value.items():
        several = (texts,) if isinstance(texts, str) else texts
        if not isinstance(name, str) or not all(name.split(".")):
            raise PolicyError(f"{name!r} is no name of an argument")
        if not isinstance(several, Sequence) or not several or not all(isinstance(one, str) for one in several):
            raise PolicyError(f"arguments.{name} is {texts!r}; expected a text or a list of texts, where * is anything")
        found.append((name, tuple(several)))
    return tuple(found)


def _values(value: Any, name: tuple[str, ...]) -> list[str]:
    """What stands under a dotted name, as texts. Lists are looked through; JSON's own words stand for what is no text."""
    if isinstance(value, list | tuple):
        return [text for item in value for text in _values(item, name)]
    if name:
        return _values(value[name[0]], name[1:]) if isinstance(value, Mapping) and name[0] in value else []
    if isinstance(value, Mapping):
        return []
    return [value if isinstance(value, str) else json.dumps(value, default=str)]
