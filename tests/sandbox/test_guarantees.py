"""What is promised is had, or the command does not run: bubblewraps, requirements, root, profiles that change."""

import os
import subprocess
from pathlib import Path

import anyio
import pytest
from sandbox.running import Box, profile

from toolrunner.facts import Containment
from toolrunner.process import Leftovers, SpawnErrorKind, SpawnRefused
from toolrunner.sandbox import Sandbox

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


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
