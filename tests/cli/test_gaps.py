"""Moments at which the command line was caught out: before it had begun, without an output, at a key that it cannot obey."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli.program import BOUND, PROGRAM, at_terminal, environment, running
from liveness import Lifeline


@pytest.mark.parametrize("program", [PROGRAM, (str(Path(sys.executable).with_name("toolrunner")),)], ids=["-m", "script"])
def test_ctrl_c_while_it_is_still_imported_leaves_quietly(program: tuple[str, ...], tmp_path: Path) -> None:
    if not Path(program[0]).exists():
        pytest.skip("the console script is not installed beside this interpreter")
    fifo = tmp_path / "imported"
    os.mkfifo(fifo)
    # A dependency that takes its time, in the place of the real one.
    (tmp_path / "typer.py").write_text(f"open({str(fifo)!r}, 'w').close()\nimport time\ntime.sleep({BOUND})\n")
    env = environment()
    env["PYTHONPATH"] = f"{tmp_path}:{env['PYTHONPATH']}"
    process = subprocess.Popen(
        [*program, "run", "--", "touch", str(tmp_path / "ran")],
        env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        fifo.read_text()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=BOUND)
    finally:
        process.kill()
        process.wait(BOUND)
    assert (process.returncode, out, err) == (130, b"", b"")
    assert not (tmp_path / "ran").exists()


def test_the_library_leaves_signals_alone() -> None:
    script = "import signal, toolrunner; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run([sys.executable, "-c", script, "-m", "toolrunner"], capture_output=True, env=environment(), check=True)
    assert done.stdout == b"True\n"


@pytest.mark.parametrize("form", ["--json", "--events"])
def test_a_result_that_has_nowhere_to_go_is_no_success(form: str) -> None:
    words = [*PROGRAM, "run", form, "--", "true"]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *words], stderr=subprocess.PIPE, env=environment(), timeout=BOUND, check=False
    )
    assert done.returncode in ((74,) if form == "--json" else (74, 130))
    assert b"the result cannot be written to standard output" in done.stderr


def test_a_reader_that_leaves_while_nothing_is_written_yet_stops_the_command(tmp_path: Path) -> None:
    read, write = os.pipe()
    with Lifeline(tmp_path) as line, running("run", "--json", "--", "sh", "-c", f"{line.sh}; sleep 600", stdout=write) as program:
        os.close(write)
        line.wait_opened()
        os.close(read)
        line.wait_gone()
        assert program.done().status == 130


def test_ctrl_z_is_refused_in_words_and_the_command_goes_on() -> None:
    with at_terminal("run", "-q", "--", "sh", "-c", "echo ready; read line; echo $line", stdin=subprocess.PIPE) as terminal:
        terminal.shows("ready")
        terminal.process.send_signal(signal.SIGTSTP)
        terminal.shows("cannot be paused, and runs on; Ctrl-C stops it")
        assert terminal.process.stdin is not None
        terminal.process.stdin.write(b"on\n")
        terminal.process.stdin.close()
        status, _ = terminal.end()
    assert status == 0
