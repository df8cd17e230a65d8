"""Which commands and arguments a call is about, however they are written; a doubt is never a permission."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy.verdicts import ALLOW, DENY, decided

from toolrunner.policy import Rule
from toolrunner.policy.reading import commands


@pytest.mark.parametrize(
    "line, allowed",
    [
        ("git status", True),
        ("git status --short", True),
        ("git  'status'", True),
        ("git status && git status; git status | git status", True),
        ("git status\ngit status -s", True),
        ("git statusx", False),
        ("git push", False),
        ("git status; rm -rf x", False),
        ("git status && rm x", False),
        ("git status | sh", False),
        ("git status > /etc/passwd", False),
        ("git status $(rm x)", False),
        ("git status `rm x`", False),
        ('git status "$(rm x)"', False),
        ("git status '$(rm x)'", True),
        ("git status & rm x", False),
        ("git status\nrm x", False),
        ("PATH=/tmp git status", False),
        ("/tmp/git status", False),
        ("(git status)", False),
        ("git status 'unterminated", False),
        ("git status # rm x", False),
        ("g\\it status", True),
        ("git {status,push}", False),
        ("", False),
    ],
)
def test_a_rule_that_allows_a_command_wants_the_line_to_be_nothing_else(line: str, allowed: bool) -> None:
    rule = Rule(ALLOW, commands=["git status *"])
    assert decided(rule, {"command": line}) is (ALLOW if allowed else DENY)
    assert decided(rule, {}, line=line) is (ALLOW if allowed else DENY)


@pytest.mark.case("X7")
def test_a_command_that_is_allowed_by_its_words_may_not_set_variables() -> None:
    rule = Rule(ALLOW, commands=["git status"])
    assert decided(rule, {}, argv=("git", "status")) is ALLOW
    assert decided(rule, {}, argv=("git", "status"), env=("GIT_SSH",)) is DENY


@pytest.mark.parametrize(
    "line",
    [
        "git push", "git push --force", "/usr/bin/git push", "cd x && git push", "sudo git push", "sh -c 'git push'",
        "echo `git push`", "echo $(git push)", "(git push)", "env A=1 git push", "sh -c \"sh -c 'git push'\"", "g'it' push",
        "if true; then git push; fi", "git \\\npush", "/proc/self/root/usr/bin/git push",
    ],
)  # fmt: skip
@pytest.mark.case("X30")
def test_a_rule_that_forbids_a_command_finds_its_words_anywhere(line: str) -> None:
    assert decided(Rule(DENY, commands=["git push"]), {"command": line}) is DENY
    assert decided(Rule(DENY, commands=["git push *"]), {"command": line}) is DENY


def test_words_that_stand_apart_are_not_that_command() -> None:
    for line in ("git status; push", "gitpush", "git 'pu sh'"):
        assert decided(Rule(DENY, commands=["git push"]), {"command": line}) is ALLOW


def test_a_line_that_is_too_long_to_be_read_is_forbidden_and_not_allowed() -> None:
    line = "true " * 20_000
    assert decided(Rule(DENY, commands=["git push"]), {"command": line}) is DENY
    assert decided(Rule(ALLOW, commands=["true *"]), {"command": line}) is DENY


@given(st.lists(st.text(alphabet="ab '\"\\;&|$`(){}<>#\n=/*", min_size=1, max_size=6), min_size=1, max_size=4))
def test_what_is_quoted_as_a_shell_wants_it_is_read_back_as_the_same_words(words: list[str]) -> None:
    line = commands.split(shlex.join(words))
    assert line.commands == (tuple(words),)
    assert line.plain is ("=" not in words[0])


@given(st.text(alphabet="ab '\"\\;&|$`(){}<>#\n=/", max_size=40))
def test_any_line_can_be_read(text: str) -> None:
    line = commands.split(text)
    assert all(words for words in line.sequences())


def test_an_argument_is_compared_under_its_dotted_name() -> None:
    rule = Rule(DENY, arguments={"target.branch": ["main", "release/*"], "force": "true"})
    assert decided(rule, {"target": {"branch": "release/1"}, "force": True}) is DENY
    assert decided(rule, {"target": [{"branch": "x"}, {"branch": "main"}], "force": True}) is DENY
    assert decided(rule, {"target": {"branch": "main"}, "force": False}) is ALLOW
    assert decided(rule, {"target": "main", "force": True}) is ALLOW
    every = Rule(ALLOW, arguments={"to": "*@example.com"})
    assert decided(every, {"to": ["a@example.com", "b@example.com"]}) is ALLOW
    assert decided(every, {"to": ["a@example.com", "b@evil.org"]}) is DENY
    assert decided(every, {}) is DENY


def test_a_rule_for_a_profile_is_for_that_profile() -> None:
    rule = Rule(ALLOW, profiles=["offline", "strict*"])
    assert decided(rule, {}) is DENY
    assert decided(rule, {}, profile="offline") is ALLOW
    assert decided(rule, {}, profile="strict-er") is ALLOW
    assert decided(Rule(DENY, profiles=["none"]), {}) is DENY
