"""Rules that judge a call before anybody is asked: allow, ask or deny. Frozen values; no state.

The strictest matching rule wins, whatever the order, so reading one rule never needs the others; a rule that could therefore
never act is refused when the policy is made, since somebody believes in it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, final

from toolrunner.errors import PolicyError
from toolrunner.facts import Annotations


class Verdict(StrEnum):
    """What a rule, a policy or a hook says of a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


_STRICTNESS = {Verdict.ALLOW: 0, Verdict.ASK: 1, Verdict.DENY: 2}
_HINTS = ("read_only", "destructive", "idempotent", "open_world")
_NO_WILDCARDS = frozenset("?[]{}!")
"""What means something in other globs and stands in no tool's name: refused, lest somebody trusts a rule that matches nothing."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a policy says of one call. `by` names the rule, `text` is its reason for people and the model."""

    decision: Verdict
    by: str
    text: str = ""


@final
@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: for which tools it is, and what it says of them. Raises PolicyError when it makes no sense.

    `tools` are names, where `*` stands for any characters. The others match what the tool declares (None: whatever it is). What a
    tool does not declare counts as MCP's defaults have it: destructive unless read-only, and open-world.
    """

    decision: Verdict
    tools: Sequence[str] = ("*",)
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    text: str = ""
    name: str = ""
    _patterns: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "decision", _verdict(self.decision, "a rule's decision"))
        object.__setattr__(self, "tools", _globs(self.tools))
        for hint in _HINTS:
            if not isinstance(getattr(self, hint), bool | None):
                raise PolicyError(f"{self}: {hint} is {getattr(self, hint)!r}; expected true, false or nothing")
        if self.read_only and self.destructive:
            raise PolicyError(f"{self}: read_only and destructive contradict each other; no call can be both")
        object.__setattr__(self, "_patterns", tuple(_compiled(glob) for glob in self.tools))

    def __str__(self) -> str:
        hints = [f"{hint}={str(value).lower()}" for hint in _HINTS if (value := getattr(self, hint)) is not None]
        return self.name or " ".join([self.decision, ", ".join(self.tools), *hints])

    def matches(self, name: str, annotations: Annotations) -> bool:
        """Whether this rule speaks about a call of the tool `name`."""
        declared = _declared(annotations)
        return self._names(name) and all(getattr(self, hint) in (None, declared[hint]) for hint in _HINTS)

    def covers(self, other: "Rule") -> bool:
        """Whether it speaks about every call that `other` speaks about."""
        # A glob taken as a name: its own * can then only be met by a * of ours, which is what covering means.
        return all(map(self._names, other.tools)) and all(getattr(self, hint) in (None, getattr(other, hint)) for hint in _HINTS)

    def _names(self, name: str) -> bool:
        return any(pattern.fullmatch(name) for pattern in self._patterns)


@final
@dataclass(frozen=True, slots=True)
class Policy:
    """A set of rules: deny before ask before allow. What no rule speaks about is `default`, which is ask unless said otherwise.

    Raises PolicyError when a rule could never act because a stricter one covers it.
    """

    rules: Sequence[Rule]
    name: str = "policy"
    default: Verdict = Verdict.ASK

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        object.__setattr__(self, "default", _verdict(self.default, f"the default of {self.name!r}"))
        for rule in self.rules:
            if not isinstance(rule, Rule):
                raise PolicyError(f"policy {self.name!r} has {rule!r} among its rules; expected Rule(...)")
        for rule in self.rules:
            for other in self.rules:
                if _STRICTNESS[other.decision] > _STRICTNESS[rule.decision] and other.covers(rule):
                    raise PolicyError(
                        f"policy {self.name!r}: {str(rule)!r} contradicts {str(other)!r}, which is stricter and covers it, "
                        f"so it would never act; narrow the stricter rule, or make it the policy's default"
                    )

    @classmethod
    def of(
        cls,
        *,
        allow: Iterable[str] = (),
        ask: Iterable[str] = (),
        deny: Iterable[str] = (),
        name: str = "policy",
        default: Verdict | str = Verdict.ASK,
    ) -> "Policy":
        """A policy by tool names alone: `Policy.of(allow=["read_*"], ask=["shell"], deny=["deploy"])`."""
        lists = ((Verdict.ALLOW, allow), (Verdict.ASK, ask), (Verdict.DENY, deny))
        # One rule for each name, so that a judgement names the very line that made it.
        rules = [Rule(verdict, (glob,)) for verdict, globs in lists for glob in (_globs(globs) if globs else ())]
        return cls(rules, name=name, default=_verdict(default, f"the default of {name!r}"))

    def decide(self, name: str, annotations: Annotations, arguments: Mapping[str, Any] | None = None) -> Judgement:
        """Judge one call. `arguments` are part of the question although no rule of today looks at them."""
        del arguments
        matching = [rule for rule in self.rules if rule.matches(name, annotations)]
        found = [Judgement(rule.decision, f"{self.name}: {rule}", rule.text) for rule in matching]
        return strictest(found) if found else Judgement(self.default, f"{self.name}: no rule matches")


def strictest(judgements: Iterable[Judgement]) -> Judgement:
    """The strictest of several, at least one; the first among equals. So several policies over one call are judged like one."""
    return max(judgements, key=lambda judgement: _STRICTNESS[judgement.decision])


def _verdict(word: object, what: str) -> Verdict:
    try:
        return Verdict(word)  # type: ignore[arg-type]  # whatever it is, the enum says whether it is one of its words
    except ValueError:
        raise PolicyError(f"{what} is {word!r}; expected allow, ask or deny") from None


def _globs(tools: Iterable[str]) -> tuple[str, ...]:
    if isinstance(tools, str) or not isinstance(tools, Iterable):
        raise PolicyError(f"tools is {tools!r}; expected a list of names, such as [{tools!r}]")
    globs = tuple(tools)
    if not globs:
        raise PolicyError("a rule names no tool; leave `tools` out to mean all of them")
    for glob in globs:
        if not isinstance(glob, str) or not glob or glob != glob.strip() or _NO_WILDCARDS & set(glob):
            raise PolicyError(f"{glob!r} is no name of a tool; only * is special in it")
    return globs


def _compiled(glob: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, re.split(r"\*+", glob))), re.DOTALL)


def _declared(annotations: Annotations) -> dict[str, bool]:
    destructive = annotations.destructive
    return {
        "read_only": annotations.read_only,
        # A read-only tool cannot destroy anything, whatever MCP's default for the silent ones is.
        "destructive": (not annotations.read_only) if destructive is None else destructive,
        "idempotent": annotations.idempotent,
        "open_world": annotations.open_world is not False,
    }
