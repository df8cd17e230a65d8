"""The leak guard sees what it is there for: each leak is made on purpose in a pytest run of its own, which must name it."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import leaks
import pytest
from liveness import Lifeline, survivors_now, unique_duration

TESTS = Path(__file__).parent.parent
SUPPORT = ("conftest.py", "leaks.py", "kernel.py", "plain_user.py", "stillness.py", "liveness.py", "reaper.py")
CONFIG = """
[pytest]
addopts = --import-mode=importlib -p no:cacheprovider
pythonpath = .
strict_markers = true
filterwarnings = error
markers =
    case
    processes
    root
    uvloop
"""
LEAKY = """
import asyncio, os, signal, socket, subprocess, tempfile, threading
import anyio, pytest, trio

kept = []


def test_process():
    kept.append(subprocess.Popen(["sleep", "{duration}"]))


def test_zombie():
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    kept.append(child)


def test_orphan():
    subprocess.run(["setsid", "-f", "sleep", "{duration}"], check=True)


def test_fd():
    kept.append(os.open("/dev/null", os.O_RDONLY))


def test_thread():
    gate = threading.Event()
    kept.append(gate)
    threading.Thread(target=gate.wait, args=(20,), name="left-over", daemon=True).start()


def test_file():
    tempfile.mkstemp(prefix="spill-")[0]
    os.close(os.open("/dev/null", os.O_RDONLY))


def test_system_file():
    open(f"/tmp/toolrunner-guard-test-{{os.getpid()}}", "w").close()


def test_signal():
    signal.signal(signal.SIGHUP, lambda *_: None)


def test_folder():
    os.chdir("/")


@pytest.mark.anyio
async def test_task(anyio_backend_name):
    if anyio_backend_name == "asyncio":
        kept.append(asyncio.create_task(asyncio.sleep(600), name="left-over"))
    else:
        trio.lowlevel.spawn_system_task(trio.sleep, 600, name="left-over")


def test_clean():
    subprocess.run(["true"], check=True)
    with tempfile.TemporaryDirectory(), socket.socket():
        worker = threading.Thread(target=int)
        worker.start()
        worker.join()


@pytest.mark.anyio
async def test_clean_async():
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 0)
    await anyio.to_thread.run_sync(int)
    await anyio.run_process(["true"])
"""


def run_pytest(folder: Path, body: str, *prefix: str) -> subprocess.CompletedProcess[str]:
    for name in SUPPORT:
        (folder / name).write_text((TESTS / name).read_text())
    (folder / "pytest.ini").write_text(CONFIG)
    (folder / "test_leaky.py").write_text(textwrap.dedent(body))
    # A session of its own: neither our mark nor our reaper, or the inner leaks would be ours.
    environment = {
        key: value for key, value in os.environ.items() if key not in {leaks.MARK, leaks.REAPER, "PYTEST_XDIST_WORKER"}
    }
    argv = [*prefix, sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "--basetemp", str(folder / "base"), str(folder)]
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    duration = unique_duration()
    done = run_pytest(tmp_path_factory.mktemp("leaky"), LEAKY.format(duration=duration))
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert survivors_now(duration, rounds=2) == []  # the guard also ended what it found
    return done.stdout


@pytest.mark.parametrize(
    "test, words",
    [
        ("test_process", "process"),
        ("test_zombie", "(Z)"),
        ("test_orphan", "process"),
        ("test_fd", "/dev/null"),
        ("test_thread", "thread left-over"),
        ("test_file", "spill-"),
        ("test_system_file", "temp file /tmp/toolrunner-guard-test-"),
        ("test_signal", "signal action of SIGHUP"),
        ("test_folder", "working directory /"),
        ("test_task[asyncio]", "left-over"),
        ("test_task[trio]", "left-over"),
    ],
)
def test_each_kind_of_leak_fails_the_test_that_made_it(report: str, test: str, words: str) -> None:
    title = f"ERROR at teardown of {test} "
    assert title in report, report
    section = report.partition(title)[2].partition("ERROR at teardown of ")[0]
    assert words in section


@pytest.mark.parametrize("test", ["test_clean", "test_clean_async[asyncio]", "test_clean_async[trio]"])
def test_a_test_that_cleans_up_is_not_blamed(report: str, test: str) -> None:
    assert f"ERROR at teardown of {test} " not in report
    assert "14 passed" in report.splitlines()[-1], report


CLOAKED = """
import subprocess


def test_cloaked():
    subprocess.run("env -i setsid -f sleep {duration} </dev/null >/dev/null 2>&1", shell=True, check=True)
"""


def test_under_the_reaper_even_an_orphan_without_environment_is_blamed_on_its_test(tmp_path: Path) -> None:
    duration = unique_duration()
    done = run_pytest(tmp_path, CLOAKED.format(duration=duration), sys.executable, str(TESTS / "reaper.py"))
    assert "ERROR at teardown of test_cloaked" in done.stdout
    assert duration in done.stdout
    assert survivors_now(duration, rounds=2) == []


def test_the_reaper_fails_a_command_that_succeeds_and_leaves_something(tmp_path: Path) -> None:
    duration = unique_duration()
    os.mkfifo(there := tmp_path / "there")
    # It says that it is there: between fork and exec a process has no command line to be named by.
    left = f"env -i setsid -f sh -c 'echo >{there}; sleep {duration}; :' </dev/null >/dev/null 2>&1"
    argv = [sys.executable, str(TESTS / "reaper.py"), "sh", "-c", f"{left}; read there <{there}; true"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 97
    assert f"sleep {duration}" in done.stderr
    assert survivors_now(duration, rounds=2) == []


@pytest.mark.parametrize("command, status", [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143)])
def test_the_reaper_passes_the_status_of_a_clean_command_on(command: str, status: int) -> None:
    done = subprocess.run([sys.executable, str(TESTS / "reaper.py"), "sh", "-c", command], timeout=120, check=False)
    assert done.returncode == status


@pytest.mark.anyio
async def test_a_lifeline_ends_only_with_the_last_descendant(tmp_path: Path) -> None:
    duration = unique_duration()
    with Lifeline(tmp_path) as line:
        child = subprocess.Popen(["sh", "-c", f"{line.sh}; setsid -f sleep {duration}"])
        await line.opened()
        assert child.wait(60) == 0
        assert not line.is_gone()  # the leader is gone, the daemon holds the line
        for survivor in survivors_now(duration, rounds=1):
            os.kill(int(survivor.partition(":")[0]), 9)
        await line.gone()
        assert line.is_gone()


def test_a_lifeline_works_without_an_event_loop_and_from_python(tmp_path: Path) -> None:
    with (
        Lifeline(tmp_path) as line,
        subprocess.Popen([sys.executable, "-c", f"{line.python}; input()"], stdin=subprocess.PIPE) as child,
    ):
        line.wait_opened()
        with pytest.raises(TimeoutError, match="still held"):
            line.wait_gone(0.01)
        child.communicate(b"\n")
        line.wait_gone()
