"""What a contained command can read, write, reach and use up: each by a command that tries."""

import os
import socket
from pathlib import Path

import pytest
from sandbox.running import Box, profile

from toolrunner.facts import Containment
from toolrunner.process import EndCause, WindowSize

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


async def test_a_limit_of_file_sizes_and_memory_holds(box: Box) -> None:
    limited = profile(filesystem={"allow_write": ["."]}, limits={"file_size": "4 KiB", "memory": "1 GiB", "pids": 5})
    end = await box.run(limited, "trap '' XFSZ; head -c 10000 /dev/zero > big; ulimit -v")
    assert (box.folder / "big").stat().st_size == 4096
    assert end.facts.stdout.split() == [str(1 << 20)]
    assert [each.partition(":")[0] for each in end.missing] == ["limits_memory", "limits_pids"]


async def test_a_terminal_is_the_calls_own(box: Box) -> None:
    end = await box.run("workspace-write", "tty < /dev/tty; echo hi > /dev/tty", tty=WindowSize())
    assert end.facts.stdout.endswith("hi\r\n"), end
