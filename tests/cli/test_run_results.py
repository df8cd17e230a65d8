"""The result of `toolrunner run` in each of its forms: a line of JSON, events, a report. Real programs throughout."""

import json
import os
import re
import signal
from pathlib import Path

import pytest
from cli.program import SH, running, toolrun
from cli.schema_check import problems
from liveness import survivors_now, unique_duration

from toolrunner.results import schema


@pytest.mark.parametrize(
    "words",
    [
        ("--", "echo", "ö"),
        (*SH, "exit 3"),
        (*SH, "kill -9 $$"),
        ("--timeout", "0.2", *SH, "echo part; sleep 613"),
        ("--timeout", "nan", "--", "true"),
        ("--", "no-such-command"),
        ("--watch-writes", ".", *SH, "touch new; sleep 613 & true"),
    ],
    ids=" ".join,
)
def test_json_is_exactly_one_line_that_fits_the_schema_and_nothing_else(words: tuple[str, ...], tmp_path: Path) -> None:
    done = toolrun("run", "--json", *words, cwd=tmp_path)
    assert done.err == b""
    assert done.out.count(b"\n") == 1
    assert problems(done.result, schema()) == []


def test_events_tell_it_live_one_record_a_line_and_the_result_is_the_last(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    with running("run", "--events", *SH, "echo first; read x <go; echo last", cwd=tmp_path) as program:
        seen = program.read_until(b'"text":"first\\n"')  # it came while the command runs: it waits for us
        (tmp_path / "go").write_bytes(b"\n")
        done = program.done()
    lines = [json.loads(line) for line in (seen + done.out).splitlines()]
    *records, result = lines
    types = [record["type"] for record in records]
    assert [one for one in types if one != "output"] == [
        "call/recorded", "call/decided", "call/dispatched", "call/ended", "call/settled"
    ]  # fmt: skip
    assert "".join(record["text"] for record in records if record["type"] == "output") == "first\nlast\n"
    assert [record["seq"] for record in records if record["type"] != "output"] == [1, 2, 3, 4, 5]
    assert problems(result, schema()) == []
    assert {record["run_id"] for record in records} == {result["run_id"]}
    assert done.err == b""


def test_events_that_nobody_reads_are_dropped_with_a_count_and_hold_nothing_up() -> None:
    with running("run", "--events", "--timeout", "2", *SH, "yes x | head -c 30000000; echo end >&2; sleep 613") as program:
        lines = [json.loads(line) for line in program.done().out.splitlines()]
    assert lines[-1]["outcome"] == "timed_out"
    assert lines[-1]["process"]["stdout_bytes"] == 30_000_000


def test_a_report_file_holds_the_result_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")
    link = tmp_path / "link"
    link.symlink_to(target)
    with target.open() as before:
        done = toolrun("run", "--report", "link", *SH, "cat report.json", cwd=tmp_path)
        assert done.out == b"old"
        assert before.read() == "old"  # whoever had it open keeps the old one: it was replaced, not written over
    assert problems(json.loads(target.read_text()), schema()) == []
    assert link.is_symlink()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "report.json"]


def test_a_report_that_cannot_be_written_is_said_and_turns_a_success_into_74() -> None:
    done = toolrun("run", "--report", "/dev/full", "--", "true")
    assert done.status == 74
    assert b"No space left on device" in done.err
    assert toolrun("run", "--report", "/dev/full", "--", "false").status == 1
    with Path("/dev/full").open("wb") as full, running("run", "--json", "--", "true", stdout=full) as program:
        assert program.done().status == 74


def test_output_on_a_full_disk_stops_the_command_and_says_why() -> None:
    marker = unique_duration()
    with Path("/dev/full").open("wb") as full, running("run", *SH, f"echo x; sleep {marker}", stdout=full) as program:
        done = program.done()
    assert done.status == 130
    assert b"No space left on device" in done.err
    assert survivors_now(marker) == []


@pytest.mark.case("P73")
def test_what_the_command_left_is_told_and_stays_until_it_ends_by_itself() -> None:
    done = toolrun("run", "--leftovers", "keep", "--", "sh", "-c", "(sleep .5; echo late) & echo early; exit 3")
    assert done.status == 3
    assert done.out == b"early\nlate\n"
    said = done.err.decode()
    assert "still running: sh (job-" in said
    assert re.search(r"(sh|sleep) \(pid \d+\).* kept running; Ctrl-C or `kill \d+` ends it, and so does our end", said)


def test_what_the_command_left_ends_when_toolrunner_is_stopped_and_the_result_came_before() -> None:
    marker = unique_duration()
    with running(
        "run", "--leftovers", "keep", "--json", "--", "sh", "-c", f"sleep {marker} >/dev/null 2>&1 & echo early"
    ) as program:
        line = program.read_until(b"\n")
        result = json.loads(line)
        assert (result["outcome"], result["process"]["kept"][0]["kind"]) == ("succeeded", "job")
        assert result["still_running"] == result["process"]["kept"]
        assert len([one for one in survivors_now(marker) if "toolrunner" not in one]) == 1
        program.send(signal.SIGTERM)
        assert program.done().status == 0
    assert survivors_now(marker) == []
