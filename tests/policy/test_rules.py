"""Rules: the strictest that matches wins, and one that could never act is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrunner.errors import PolicyError
from toolrunner.facts import Annotations
from toolrunner.policy import Judgement, Policy, Rule, Verdict, strictest

ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY
PLAIN = Annotations()
AnyRule: Any = Rule  # what a file, or a program without a type checker, can say
AnyPolicy: Any = Policy


def test_the_strictest_matching_rule_wins_whatever_the_order() -> None:
    rules = [Rule(ALLOW), Rule(DENY, ["shell"], text="no shells"), Rule(ASK, ["sh*"])]
    for order in (rules, rules[::-1]):
        policy = Policy(order, name="house")
        assert policy.decide("shell", PLAIN) == Judgement(DENY, "house: deny shell", "no shells")
        assert policy.decide("shred", PLAIN).decision is ASK
        assert policy.decide("read", PLAIN).decision is ALLOW


def test_what_no_rule_speaks_about_is_asked() -> None:
    policy = Policy.of(allow=["read_*"])
    assert policy.decide("read_file", PLAIN, {"path": "a"}).decision is ALLOW
    assert policy.decide("write_file", PLAIN) == Judgement(ASK, "policy: no rule matches")
    assert Policy.of(default="deny").decide("x", PLAIN).decision is DENY


def test_a_judgement_names_the_rule_that_made_it() -> None:
    policy = Policy.of(allow=["read_*", "list"], deny=["deploy"], name="mine")
    assert policy.decide("list", PLAIN).by == "mine: allow list"
    named = Policy([Rule(ALLOW, read_only=True, name="readers")])
    assert named.decide("x", Annotations(read_only=True)).by == "policy: readers"
    assert str(Rule(ALLOW, read_only=True, destructive=False)) == "allow * read_only=true destructive=false"


@pytest.mark.parametrize(
    "glob, name, matches",
    [
        ("read_*", "read_file", True),
        ("read_*", "read_", True),
        ("read_*", "thread_x", False),
        ("*", "a\nb", True),
        ("a.b", "axb", False),
        ("a*b*c", "a--b--c", True),
        ("a*b*c", "a--c", False),
        ("Read", "read", False),
    ],
)
def test_only_the_star_is_special(glob: str, name: str, matches: bool) -> None:
    assert (Policy.of(allow=[glob]).decide(name, PLAIN).decision is ALLOW) is matches


@pytest.mark.parametrize(
    "hints, annotations, matches",
    [
        ({"read_only": True}, Annotations(read_only=True), True),
        ({"read_only": True}, PLAIN, False),
        ({"read_only": False}, PLAIN, True),
        ({"destructive": True}, PLAIN, True),
        ({"destructive": False}, PLAIN, False),
        ({"destructive": False}, Annotations(read_only=True), True),
        ({"destructive": False}, Annotations(destructive=False), True),
        ({"open_world": False}, PLAIN, False),
        ({"open_world": False}, Annotations(open_world=False), True),
        ({"idempotent": True}, Annotations(idempotent=True), True),
        ({"idempotent": True, "read_only": True}, Annotations(idempotent=True), False),
    ],
)
def test_what_a_tool_does_not_declare_counts_as_the_more_dangerous(
    hints: dict[str, Any], annotations: Annotations, matches: bool
) -> None:
    assert Rule(ALLOW, **hints).matches("x", annotations) is matches


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda: AnyRule("maybe"), "expected allow, ask or deny"),
        (lambda: AnyRule(True), "expected allow, ask or deny"),
        (lambda: AnyRule([]), "expected allow, ask or deny"),
        (lambda: AnyPolicy([], default="maybe"), "default of 'policy'"),
        (lambda: Policy.of(default="maybe"), "default of 'policy'"),
        (lambda: AnyRule(ALLOW, "shell"), "list of names"),
        (lambda: Policy.of(allow="shell"), "list of names"),
        (lambda: AnyRule(ALLOW, 3), "list of names"),
        (lambda: AnyRule(ALLOW, []), "names no tool"),
        (lambda: AnyRule(ALLOW, [""]), "no name of a tool"),
        (lambda: AnyRule(ALLOW, ["read_?"]), "only \\* is special"),
        (lambda: AnyRule(ALLOW, ["!shell"]), "only \\* is special"),
        (lambda: AnyRule(ALLOW, [" shell"]), "no name of a tool"),
        (lambda: AnyRule(ALLOW, [None]), "no name of a tool"),
        (lambda: AnyRule(ALLOW, read_only="yes"), "read_only is 'yes'"),
        (lambda: AnyRule(ALLOW, read_only=True, destructive=True), "contradict each other"),
        (lambda: AnyPolicy(["allow"]), "expected Rule"),
        (lambda: Policy.of(allow=["shell"], deny=["shell"]), "would never act"),
        (lambda: Policy.of(allow=["read_*"], ask=["*"]), "would never act"),
        (lambda: AnyPolicy([AnyRule(DENY, destructive=True), AnyRule(ALLOW, ["rm_*"], destructive=True)]), "would never act"),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_made(make: Any, says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        make()


def test_an_exception_that_is_stricter_than_its_rule_is_no_contradiction() -> None:
    Policy.of(allow=["*"], ask=["write_*"], deny=["write_secret"])
    Policy([Rule(DENY, destructive=True), Rule(ALLOW, ["rm_*"])])
    Policy([Rule(ALLOW, ["a", "b"]), Rule(DENY, ["b"])])


def test_several_policies_are_judged_by_the_strictest() -> None:
    mild, strict = Judgement(ALLOW, "a"), Judgement(DENY, "b")
    assert strictest([mild, Judgement(ASK, "c"), strict]) is strict
    assert strictest([mild, Judgement(ALLOW, "z")]) is mild


def test_a_policy_does_not_change_with_the_lists_it_was_made_from() -> None:
    names = ["read"]
    rule = Rule(ALLOW, names)
    rules = [rule]
    policy = Policy(rules)
    names.append("shell")
    rules.append(Rule(DENY, ["read"]))
    assert policy.decide("shell", PLAIN).decision is ASK
    assert policy.decide("read", PLAIN).decision is ALLOW


names = st.text("ab_*", min_size=1, max_size=5)


@given(names, names, st.text("ab_", min_size=1, max_size=6))
def test_a_rule_that_covers_another_matches_whatever_the_other_matches(broad: str, narrow: str, name: str) -> None:
    if Rule(DENY, [broad]).covers(Rule(ALLOW, [narrow])) and Rule(ALLOW, [narrow]).matches(name, PLAIN):
        assert Rule(DENY, [broad]).matches(name, PLAIN)


@given(st.lists(st.tuples(st.sampled_from(Verdict), names), max_size=5), st.text("ab_", min_size=1, max_size=6))
def test_a_policy_never_allows_what_one_of_its_rules_denies(lines: list[tuple[Verdict, str]], name: str) -> None:
    rules = [Rule(verdict, [glob]) for verdict, glob in lines]
    try:
        decision = Policy(rules).decide(name, PLAIN).decision
    except PolicyError:
        return
    found = {rule.decision for rule in rules if rule.matches(name, PLAIN)}
    assert decision is next((verdict for verdict in (DENY, ASK, ALLOW) if verdict in found), ASK)
