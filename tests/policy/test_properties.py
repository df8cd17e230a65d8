"""Over generated policies and calls: the order of rules means nothing, the strictest wins, and what narrows never widens."""

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from toolrunner.errors import PolicyError
from toolrunner.facts import Annotations
from toolrunner.policy import Policy, Rule, Subject, Verdict
from toolrunner.policy.verdicts import STRICTNESS

verdicts = st.sampled_from(Verdict)
some = st.lists(st.sampled_from(["./**", "src/**", "/etc/**", "/**/.env", "src/a"]), min_size=1, max_size=2)
conditions: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"paths": some}),
    st.fixed_dictionaries({"hosts": st.lists(st.sampled_from(["a.com", "*.a.com", "10.0.0.0/8", "*"]), min_size=1, max_size=2)}),
    st.fixed_dictionaries({"commands": st.lists(st.sampled_from(["git *", "git push", "rm", "*"]), min_size=1, max_size=2)}),
    st.fixed_dictionaries({"arguments": st.fixed_dictionaries({"x": st.sampled_from(["1", "*"])})}),
    st.fixed_dictionaries({"profiles": st.just(["offline"])}),
    st.fixed_dictionaries({"read_only": st.booleans()}),
)
rules = st.builds(
    lambda verdict, tools, more: Rule(verdict, tools, **more),
    verdicts,
    st.sampled_from([["*"], ["a"], ["a*"], ["b"]]),
    conditions,
)
subjects = st.builds(
    Subject,
    tool=st.sampled_from(["a", "ab", "b"]),
    annotations=st.builds(Annotations, read_only=st.booleans()),
    arguments=st.fixed_dictionaries(
        {},
        optional={
            "path": st.sampled_from(["src/a", "../x", "/etc/passwd", ".env", "\0"]),
            "url": st.sampled_from(["https://a.com", "https://x.a.com:1", "http://10.1.1.1", "https://\0"]),
            "command": st.sampled_from(["git push", "git status; rm x", "ls $(x)", ""]),
            "x": st.sampled_from(["1", "2"]),
        },
    ),
    profile=st.sampled_from(["none", "offline"]),
)


def made(lines: list[Rule], default: Verdict = Verdict.ASK, **more: Any) -> Policy:
    try:
        return Policy(lines, default=default, workspace="/w", **more)
    except PolicyError:
        assume(False)
        raise


def alone(rule: Rule, subject: Subject) -> bool:
    """Whether this one rule speaks about the call: asked without the tables of a policy."""
    default = Verdict.ASK if rule.decision is not Verdict.ASK else Verdict.DENY
    return Policy([rule], default=default, workspace="/w").judge(subject).decision is rule.decision


@given(st.lists(rules, max_size=6), subjects, st.randoms(use_true_random=False), verdicts)
def test_the_strictest_wins_in_every_order(lines: list[Rule], subject: Subject, random: Any, default: Verdict) -> None:
    shuffled = random.sample(lines, len(lines))
    found = {rule.decision for rule in lines if alone(rule, subject)}
    expected = max(found, key=STRICTNESS.__getitem__) if found else default
    assert made(lines, default).judge(subject).decision is expected
    assert made(shuffled, default).judge(subject).decision is expected


@given(st.lists(rules, max_size=5), st.lists(rules, max_size=5), subjects, verdicts, verdicts)
def test_what_narrows_never_widens(ours: list[Rule], theirs: list[Rule], subject: Subject, one: Verdict, other: Verdict) -> None:
    policy, workspace = made(ours, one), made(theirs, other)
    before, after = policy.judge(subject).decision, made(ours, one, also=(workspace,)).judge(subject).decision
    assert STRICTNESS[after] == max(STRICTNESS[before], STRICTNESS[workspace.judge(subject).decision])


@given(st.lists(rules, max_size=5), rules, subjects)
def test_a_stricter_rule_more_never_allows_more(lines: list[Rule], rule: Rule, subject: Subject) -> None:
    assume(rule.decision is not Verdict.ALLOW)
    default = Verdict.ALLOW
    assert STRICTNESS[made([*lines, rule], default).judge(subject).decision] >= min(
        STRICTNESS[made(lines, default).judge(subject).decision], STRICTNESS[rule.decision]
    )


@given(st.lists(rules, max_size=6), subjects)
def test_the_rules_that_explain_a_judgement_are_those_that_match(lines: list[Rule], subject: Subject) -> None:
    policy = made(lines)
    matching = [rule for _, rule in policy.matching(subject)]
    assert matching == [rule for rule in lines if alone(rule, subject)]
    if matching:
        assert policy.judge(subject).by in {f"policy: {rule}" for rule in matching}


@given(st.lists(rules, max_size=6), subjects)
def test_where_nobody_is_asked_an_ask_is_a_denial_and_nothing_else_changes(lines: list[Rule], subject: Subject) -> None:
    asking = made(lines).judge(subject).decision
    silent = made(lines, asks=False).judge(subject).decision
    assert silent is (Verdict.DENY if asking is Verdict.ASK else asking)
