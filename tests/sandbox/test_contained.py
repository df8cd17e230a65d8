"""What a contained command can read, write, reach and hide: each by a command that tries."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from sandbox.running import Box, profile

from toolrunner.facts import Containment
from toolrunner.process import EndCause, Leftovers, SpawnErrorKind, SpawnRefused, WindowSize
from toolrunner.sandbox import Sandbox

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


async def test_a_command_writes_in_its_workspace_and_nowhere_else(box: Box, tmp_path: Path) -> None:
    end = await box.run("workspace-write", "echo made > here; echo no > ../beside; echo no > /usr/no; cat here; exit 3")
    assert (end.started, end.cause, end.facts.exit_code) == (True, EndCause.EXITED, 3)
    assert end.facts.stdout == "made\n"
    assert (box.folder / "here").read_text() == "made\n"
    assert os.listdir(box.folder.parent) == ["work"]
    assert end.facts.containment is Containment.PIDNS
    assert end.still_running == ()
    assert end.sandbox is not None
    assert (end.sandbox.profile, end.sandbox.backend) == ("workspace-write", "bubblewrap")
    assert end.enforced == ("fs_read", "fs_write", "protect_paths", "network", "kill_tree", "env", "tty")
    assert end.missing == ()


async def test_a_read_only_command_writes_only_to_a_tmp_that_goes_with_it(box: Box) -> None:
    script = "echo x > here || echo refused; echo y > /tmp/toolrunner-private && cat /tmp/toolrunner-private; ls -A /tmp"
    text = await box.out("read-only", script)
    assert "refused" in text
    assert "y" in text
    assert not (box.folder / "here").exists()
    assert not os.path.exists("/tmp/toolrunner-private")


async def test_a_strict_command_sees_the_system_and_its_workspace_only(box: Box) -> None:
    text = await box.out("strict", "ls -A / /home /root /etc/shadow 2>&1; echo x > here && cat here; echo x > /here || echo shut")
    assert "home" not in text.split("ls:")[0].split()
    assert "/etc/shadow: No such file" in text or "cannot access '/etc/shadow'" in text
    assert text.endswith("shut\n") or "shut" in text
    assert (box.folder / "here").read_text() == "x\n"


async def test_there_are_no_descriptors_but_the_streams(box: Box) -> None:
    assert (
        await box.out("workspace-write", "for f in /proc/self/fd/*; do echo ${f##*/}; done") == "0\n1\n2\n3\n"
    )  # 3: the glob's own


async def test_descriptors_that_a_plan_names_reach_the_command_under_their_numbers(box: Box, tmp_path: Path) -> None:
    (tmp_path / "given").write_text("given")
    with open(tmp_path / "given", "rb") as file:
        end = await box.run("read-only", "cat <&3; for f in /proc/self/fd/*; do echo ${f##*/}; done", pass_fds={3: file.fileno()})
    assert end.facts.stdout.startswith("given0\n1\n2\n3\n"), end


@pytest.mark.case("X3")
async def test_a_secret_of_the_host_is_in_no_environment_inside(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_TOKEN", "hunter2-marker")
    monkeypatch.setenv("UNRELATED", "also-a-marker")
    text = await box.out("workspace-write", "cat /proc/*/environ | tr '\\0' '\\n'; env", env={"GIVEN": "by the call"})
    assert "marker" not in text
    assert text.count("GIVEN=by the call") >= 2
    everything = profile(env={"inherit": "all"})
    text = await box.out(everything, "env")
    assert "also-a-marker" in text
    assert "hunter2" not in text


@pytest.mark.case("X7")
async def test_one_call_cannot_change_the_environment_of_the_next(box: Box) -> None:
    await box.run("workspace-write", "export PATH=/nowhere EVIL=1; /usr/bin/env > dump")
    assert "EVIL" in (box.folder / "dump").read_text()
    text = await box.out("workspace-write", "env")
    assert "EVIL" not in text
    assert "/nowhere" not in text


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


@pytest.mark.case("X22", "X24")
async def test_without_a_network_nothing_arrives_not_even_on_this_machine(box: Box) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as heard, socket.create_server(("127.0.0.1", 0)) as server:
        heard.bind(("127.0.0.1", 0))
        heard.setblocking(False)
        udp, tcp = heard.getsockname()[1], server.getsockname()[1]
        script = f"echo q > /dev/udp/127.0.0.1/{udp}; (exec 5<>/dev/tcp/127.0.0.1/{tcp}) && echo connected"
        for name, reaches in ((profile(network={"mode": "host"}), True), ("workspace-write", False)):
            end = await box.run(name, f"bash -c '{script}'")
            assert ("connected" in end.facts.stdout) is reaches, end
            try:
                arrived = bool(heard.recv(10))
            except BlockingIOError:
                arrived = False
            assert arrived is reaches
            assert ("network" in end.enforced) is not reaches


async def test_no_abstract_socket_of_the_host_can_be_reached_without_a_network(box: Box) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0toolrunner-test-{os.getpid()}")
        server.listen()
        attempt = f"import socket; socket.socket(socket.AF_UNIX).connect('\\0toolrunner-test-{os.getpid()}'); print('connected')"
        end = await box.run("offline", f'python3 -c "{attempt}"', env={"PATH": "/usr/bin:/bin"})
        assert "connected" not in end.facts.stdout


@pytest.mark.case("X30")
async def test_another_name_for_the_same_program_changes_nothing(box: Box) -> None:
    text = await box.out(
        "workspace-write", "/proc/self/root/usr/bin/touch /usr/evil; /proc/1/root/bin/sh -c 'echo x > /usr/evil'; true"
    )
    assert not os.path.exists("/usr/evil")
    assert "Read-only" in text


async def test_the_kernels_switches_cannot_be_written(box: Box) -> None:
    before = Path("/proc/sys/kernel/hostname").read_text()
    await box.run("workspace-write", "echo evil > /proc/sys/kernel/hostname; hostname evil; echo b > /proc/sysrq-trigger")
    assert Path("/proc/sys/kernel/hostname").read_text() == before


async def test_no_further_namespace_can_be_made_inside(box: Box) -> None:
    end = await box.run("workspace-write", "unshare -Ur true && echo nested")
    assert "nested" not in end.facts.stdout


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


async def test_a_limit_of_file_sizes_and_memory_holds(box: Box) -> None:
    limited = profile(filesystem={"allow_write": ["."]}, limits={"file_size": "4 KiB", "memory": "1 GiB", "pids": 5})
    end = await box.run(limited, "trap '' XFSZ; head -c 10000 /dev/zero > big; ulimit -v")
    assert (box.folder / "big").stat().st_size == 4096
    assert end.facts.stdout.split() == [str(1 << 20)]
    assert [each.partition(":")[0] for each in end.missing] == ["limits_memory", "limits_pids"]


async def test_a_terminal_is_the_calls_own(box: Box) -> None:
    end = await box.run("workspace-write", "tty < /dev/tty; echo hi > /dev/tty", tty=WindowSize())
    assert end.facts.stdout.endswith("hi\r\n"), end


@pytest.mark.case("X15")
async def test_without_bubblewrap_nothing_runs(box: Box, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOOLRUNNER_BWRAP", str(tmp_path / "none"))
    with pytest.raises(SpawnRefused, match="No such file or directory") as caught:
        await box.prepare("workspace-write", "echo ran > marker")
    assert caught.value.error.kind is SpawnErrorKind.SANDBOX
    assert not (box.folder / "marker").exists()


def fake(folder: Path, script: str) -> Path:
    path = folder / "bwrap"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.case("X15", "X17", "X18")
@pytest.mark.parametrize(
    "script, problem",
    [
        ("echo 'bwrap: other words for the same' >&2; exit 1", "it ran nothing (status 1: bwrap: other words for the same)"),
        ('while [ "$1" != -- ]; do shift; done; shift; exec "$@"', "what it ran shared a namespace with the host"),
        ("exit 0", "it ran nothing (status 0)"),
    ],
    ids=["fails", "contains nothing", "does nothing"],
)
async def test_a_bubblewrap_is_judged_by_what_it_does(
    box: Box, monkeypatch: pytest.MonkeyPatch, script: str, problem: str
) -> None:
    monkeypatch.setenv("TOOLRUNNER_BWRAP", str(fake(box.folder.parent, script)))
    with pytest.raises(SpawnRefused) as caught:
        await box.prepare("workspace-write", "echo ran > marker")
    assert problem in str(caught.value)
    assert not (box.folder / "marker").exists()


async def test_a_guarantee_that_cannot_be_had_is_refused_by_name(box: Box) -> None:
    with pytest.raises(SpawnRefused, match=r"requires what cannot be had: limits_pids \(this needs a cgroup"):
        await box.prepare(Sandbox("workspace-write", require=("limits_pids", "fs_write")), "true")
    with pytest.raises(SpawnRefused, match=r"network \(the profile leaves it the host's\)"):
        await box.prepare(Sandbox(profile(network={"mode": "host"}), require=("network",)), "true")
    with pytest.raises(SpawnRefused, match="the backend is none, which holds nothing"):
        await box.prepare(Sandbox("danger-full-access", require=("fs_write",)), "true")
    assert (await box.run(Sandbox("offline", require=("network", "fs_write")), "true")).started


async def test_full_access_is_said_and_holds_nothing(box: Box) -> None:
    end = await box.run("danger-full-access", "echo x > ../beside")
    assert (box.folder.parent / "beside").exists()
    assert end.sandbox is not None
    assert (end.sandbox.profile, end.sandbox.backend) == ("danger-full-access", "none")
    assert end.enforced == ()
    assert end.facts.containment is Containment.KEEPER


async def test_what_would_outlive_its_sandbox_is_refused(box: Box) -> None:
    with pytest.raises(SpawnRefused, match="leftovers cannot be kept"):
        await box.prepare("workspace-write", "true", leftovers=Leftovers.KEEP)


@pytest.mark.root
async def test_root_is_refused_where_it_has_nobody_to_become(box: Box) -> None:
    os.chown(box.folder, 0, 0)
    with pytest.raises(SpawnRefused, match="root cannot be contained"):
        await box.prepare("workspace-write", "echo ran > marker")


@pytest.mark.root
async def test_root_becomes_the_owner_of_the_workspace_for_good(box: Box) -> None:
    script = "id -u; id -g; id -G; grep -E 'Cap(Prm|Eff|Bnd)|NoNewPrivs' /proc/self/status; cat /etc/shadow"
    end = await box.run("workspace-write", script)
    owner = str(box.folder.stat().st_uid)
    words = end.facts.stdout.split()
    assert words[:3] == [owner] * 3
    assert words[3:] == ["CapPrm:", "0" * 16, "CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"]
    assert "denied" in end.facts.stderr


@pytest.mark.case("X16")
async def test_a_profile_that_is_edited_while_it_is_used_changes_nothing(box: Box, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('schema = 1\nsummary = "x"\n')
    file.chmod(0o600)
    sandbox = Sandbox(file)
    file.write_text('schema = 1\nsummary = "x"\nbackend = "none"\n')
    await box.run(sandbox, "echo evil > here")
    assert not (box.folder / "here").exists()


async def test_a_workspaces_own_profile_takes_away_and_adds_nothing(box: Box) -> None:
    text = 'schema = 1\nsummary = "x"\nbackend = "none"\n[filesystem]\nallow_write = ["out", "/usr"]\n'
    text += '[env]\ninherit = "all"\nset = { ADDED = "1" }\n'
    box.write(".toolrunner/profile.toml", text)
    (box.folder / ".toolrunner").chmod(0o755)
    box.write("out/old", "")
    end = await box.run("workspace-write", "echo x > out/new; echo x > here; env")
    assert end.started, end
    assert (box.folder / "out/new").exists()
    assert not (box.folder / "here").exists()
    assert "ADDED" not in end.facts.stdout
    assert end.sandbox is not None
    assert end.sandbox.profile == "workspace-write and profile"


async def test_a_workspaces_profile_that_does_not_load_stops_everything(box: Box) -> None:
    box.write(".toolrunner/profile.toml", "schema = 1")
    (box.folder / ".toolrunner").chmod(0o755)
    with pytest.raises(SpawnRefused, match="summary: Field required"):
        await box.prepare("workspace-write", "true")


async def test_a_command_that_is_not_there_is_not_found(box: Box) -> None:
    with anyio.fail_after(60):
        end = await box.run("workspace-write", "true", argv=("toolrunner-no-such-command",))
    assert not end.started
    assert end.spawn_error is not None
    assert end.spawn_error.kind is SpawnErrorKind.NOT_FOUND


async def test_a_set_up_that_fails_is_no_run(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    real = subprocess.run(["sh", "-c", "command -v bwrap"], capture_output=True, text=True, check=False).stdout.strip()
    # Works for the probe; of the real start it makes one that cannot be set up.
    path = fake(
        box.folder.parent,
        f'if [ "$1" = --args ]; then shift 2; exec {real} --json-status-fd 4 --bind /nowhere /x "$@"; fi\nexec {real} "$@"',
    )
    monkeypatch.setenv("TOOLRUNNER_BWRAP", str(path))
    end = await box.run("workspace-write", "echo ran > marker")
    assert not end.started
    assert end.spawn_error is not None
    assert end.spawn_error.kind is SpawnErrorKind.SANDBOX
    assert end.enforced == ()
    assert not (box.folder / "marker").exists()
