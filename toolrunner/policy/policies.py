"""Policy: rules that judge a call before anybody is asked. Frozen; what `Choice` keeps of them changes no answer.

The strictest matching rule wins, whatever the order, so reading one rule never needs the others; a rule that could therefore
never act is refused when the policy is made, since somebody believes in it. Several policies over one call are judged like one.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, final

from toolrunner.errors import PolicyError
from toolrunner.facts import Annotations
from toolrunner.policy.choosing import Choice
from toolrunner.policy.reading.call import Reading
from toolrunner.policy.reading.subject import NAMES, Names, Subject
from toolrunner.policy.rule import Rule, globs, verdict
from toolrunner.policy.verdicts import STRICTNESS, Judgement, Verdict, strictest

NOBODY_ASKED = "and under this policy nobody is asked, so the call is denied"


class Remember(StrEnum):
    """How long an answer may be kept, at most."""

    NO = "no"
    SESSION = "session"
    USER = "user"


@final
@dataclass(frozen=True, slots=True)
class Policy:
    """A set of rules: deny before ask before allow. What no rule speaks about is `default`, which is ask unless said otherwise.

    `workspace` is the folder in which relative paths of rules and arguments begin (default: the current one), `names` what
    arguments with paths, hosts and commands are called. `also` are evaluated too, and the strictest of all counts. With
    `asks=False` an ask is a denial and no approver is consulted. `profile` is the sandbox profile of calls that name none.
    `digest` is the SHA-256 of the files it was made of.

    Raises PolicyError when a rule could never act because a stricter one covers it.
    """

    rules: Sequence[Rule]
    name: str = "policy"
    default: Verdict = Verdict.ASK
    workspace: str | Path | None = None
    names: Names = NAMES
    also: Sequence["Policy"] = ()
    asks: bool = True
    profile: str | None = None
    remember: Remember = Remember.SESSION
    approval_timeout: float | None = None
    digest: str = ""
    _choice: Choice = field(init=False, repr=False, compare=False)
    _base: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        object.__setattr__(self, "also", tuple(self.also))
        object.__setattr__(self, "default", verdict(self.default, f"the default of {self.name!r}"))
        for rule in self.rules:
            if not isinstance(rule, Rule):
                raise PolicyError(f"policy {self.name!r} has {rule!r} among its rules; expected Rule(...)")
        for rule, other in _covered(self.rules):
            raise PolicyError(
                f"policy {self.name!r}: {str(rule)!r} contradicts {str(other)!r}, which is stricter and covers it, "
                f"so it would never act; narrow the stricter rule, or make it the policy's default"
            )
        workspace = _absolute(self.workspace, self.name)
        object.__setattr__(self, "_base", os.path.realpath(workspace))
        object.__setattr__(self, "_choice", Choice(self.rules, workspace))

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
        rules = [Rule(word, (glob,)) for word, names in lists for glob in (globs(names) if names else ())]
        return cls(rules, name=name, default=verdict(default, f"the default of {name!r}"))

    def decide(self, name: str, annotations: Annotations, arguments: Mapping[str, Any] | None = None) -> Judgement:
        """Judge a call of which no more is known than this. (`judge` takes all of it.)"""
        return self.judge(Subject(name, annotations, arguments or {}))

    def judge(self, subject: Subject) -> Judgement:
        """Judge one call. `subject.cwd` is a resolved folder, if any."""
        if not self.also:
            found = self._own(subject)
        else:
            found = strictest([self._own(subject), *(other.judge(subject) for other in self.also)])
        if found.decision is Verdict.ASK and not self.asks:
            return Judgement(Verdict.DENY, found.by, f"{found.text or f'{found.by} asks for approval'}, {NOBODY_ASKED}")
        return found

    def _own(self, subject: Subject) -> Judgement:
        rule = self._choice.find(self.reading(subject))
        if rule is None:
            return Judgement(self.default, f"{self.label}: no rule matches")
        return Judgement(rule.decision, f"{self.label}: {rule}", rule.text)

    def matching(self, subject: Subject) -> Iterator[tuple["Policy", Rule]]:
        """Every rule that speaks about the call, here and in those evaluated too."""
        for rule in self._choice.every(self.reading(subject)):
            yield self, rule
        for other in self.also:
            yield from other.matching(subject)

    def reading(self, subject: Subject) -> Reading:
        """What this policy's rules see of a call."""
        return Reading(subject, self.names, subject.cwd if subject.cwd is not None else self._base)

    @property
    def label(self) -> str:
        """Its name, and by which contents: a file may be another one tomorrow."""
        return f"{self.name}@{self.digest[:8]}" if self.digest else self.name


def _covered(rules: Sequence[Rule]) -> Iterator[tuple[Rule, Rule]]:
    """Rules that could never act, each with a stricter one that covers it."""
    for rule in rules:
        for other in rules:
            if STRICTNESS[other.decision] > STRICTNESS[rule.decision] and other.covers(rule):
                yield rule, other


def _absolute(workspace: str | Path | None, name: str) -> str:
    try:
        return str(Path(os.path.normpath(Path.cwd() / (workspace or ""))))
    except FileNotFoundError:  # getcwd(3)
        raise PolicyError(f"policy {name!r}: the current folder was removed, so relative paths mean nothing; name one") from None
