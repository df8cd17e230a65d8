"""One rule: which calls it is about, and what it says of them. Frozen values; no state."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from toolrunner.errors import PolicyError
from toolrunner.facts import Annotations
from toolrunner.policy.conditions import Patterns, compiled, read_arguments
from toolrunner.policy.reading.subject import NO_PROFILE
from toolrunner.policy.reading.wildcards import wildcard
from toolrunner.policy.verdicts import Verdict

_HINTS = ("read_only", "destructive", "idempotent", "open_world")
_LISTS = ("paths", "hosts", "commands", "profiles")
_NO_WILDCARDS = frozenset("?[]{}()!")
"""What means something in other globs and stands in no tool's name: refused, lest somebody trusts a rule that matches nothing."""


@final
@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: for which tools it is, and what it says of them. Raises PolicyError when it makes no sense.

    `tools` are names, where `*` stands for any characters. The others match what the tool declares (None: whatever it is). What a
    tool does not declare counts as MCP's defaults have it: destructive unless read-only, and open-world.

    `paths`, `hosts`, `commands` and `arguments` (names, dotted, and texts) are about the call's arguments: a rule that asks or
    forbids matches if one thing in the call fits, a rule that allows if there is one and all do. Whatever a rule names must
    match. `profiles` are names of sandbox profiles, `none` that of a call without.
    """

    decision: Verdict
    tools: Sequence[str] = ("*",)
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    text: str = ""
    name: str = ""
    paths: Sequence[str] | None = None
    hosts: Sequence[str] | None = None
    commands: Sequence[str] | None = None
    arguments: Mapping[str, str | Sequence[str]] | None = field(default=None, hash=False)
    profiles: Sequence[str] | None = None
    patterns: Patterns = field(init=False, repr=False, compare=False)
    _globs: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)
    _profiles: tuple[re.Pattern[str], ...] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "decision", verdict(self.decision, "a rule's decision"))
        object.__setattr__(self, "tools", globs(self.tools))
        for what in _LISTS:
            object.__setattr__(self, what, _texts(what, getattr(self, what)))
        arguments = read_arguments(self.arguments) if self.arguments is not None else None
        patterns = Patterns(self.paths, self.hosts, self.commands, arguments)  # type: ignore[arg-type]  # tuples by now
        compiled(patterns, "/", strict=True)  # what is no pattern is refused here, where the rule is written
        object.__setattr__(self, "patterns", patterns)
        for hint in _HINTS:
            if not isinstance(getattr(self, hint), bool | None):
                raise PolicyError(f"{self}: {hint} is {getattr(self, hint)!r}; expected true, false or nothing")
        if self.read_only and self.destructive:
            raise PolicyError(f"{self}: read_only and destructive contradict each other; no call can be both")
        object.__setattr__(self, "_globs", tuple(map(wildcard, self.tools)))
        profiles = None if self.profiles is None else tuple(map(wildcard, self.profiles))
        object.__setattr__(self, "_profiles", profiles)

    def __str__(self) -> str:
        if self.name:
            return self.name
        hints = [f"{hint}={str(value).lower()}" for hint in _HINTS if (value := getattr(self, hint)) is not None]
        lists = [f"{what}={', '.join(found)}" for what in _LISTS if (found := getattr(self, what)) is not None]
        named = [f"{name}={', '.join(texts)}" for name, texts in self.patterns.arguments or ()]
        return " ".join([self.decision, ", ".join(self.tools), *hints, *lists, *named])

    def is_for(self, name: str, annotations: Annotations, profile: str = NO_PROFILE) -> bool:
        """Whether it is about such calls at all, whatever their arguments."""
        declared = _declared(annotations)
        return (
            any(glob.fullmatch(name) for glob in self._globs)
            and all(getattr(self, hint) in (None, declared[hint]) for hint in _HINTS)
            and (self._profiles is None or any(glob.fullmatch(profile) for glob in self._profiles))
        )

    def matches(self, name: str, annotations: Annotations) -> bool:
        """Whether this rule speaks about every call of the tool `name`, without a sandbox."""
        return not self.patterns and self.is_for(name, annotations)

    def covers(self, other: "Rule") -> bool:
        """Whether it certainly speaks about every call that `other` speaks about."""
        # A glob taken as a name: its own * can then only be met by a * of ours, which is what covering means.
        names = all(any(glob.fullmatch(name) for glob in self._globs) for name in other.tools)
        hints = all(getattr(self, hint) in (None, getattr(other, hint)) for hint in _HINTS)
        return names and hints and self._covers_profiles(other) and self.patterns.covers(other.patterns)

    def _covers_profiles(self, other: "Rule") -> bool:
        ours = self._profiles
        return ours is None or (
            other.profiles is not None and all(any(glob.fullmatch(name) for glob in ours) for name in other.profiles)
        )


def verdict(word: object, what: str) -> Verdict:
    """The verdict of this word. Raises PolicyError."""
    try:
        return Verdict(word)  # type: ignore[arg-type]  # whatever it is, the enum says whether it is one of its words
    except ValueError:
        raise PolicyError(f"{what} is {word!r}; expected allow, ask or deny") from None


def globs(tools: Iterable[str]) -> tuple[str, ...]:
    """Names of tools, in which * stands for any characters. Raises PolicyError."""
    if isinstance(tools, str) or not isinstance(tools, Iterable):
        raise PolicyError(f"tools is {tools!r}; expected a list of names, such as [{tools!r}]")
    names = tuple(tools)
    if not names:
        raise PolicyError("a rule names no tool; leave `tools` out to mean all of them")
    for glob in names:
        if not isinstance(glob, str) or not glob or glob != glob.strip() or _NO_WILDCARDS & set(glob):
            raise PolicyError(f"{glob!r} is no name of a tool; only * is special in it")
    return names


def _texts(what: str, value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise PolicyError(f"{what} is {value!r}; expected a list of texts, such as [{value!r}]")
    found = tuple(value)
    if not all(isinstance(one, str) and one for one in found):
        raise PolicyError(f"{what} is {list(found)!r}; expected a list of texts")
    return found


def _declared(annotations: Annotations) -> dict[str, bool]:
    destructive = annotations.destructive
    return {
        "read_only": annotations.read_only,
        # A read-only tool cannot destroy anything, whatever MCP's default for the silent ones is.
        "destructive": (not annotations.read_only) if destructive is None else destructive,
        "idempotent": annotations.idempotent,
        "open_world": annotations.open_world is not False,
    }
