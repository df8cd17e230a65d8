"""Which paths a call is about, however they are written; a doubt is never a permission."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy.verdicts import ALLOW, DENY, decided

from toolrunner.errors import PolicyError
from toolrunner.policy import Rule
from toolrunner.policy.reading.paths import PathPattern


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    (folder / "way-out").symlink_to(tmp_path / "secret")
    return folder


@pytest.mark.parametrize(
    "path, allowed",
    [
        ("src/a.py", True),
        ("./src/../src/a", True),
        ("", True),
        (".", True),
        ("not/there/yet", True),
        ("../secret/x", False),
        ("src/../../secret/x", False),
        ("way-out/x", False),
        ("/etc/passwd", False),
        ("//etc/passwd", False),
        ("/proc/self/root/etc/passwd", False),
        ("/proc/self/cwd/../../../../../../etc/passwd", False),
        ("~/x", False),
        ("file:///etc/passwd", False),
        ("a\0b", False),
        ("a" * 5000, False),
    ],
)
def test_a_rule_that_allows_a_folder_follows_links_and_dots(path: str, allowed: bool, work: Path) -> None:
    assert decided(Rule(ALLOW, paths=["./**"]), {"path": path}, workspace=work) is (ALLOW if allowed else DENY)


def test_a_rule_that_allows_wants_every_path_and_at_least_one(work: Path) -> None:
    rule = Rule(ALLOW, paths=["./**"])
    assert decided(rule, {}, workspace=work) is DENY
    assert decided(rule, {"text": "hello"}, workspace=work) is DENY
    assert decided(rule, {"src": "a", "dst": "b"}, workspace=work) is ALLOW
    assert decided(rule, {"src": "a", "dst": "/b"}, workspace=work) is DENY
    assert decided(rule, {"paths": ["a", "../b"]}, workspace=work) is DENY
    assert decided(rule, {"path": "a", "into": "/etc/cron.d/x"}, workspace=work) is DENY
    assert decided(rule, {"path": "a", "content": "/* a comment */\nbody"}, workspace=work) is ALLOW
    assert decided(Rule(ALLOW, paths=[]), {"path": "a"}, workspace=work) is DENY


def test_a_link_in_the_workspace_does_not_move_what_is_allowed(work: Path, tmp_path: Path) -> None:
    assert decided(Rule(ALLOW, paths=["way-out/**"]), {"path": "way-out/x"}, workspace=work) is DENY
    alias = tmp_path / "alias"
    alias.symlink_to(work)
    assert decided(Rule(ALLOW, paths=["src/**"]), {"path": str(alias / "src/a")}, workspace=alias) is ALLOW


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "../secret/key"},
        {"path": "way-out/key"},
        {"anything": "way-out"},
        {"deep": [{"er": "./way-out/key"}]},
        {"command": "cat < way-out/key"},
        {"command": "tool --file=way-out/key"},
        {"argv": ["cat", "way-out/key"]},
        {"path": "\0"},
        {"x": ["a"] * 2_000},
    ],
)
def test_a_rule_that_forbids_a_folder_finds_it_wherever_it_is_named(
    arguments: dict[str, Any], work: Path, tmp_path: Path
) -> None:
    assert decided(Rule(DENY, paths=[f"{tmp_path}/secret/**"]), arguments, workspace=work) is DENY


def test_a_rule_that_forbids_matches_what_is_written_too(work: Path) -> None:
    assert decided(Rule(DENY, paths=["way-out/**"]), {"path": "way-out/key"}, workspace=work) is DENY
    assert decided(Rule(DENY, paths=["way-out/**"]), {"path": str(work.parent / "secret/key")}, workspace=work) is DENY
    assert decided(Rule(DENY, paths=["/**/.env"]), {"path": "src/.env"}, workspace=work) is DENY
    assert decided(Rule(DENY, paths=["/**/.env"]), {"path": "src/.envrc"}, workspace=work) is ALLOW


def test_home_means_home_in_rules_and_in_arguments(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    rule = Rule(DENY, paths=["~/.ssh/**"])
    for path in ("~/.ssh/id", str(tmp_path / ".ssh"), "../.ssh/id"):
        assert decided(rule, {"path": path}, workspace=work) is DENY
    assert decided(rule, {"path": "~/.sshx"}, workspace=work) is ALLOW


def test_a_command_is_judged_in_its_own_folder(work: Path) -> None:
    rule = Rule(ALLOW, paths=["./**"])
    assert decided(rule, {"path": "a"}, workspace=work, cwd=str(work / "src")) is ALLOW
    assert decided(rule, {"path": "../../x"}, workspace=work, cwd=str(work / "src")) is DENY
    assert decided(Rule(DENY, paths=["/etc/**"]), {}, workspace=work, cwd="/etc") is DENY


@pytest.mark.parametrize("text", ["", " a", "a/", "../a", "a/**b", "~user/x", "a\0", "a/../b"])
def test_what_is_no_pattern_of_a_path_is_refused(text: str) -> None:
    with pytest.raises(PolicyError):
        PathPattern(text)
    with pytest.raises(PolicyError):
        Rule(ALLOW, paths=[text])


names = st.lists(st.sampled_from(["a", "b", "..", "."]), min_size=1, max_size=6).map("/".join)


@given(names)
def test_what_is_allowed_below_a_folder_lies_below_it(path: str) -> None:
    allowed = decided(Rule(ALLOW, paths=["./**"]), {"path": path}, workspace="/w/x") is ALLOW
    assert allowed is (os.path.normpath(f"/w/x/{path}") + "/").startswith("/w/x/")
