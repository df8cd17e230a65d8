"""A policy as people write it: one file, one model. Frozen values; no state. `policies/README.md` is its page for people."""

from typing import Any, final

from pydantic import Field

from toolrunner.config import Document, Strict
from toolrunner.facts import Annotations
from toolrunner.policy.policies import Remember
from toolrunner.policy.reading.subject import NO_PROFILE, Names
from toolrunner.policy.rule import Rule
from toolrunner.policy.verdicts import Verdict

JOINED = frozenset({"allow", "ask", "deny", "names.paths", "names.hosts", "names.commands"})
"""Lists to which an extending file adds; whatever else it says takes the place of what it extends."""

HOST_ONLY = ("asks", "profile", "remember", "approval_timeout")
"""What a workspace's file has no say in: it may forbid and ask more, and nothing else."""

MOST_RULES = 2_000
"""Rules of one file. Finding those that never act compares each with each."""

MOST_SECONDS = 86_400.0
"""Of one question: a day. A longer wait is nobody's answer."""


@final
class RuleTable(Strict):
    """A rule; its verdict is the list that it stands in."""

    tools: tuple[str, ...] = ("*",)
    name: str = Field("", max_length=80)
    text: str = Field("", max_length=500)
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    paths: tuple[str, ...] | None = None
    hosts: tuple[str, ...] | None = None
    commands: tuple[str, ...] | None = None
    arguments: dict[str, str | tuple[str, ...]] | None = None
    profiles: tuple[str, ...] | None = None

    def rule(self, decision: Verdict) -> Rule:
        """Raises PolicyError when it makes no sense."""
        return Rule(decision, **{name: getattr(self, name) for name in type(self).model_fields})


@final
class AnnotationsTable(Strict):
    """What a tool declares."""

    read_only: bool = False
    destructive: bool | None = None
    idempotent: bool = False
    open_world: bool | None = None

    def annotations(self) -> Annotations:
        return Annotations(self.read_only, self.destructive, self.idempotent, self.open_world)


@final
class Example(Strict):
    """A call and what the policy says of it: a claim about the rules that is checked whenever they are read."""

    tool: str
    expect: Verdict
    arguments: dict[str, Any] = Field(default_factory=dict)
    annotations: AnnotationsTable = AnnotationsTable()
    profile: str = NO_PROFILE
    env: tuple[str, ...] = ()


@final
class NamesTable(Strict):
    """What more the arguments with paths, hosts and commands are called."""

    paths: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    def names(self) -> Names:
        return Names(frozenset(self.paths), frozenset(self.hosts), frozenset(self.commands))


@final
class PolicyFile(Document):
    """A policy. In the three lists a text is a tool's name, a table a rule."""

    default: Verdict = Verdict.ASK
    asks: bool = True
    profile: str | None = None
    remember: Remember = Remember.SESSION
    approval_timeout: float | None = Field(None, gt=0, le=MOST_SECONDS)
    names: NamesTable = NamesTable()
    allow: tuple[str | RuleTable, ...] = Field((), max_length=MOST_RULES)
    ask: tuple[str | RuleTable, ...] = Field((), max_length=MOST_RULES)
    deny: tuple[str | RuleTable, ...] = Field((), max_length=MOST_RULES)
    examples: tuple[Example, ...] = ()

    def rules(self) -> tuple[Rule, ...]:
        """The strictest first. Raises PolicyError."""
        lists = ((Verdict.DENY, self.deny), (Verdict.ASK, self.ask), (Verdict.ALLOW, self.allow))
        return tuple(
            one.rule(decision) if isinstance(one, RuleTable) else Rule(decision, (one,))
            for decision, ones in lists
            for one in ones
        )
