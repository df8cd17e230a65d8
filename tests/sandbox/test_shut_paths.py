"""Paths that a contained command may not read or change: hidden, protected, denied and ours; git works beside them."""

import os
import sys

import pytest
from sandbox.running import Box, profile

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

GIT = (
    "export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; "
)


async def repository(box: Box) -> None:
    """Made with nothing protected, as its user would have made it before."""
    free = profile(filesystem={"allow_write": ["."], "protect": False})
    end = await box.run(free, GIT + "git init -q . && mkdir -p .git/hooks && echo a > a && git add a && git commit -qm one")
    if end.facts.exit_code != 0:
        pytest.skip(f"no git that works here: {end.facts.stderr}")


@pytest.mark.case("X8")
async def test_a_protected_folder_cannot_be_carried_away_by_its_parent(box: Box) -> None:
    await repository(box)
    script = GIT + "mv .git x && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit; echo evil > .git/hooks/pre-commit"
    end = await box.run("workspace-write", script)
    assert end.facts.exit_code != 0
    assert "busy" in end.facts.stderr
    assert not (box.folder / ".git/hooks/pre-commit").exists()
    end = await box.run("workspace-write", GIT + "echo b > b && git add b && git commit -qm two && git log --oneline | wc -l")
    assert end.facts.stdout.split() == ["2"], end.facts.stderr


@pytest.mark.case("X9")
async def test_nothing_can_be_moved_over_a_protected_file(box: Box) -> None:
    await repository(box)
    before = (box.folder / ".git/config").read_text()
    box.write(".envrc", "mine")
    script = "echo evil > new; mv new .git/config; echo evil > new; mv new .envrc; ln -f new .envrc; rm .envrc; true"
    assert (await box.run("workspace-write", script)).facts.exit_code == 0
    assert (box.folder / ".git/config").read_text() == before
    assert (box.folder / ".envrc").read_text() == "mine"


@pytest.mark.case("X11")
async def test_rules_about_what_is_missing_linked_or_of_somebody_else_do_not_break_a_call(box: Box) -> None:
    (box.folder / "loop").symlink_to("loop")
    box.write("real/secret", "hidden-text")
    (box.folder / "link").symlink_to("real/secret")
    rules = {
        "allow_write": [".", "never/there"],
        "deny_read": ["missing", "loop", "link", "/root/.ssh"],
        "deny_write": ["gone/x"],
    }
    end = await box.run(profile(filesystem=rules), "cat link real/secret; echo ran; ls -A")
    assert end.facts.exit_code == 0, end
    assert "ran" in end.facts.stdout
    assert "hidden-text" not in end.facts.stdout
    assert sorted(os.listdir(box.folder)) == ["link", "loop", "real"], "nothing was made on the host to be mounted over"


@pytest.mark.case("X12")
async def test_git_works_beside_a_tracked_file_that_is_hidden(box: Box) -> None:
    await repository(box)
    rules = {"allow_write": ["."], "deny_read": ["a"]}
    end = await box.run(
        profile(filesystem=rules), GIT + "cat a; echo b > b; git add b && git commit -qm two -- b && git status --short"
    )
    assert end.facts.exit_code == 0, end.facts.stderr
    assert (box.folder / "a").read_text() == "a\n"


@pytest.mark.case("X14")
async def test_a_hidden_folder_cannot_be_read_entered_or_written(box: Box) -> None:
    box.write("secrets/key", "hidden-text")
    rules = {"allow_write": ["."], "deny_read": ["secrets"]}
    script = "cat secrets/key; ls secrets; echo x > secrets/f; chmod 777 secrets; mv secrets away; cd secrets"
    end = await box.run(profile(filesystem=rules), script)
    assert end.facts.exit_code != 0
    assert end.facts.stdout == ""
    assert end.facts.stderr.count("enied") + end.facts.stderr.count("Read-only") + end.facts.stderr.count("busy") >= 5
    assert os.listdir(box.folder / "secrets") == ["key"]


async def test_a_folder_below_a_hidden_one_can_be_opened_again(box: Box) -> None:
    box.write("all/open/x", "seen")
    box.write("all/shut", "hidden-text")
    rules = {"deny_read": ["all"], "allow_read": ["all/open"]}
    end = await box.run(profile(filesystem=rules), "cat all/open/x; ls all; cat all/shut")
    assert end.facts.stdout == "seen"
    assert end.facts.stderr != ""


async def test_a_denied_write_holds_below_it_whatever_else_allows_there(box: Box) -> None:
    box.write("a/b/c", "old")
    rules = {"allow_write": [".", "a/b"], "deny_write": ["a"]}
    await box.run(profile(filesystem=rules), "echo new > a/b/c; echo new > free")
    assert (box.folder / "a/b/c").read_text() == "old"
    assert (box.folder / "free").exists()


@pytest.mark.case("X19")
async def test_a_commit_works_in_a_linked_worktree_and_its_hooks_stay(box: Box) -> None:
    await repository(box)
    free = profile(filesystem={"allow_write": ["."], "protect": False})
    steps = ("mkdir main", "cd main", "git init -q .", "mkdir -p .git/hooks", "git commit -q --allow-empty -m one")
    script = GIT + " && ".join([*steps, "git worktree add -q ../tree"])
    assert (await box.run(free, script)).facts.exit_code == 0
    tried = "echo evil > ../main/.git/hooks/pre-commit; echo no > ../main/x"
    script = GIT + f"echo b > b && git add b && git commit -qm two && git log --oneline | wc -l; {tried}"
    end = await box.run("workspace-write", script, cwd=str(box.folder / "tree"))
    assert end.facts.stdout.split() == ["2"], end.facts.stderr
    assert not (box.folder / "main/.git/hooks/pre-commit").exists()
    assert not (box.folder / "main/x").exists()


async def test_a_workspace_cannot_open_a_folder_by_pretending_to_be_a_worktree(box: Box) -> None:
    other = box.folder.parent / "other"
    (other / "worktrees/x").mkdir(parents=True)
    (other / "HEAD").write_text("ref: refs/heads/main\n")
    if os.geteuid() == 0:
        facts = box.folder.stat()
        for path in (other, other / "worktrees", other / "worktrees/x"):
            os.chown(path, facts.st_uid, facts.st_gid)
    box.write(".git", f"gitdir: {other}/worktrees/x\n")
    await box.run("workspace-write", f"echo evil > {other}/evil")
    assert not (other / "evil").exists()


async def test_our_state_and_configuration_cannot_be_seen(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(box.folder / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(box.folder / "config"))
    box.write("state/toolrunner/sessions/s/journal.db", "hidden-text")
    box.write("config/toolrunner/policies/mine.toml", "hidden-text")
    (box.folder / "config/toolrunner").chmod(0o755)
    rules = {"allow_write": [".", "state/toolrunner", "config/toolrunner/policies"], "protect": False}
    end = await box.run(
        profile(filesystem=rules), "cat state/toolrunner/sessions/s/* config/toolrunner/policies/*; rm -r state config; true"
    )
    assert "hidden-text" not in end.facts.stdout
    assert (box.folder / "state/toolrunner/sessions/s/journal.db").exists()


async def test_what_the_host_runs_from_cannot_be_written_although_it_lies_in_the_workspace(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = box.write("mytools.py", "x = 1\n")
    package = box.write("pack/__init__.py", "")
    box.write("pack/inner.py", "y = 1\n")
    monkeypatch.syspath_prepend(str(box.folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    __import__("mytools")
    __import__("pack.inner")
    try:
        await box.run(
            "workspace-write", "echo evil > mytools.py; echo evil > pack/new.py; rm -f pack/inner.py; echo free > other.py"
        )
    finally:
        for name in ("mytools", "pack", "pack.inner"):
            del sys.modules[name]
    assert file.read_text() == "x = 1\n"
    assert sorted(os.listdir(package.parent)) == ["__init__.py", "inner.py"]
    assert (box.folder / "other.py").exists()
