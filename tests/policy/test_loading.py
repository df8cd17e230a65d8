"""Policies in files: found, extended, checked by their own examples, narrowed by the workspace's; and what is refused."""

import os
from pathlib import Path
from typing import Any

import pytest

from toolrunner.config import POLICIES, listing, shipped_folder
from toolrunner.errors import PolicyError
from toolrunner.facts import Annotations
from toolrunner.policy import Remember, Subject, Verdict, documents, load_policy, open_policy

ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY
SHIPPED = ("ask", "ci", "deny-all", "read-only", "unattended")


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder of policies."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "toolrunner" / "policies"
    folder.mkdir(parents=True, mode=0o700)
    return folder


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.parent.mkdir(exist_ok=True, mode=0o700)
    path.write_text(f'schema = 1\nsummary = "A test."\n{text}')
    path.chmod(mode)
    return path


def given(**values: Any) -> dict[str, Any]:
    return {"schema": 1, "summary": "A test.", **values}


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("place", ["/", "/tmp", None])
def test_the_shipped_ones_load_wherever_somebody_works(name: str, place: str | None, tmp_path: Path) -> None:
    opened = open_policy(name, place or tmp_path)
    assert opened.policy.name == name
    assert len(opened.policy.digest) == 64
    assert opened.loaded.document.examples


def test_nothing_else_is_shipped() -> None:
    assert tuple(found.name for found in listing(POLICIES)) == SHIPPED
    assert {path.name for path in shipped_folder(POLICIES).iterdir()} == {*(f"{name}.toml" for name in SHIPPED), "README.md"}


def test_the_page_of_policies_names_every_key() -> None:
    page = (shipped_folder(POLICIES) / "README.md").read_text()
    for table in (documents.PolicyFile, documents.RuleTable, documents.Example, documents.NamesTable):
        for name, field in table.model_fields.items():
            assert f"`{field.alias or name}`" in page, f"{table.__name__}.{name}"


def test_lists_are_joined_and_the_rest_is_replaced(config: Path) -> None:
    write(config / "base.toml", 'default = "deny"\nasks = false\nallow = ["ls"]\ndeny = ["rm"]\n')
    write(config / "mine.toml", 'extends = "base"\nasks = true\nallow = [{ tools = ["cat"], name = "cats" }]\n')
    policy = load_policy("mine")
    assert policy.asks
    assert [policy.decide(name, Annotations()).decision for name in ("ls", "cat", "rm", "x")] == [ALLOW, ALLOW, DENY, DENY]
    assert policy.decide("cat", Annotations()).by == f"mine@{policy.digest[:8]}: cats"


def test_a_users_policy_takes_the_place_of_a_shipped_name_and_can_extend_it(config: Path) -> None:
    write(config / "ask.toml", 'extends = "ask"\nallow = ["ls"]\n')
    policy = load_policy("ask")
    assert policy.decide("ls", Annotations()).decision is ALLOW
    assert policy.judge(Subject("fetch", arguments={"url": "http://169.254.169.254/"})).decision is DENY


def test_the_digest_is_that_of_all_the_files(config: Path) -> None:
    write(config / "base.toml", 'allow = ["ls"]\n')
    write(config / "mine.toml", 'extends = "base"\n')
    before = load_policy("mine").digest
    write(config / "base.toml", 'allow = ["ls", "cat"]\n')
    assert load_policy("mine").digest != before


@pytest.mark.case("X16")
def test_a_policy_is_what_it_was_when_it_was_loaded(config: Path) -> None:
    path = write(config / "mine.toml", 'deny = ["rm"]\n')
    policy = load_policy("mine")
    write(path, 'allow = ["rm"]\n')
    assert policy.decide("rm", Annotations()).decision is DENY


@pytest.mark.parametrize(
    "values, says",
    [
        ({"alow": ["x"]}, "did you mean 'allow'"),
        ({"allow": [{"tool": ["x"]}]}, "did you mean 'tools'"),
        ({"deny": [{"path": ["/x"]}]}, "did you mean 'paths'"),
        ({"schema": 2}, "schema"),
        ({"summary": ""}, "summary"),
        ({"default": "maybe"}, "default"),
        ({"asks": "no"}, "asks"),
        ({"remember": "forever"}, "remember"),
        ({"approval_timeout": 0}, "approval_timeout"),
        ({"approval_timeout": float("inf")}, "approval_timeout"),
        ({"allow": ["shell(git status *)"]}, "only \\* is special"),
        ({"deny": [{"paths": ["../x"]}]}, "cannot stand in a pattern"),
        ({"deny": [{"hosts": ["https://x"]}]}, "is no port"),
        ({"deny": [{"arguments": {}}]}, "table of names"),
        ({"allow": ["x"], "deny": ["*"]}, "would never act"),
        ({"allow": [{"commands": ["git *"]}], "deny": [{"commands": ["git *"]}]}, "would never act"),
        (
            {"allow": ["x"], "examples": [{"tool": "x", "expect": "deny"}]},
            "example 1 \\(x\\) expects deny, and the rules say allow",
        ),
        ({"extends": "no-such"}, "no policy named"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_to_do(values: dict[str, Any], says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        load_policy(given(**values))


def test_more_names_of_arguments_are_looked_at(tmp_path: Path) -> None:
    policy = load_policy(given(default="deny", allow=[{"paths": ["./**"]}], names={"paths": ["where"]}), tmp_path)
    assert policy.judge(Subject("x", arguments={"where": "a"})).decision is ALLOW
    assert policy.judge(Subject("x", arguments={"where": "a", "path": "/b"})).decision is DENY


# The workspace's file


def workspace(tmp_path: Path, text: str) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    write(folder / ".toolrunner" / "policy.toml", text)
    return folder


def test_the_workspace_can_forbid_and_ask_more_and_allows_nothing(tmp_path: Path) -> None:
    folder = workspace(tmp_path, 'default = "allow"\nallow = ["rm"]\nask = ["cat"]\ndeny = ["ls"]\n')
    policy = load_policy(given(allow=["ls", "cat", "true"], deny=["rm"]), folder)
    found = [policy.decide(name, Annotations()).decision for name in ("ls", "cat", "true", "rm", "x")]
    assert found == [DENY, ASK, ALLOW, DENY, ASK]
    assert policy.decide("ls", Annotations()).by.startswith("the workspace's policy@")


def test_what_no_rule_of_the_workspace_speaks_about_is_asked_unless_it_says_otherwise(tmp_path: Path) -> None:
    policy = load_policy(given(allow=["true"]), workspace(tmp_path, 'deny = ["ls"]\n'))
    assert policy.decide("true", Annotations()).decision is ASK


def test_the_workspace_has_no_say_in_who_is_asked_what_is_kept_and_in_profiles(tmp_path: Path) -> None:
    text = 'asks = true\nprofile = "danger-full-access"\nremember = "user"\napproval_timeout = 3600\n'
    opened = open_policy(given(asks=False, remember="no"), workspace(tmp_path, text))
    policy = opened.policy
    assert (policy.asks, policy.profile, policy.remember, policy.approval_timeout) == (False, None, Remember.NO, None)
    assert opened.unheard == ("asks", "profile", "remember", "approval_timeout")


@pytest.mark.parametrize("text", ["alow = []\n", 'extends = "./other.toml"\n', 'deny = ["ls"]\nallow = ["ls"]\n'])
def test_a_workspace_whose_file_does_not_load_is_no_workspace_to_run_in(text: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError):
        load_policy(given(), workspace(tmp_path, text))


@pytest.mark.parametrize("mode", [0o666, 0o620])
def test_a_file_that_others_can_write_is_refused(mode: int, config: Path) -> None:
    write(config / "mine.toml", "", mode)
    with pytest.raises(PolicyError, match="others may write it"):
        load_policy("mine")


@pytest.mark.root
def test_a_file_of_somebody_else_is_refused(config: Path) -> None:
    os.chown(write(config / "mine.toml", ""), 1234, -1)
    with pytest.raises(PolicyError, match="belongs to user 1234"):
        load_policy("mine")
