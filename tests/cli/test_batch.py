"""`toolrunner batch`: one line out for each line in, in order, whatever is in them."""

import json
import os
import signal
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest
from cli.program import BOUND, running, toolrun
from cli.schema_check import problems
from liveness import Lifeline, survivors_now, unique_duration

from toolrunner.results import schema

TOOLS = """
import sys, time
import anyio
from toolrunner import Toolset, tool

print("printed at import")

@tool(read_only=True)
async def nap(seconds: float) -> str:
    "Sleep."
    await anyio.sleep(seconds)
    return f"slept {seconds}"

@tool
def stuck(ready: str) -> str:
    "Ignores every stop."
    print("printed by a tool")
    open(ready, "wb").close()
    time.sleep(613)
    return "never"

@tool
def leave() -> str:
    "Raises SystemExit."
    sys.exit(5)

toolset = Toolset([nap, stuck, leave])
several = [nap, stuck]
broken = 5
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(TOOLS)
    (tmp_path / "raises.py").write_text("import sys\n\nsys.exit('no')\n")
    return tmp_path


def calls(*lines: object) -> bytes:
    return b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)


def call(name: str, call_id: str | None = None, /, **arguments: object) -> dict[str, object]:
    return {"call_id": call_id, "name": name, "arguments": arguments}


def test_every_line_gets_its_result_in_order_and_each_fits_the_schema(folder: Path) -> None:
    given = calls(
        call("nap", "1", seconds=0.3),
        call("nap", "2", seconds=0.01),
        call("shell", "3", command="echo hi; exit 4"),
        b"\n  \n",
        call("shell", "3", command="touch twice"),
        call("nap", "4", second=1),
        call("missing", "5"),
        {"call_id": "6", "name": "nap", "arguments": '{"seconds": 0}'},
        {"call_id": "7", "name": "nap", "arguments": [1]},
        {"call_id": "8", "name": "nap"},
    )
    done = toolrun("batch", "-", "--tools", "mine:toolset", stdin=given, cwd=folder)
    assert done.status == 0
    assert [line["call_id"] for line in done.lines] == ["1", "2", "3", "3", "4", "5", "6", "7", "8"]
    assert [line["code"] for line in done.lines] == [
        None, None, "EXIT_STATUS", "INVALID_ARGUMENTS", "INVALID_ARGUMENTS", "UNKNOWN_TOOL", None, "INVALID_ARGUMENTS",
        "INVALID_ARGUMENTS",
    ]  # fmt: skip
    for line in done.lines:
        assert problems(line, schema()) == []
    assert not (folder / "twice").exists()


def test_what_tools_print_is_no_result(folder: Path) -> None:
    done = toolrun("batch", "-", "--tools", "mine:nap", stdin=calls(call("nap", seconds=0)), cwd=folder)
    assert len(done.lines) == 1
    assert b"printed at import" in done.err


@pytest.mark.parametrize(
    "line, error",
    [
        (b"{", "not JSON: a name in double quotes is missing at column 2"),
        (b"nope", "not JSON: there is no JSON value at column 1"),
        (b'{"name":"\xff"}', "not UTF-8: byte 10 of the line"),
        (b'{"name":"shell","arguments":{"command":NaN}}', "not JSON: NaN"),
        (b'{"name":"shell","arguments":{"command":"a","command":"b"}}', "the name 'command' is given twice"),
        (b"[" * 100_000, "not usable JSON: nested too deeply"),
        (b'{"name":"shell","arguments":{"a":' + b"1" * 5000 + b"}}", "not usable JSON: a number of more than 4,300 digits"),
        (b"[1]", "a call is an object, not an array"),
        (b"null", "a call is an object, not null"),
        (b"{}", "'name' is missing"),
        (b'{"name":7}', "'name' is a number, not a string"),
        (b'{"name":"shell","call_id":7}', "'call_id' is a number, not a string"),
        (b'{"name":"shell","argument":{}}', "unknown field 'argument'; a call has call_id, name, arguments, idempotency_key"),
    ],
    ids=lambda value: str(value[:30]),
)
def test_a_malformed_line_is_answered_in_its_place_and_the_others_run(line: bytes, error: str) -> None:
    done = toolrun(
        "batch", "-", stdin=calls(call("shell", "1", command="true"), line + b"\n", call("shell", "2", command="true"))
    )
    first, bad, last = done.lines
    assert done.status == 2
    assert bad == {"line": 2, "error": error}
    assert (first["call_id"], last["call_id"]) == ("1", "2")
    assert first["outcome"] == last["outcome"] == "succeeded"


def test_line_numbers_count_blank_lines_and_a_last_line_needs_no_end() -> None:
    done = toolrun("batch", "-", stdin=b"\xef\xbb\xbf\n\r\nx\r\n" + calls(call("shell", command="echo \u2028"))[:-1])
    assert done.lines[0]["line"] == 3
    assert done.lines[1]["process"]["stdout"] == "\u2028\n"


def test_no_line_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    done = toolrun("batch", "empty", cwd=tmp_path)
    assert (done.status, done.out, done.err) == (0, b"", b"")


def test_an_idempotency_key_runs_its_call_once(tmp_path: Path) -> None:
    line = {"name": "shell", "arguments": {"command": "echo once >> log"}, "idempotency_key": "k"}
    done = toolrun("batch", "-", stdin=calls(line, line), cwd=tmp_path)
    assert [one["replayed"] for one in done.lines] == [False, True]
    assert (tmp_path / "log").read_text() == "once\n"


@pytest.mark.parametrize(
    "words, why",
    [
        (("nofile",), "'nofile' cannot be read: No such file or directory"),
        ((".",), "'.' cannot be read: Is a directory"),
        (("-", "--tools", "nomodule:x"), "cannot import nomodule: ModuleNotFoundError"),
        (("-", "--tools", "raises:x"), "cannot import raises: SystemExit: no ("),
        (("-", "--tools", "mine:nothing"), "mine has no 'nothing'"),
        (("-", "--tools", "mine"), "expected MODULE:NAME"),
        (("-", "--tools", "./mine:nap"), "expected MODULE:NAME"),
        (("-", "--tools", "mine:broken"), "ToolDefinitionError"),
        (("-", "--max-parallel", "0"), "max-parallel"),
    ],
)
def test_bad_options_are_one_line_and_nothing_runs(words: tuple[str, ...], why: str, folder: Path) -> None:
    done = toolrun("batch", *words, stdin=calls(call("shell", command="touch ran")), cwd=folder)
    assert done.status == 2
    assert done.out == b""
    (line,) = [one for one in done.err.splitlines() if one != b"printed at import"]
    assert why in line.decode()
    assert not (folder / "ran").exists()


def test_tools_may_be_a_list_and_ones_own_shell_takes_the_place_of_the_built_in(folder: Path) -> None:
    (folder / "own.py").write_text("def shell(command: str) -> str:\n    'Mine.'\n    return 'mine: ' + command\n")
    given = calls(call("shell", command="ls"), call("nap", seconds=0))
    done = toolrun("batch", "-", "--tools", "own:shell", "--tools", "mine:several", stdin=given, cwd=folder)
    assert [line["value"] for line in done.lines] == ["mine: ls", "slept 0.0"]


def test_read_only_calls_overlap_up_to_max_parallel(folder: Path) -> None:
    (folder / "meeting.py").write_text(
        dedent("""
            import anyio
            from toolrunner import tool
            here = set()

            @tool(read_only=True)
            async def meet(name: str) -> int:
                "How many of two came at the same time."
                here.add(name)
                for _ in range(50):
                    if len(here) == 2:
                        break
                    await anyio.sleep(0.02)
                seen = len(here)
                await anyio.sleep(0.1)
                here.discard(name)
                return seen
        """)
    )
    given = calls(call("meet", name="a"), call("meet", name="b"))
    together = toolrun("batch", "-", "--tools", "meeting:meet", stdin=given, cwd=folder)
    assert [line["value"] for line in together.lines] == [2, 2]
    alone = toolrun("batch", "-", "--tools", "meeting:meet", "--max-parallel", "1", stdin=given, cwd=folder)
    assert [line["value"] for line in alone.lines] == [1, 1]


def test_results_come_as_they_are_committed(tmp_path: Path) -> None:
    marker = unique_duration()
    (tmp_path / "calls").write_bytes(calls(call("shell", "1", command="true"), call("shell", "2", command=f"sleep {marker}")))
    with running("batch", "calls", cwd=tmp_path) as program:
        first = program.read_until(b"\n")  # while the second one runs
        assert json.loads(first)["call_id"] == "1"
        program.send(signal.SIGTERM)
        done = program.done()
    assert done.lines[0]["outcome"] == "aborted"
    assert survivors_now(marker) == []


@pytest.mark.case("P70")
@pytest.mark.parametrize(
    "number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["INT", "TERM", "HUP"]
)
def test_a_stopped_batch_keeps_what_is_done_and_answers_every_call(number: signal.Signals, status: int, tmp_path: Path) -> None:
    with Lifeline(tmp_path) as line:
        commands = ("echo kept", f"{line.sh}; sleep 613", "x")
        given = [call("shell", str(index), command=command) for index, command in enumerate(commands)]
        (tmp_path / "calls").write_bytes(calls(*given, b"bad\n"))
        with running("batch", "calls", cwd=tmp_path) as program:
            line.wait_opened()
            program.send(number)
            done = program.done()
        assert line.is_gone()
    assert done.status == status  # a stop outranks a malformed line
    assert [one.get("code") for one in done.lines] == [None, "ABORTED", "ABORTED_BEFORE_DISPATCH", None]
    assert done.lines[0]["process"]["stdout"] == "kept\n"
    assert done.lines[3]["line"] == 4


def test_a_body_that_ignores_every_stop_is_told_as_running_before_we_leave(folder: Path) -> None:
    given = calls(call("stuck", "1", ready=str(folder / "ready")), call("shell", "2", command="true"))
    (folder / "calls").write_bytes(given)
    os.mkfifo(folder / "ready")
    with running("batch", "calls", "--tools", "mine:toolset", cwd=folder) as program:
        with (folder / "ready").open("rb") as ready:  # the tool opens the other end: it runs
            ready.read()
        program.send(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):  # a thread cannot be killed: the first stop waits for it
            program.process.wait(1.0)
        program.send(signal.SIGTERM)
        done = program.done()
    assert done.status == 143
    stuck, never = done.lines
    assert stuck["outcome"] == "aborted"
    assert [one["what"] for one in stuck["still_running"]] == ["stuck"]
    assert never["code"] == "ABORTED_BEFORE_DISPATCH"
    assert b"stuck still runs and cannot be killed" in done.err
    assert problems(stuck, schema()) == []


def test_a_tool_that_raises_system_exit_stops_the_batch_and_every_call_is_answered(folder: Path) -> None:
    given = calls(call("leave", "1"), call("shell", "2", command="touch ran"))
    done = toolrun("batch", "-", "--tools", "mine:leave", stdin=given, cwd=folder)
    assert done.status == 130
    assert [one["code"] for one in done.lines] == ["TOOL_ERROR", "ABORTED_BEFORE_DISPATCH"]
    assert b"a tool raised SystemExit" in done.err
    assert not (folder / "ran").exists()


def test_a_reader_that_leaves_stops_the_batch(tmp_path: Path) -> None:
    marker = unique_duration()
    lines = [
        call("shell", "1", command="true"),
        call("shell", "2", command="sleep 1; true"),
        call("shell", "3", command=f"sleep {marker}"),
    ]
    (tmp_path / "calls").write_bytes(calls(*lines))
    with running("batch", "calls", cwd=tmp_path) as program:
        program.read_until(b"\n")
        assert program.process.stdout is not None
        program.process.stdout.close()
        program.process.stdout = None
        assert program.process.wait(BOUND) == 130
    assert survivors_now(marker) == []
