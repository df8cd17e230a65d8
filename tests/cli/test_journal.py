"""The journal through the real command: what is kept, what is told of it, and that nothing runs without one."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.program import BOUND, PROGRAM, environment, running, toolrun
from liveness import Lifeline

from toolrunner.journal import SqliteJournal, sessions

SH = ("--", "sh", "-c")


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder for each test: its newest session is its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def jsonl(*calls: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(call).encode() + b"\n" for call in calls)


def shell(call_id: str, command: str, **more: Any) -> dict[str, Any]:
    return {"call_id": call_id, "name": "shell", "arguments": {"command": command}, **more}


# run and batch keep one.


def test_each_run_has_a_fresh_session_for_this_user_alone_and_log_shows_the_newest(own_state: Path) -> None:
    assert toolrun("run", "-q", "--", "true").status == 0
    assert toolrun("run", "-q", *SH, "exit 3").status == 3
    found = sessions()
    assert len(found) == 2
    for one in found:
        assert one.path.stat().st_mode & 0o777 == 0o600
        assert one.path.parent.stat().st_mode & 0o777 == 0o700
    lines = toolrun("log").out.decode().splitlines()
    assert [line.split("  ")[3] for line in lines] == ["recorded", "decided", "dispatched", "ended", "settled"]
    assert "exit 3" in lines[0]
    assert "exit status 3" in lines[-1]


def test_a_session_that_is_named_takes_many_runs_and_its_file_may_be_named_too(own_state: Path, tmp_path: Path) -> None:
    for word in ("one", "two"):
        assert toolrun("run", "-q", "--session", "mine", "--", "echo", word).status == 0
    by_name = toolrun("log", "--session", "mine", "--json").lines
    by_file = toolrun("log", "--journal", str(own_state / "toolrunner/sessions/mine/journal.db"), "--json").lines
    assert by_name == by_file
    assert [line["arguments"]["argv"] for line in by_name if line["type"] == "call/recorded"] == [
        ["echo", "one"],
        ["echo", "two"],
    ]
    assert [line["seq"] for line in by_name] == list(range(1, len(by_name) + 1))
    assert by_name[-1]["result"]["process"]["stdout"] == "two\n"
    assert toolrun("run", "-q", "--journal", str(tmp_path / "j.db"), "--", "true").status == 0
    assert len(toolrun("log", "--journal", str(tmp_path / "j.db"), "--json").lines) == 5


@pytest.mark.parametrize(
    "words", [("run", "--session", "a", "--journal", "b", "--", "true"), ("log", "--session", "a", "--journal", "b")]
)
def test_a_session_and_a_file_at_once_are_bad_usage(words: tuple[str, ...], tmp_path: Path) -> None:
    done = toolrun(*words, cwd=tmp_path)
    assert done.status == 2
    assert b"--session and --journal both name a journal" in done.err
    assert list(tmp_path.iterdir()) == []


# Without a journal nothing runs.


def refused(tmp_path: Path, *words: str, env: dict[str, str] | None = None) -> str:
    """The one line that says why; nothing ran."""
    done = toolrun("run", *words, "--", "touch", str(tmp_path / "ran"), env=env)
    assert done.status == 125
    assert done.out == b""
    assert not (tmp_path / "ran").exists()
    (line,) = done.err.decode().splitlines()
    assert line.startswith("toolrunner: the journal ")
    assert line.endswith("; nothing ran")
    batch = toolrun("batch", "-", *words, stdin=jsonl(shell("1", f"touch {tmp_path / 'ran'}")), env=env)
    assert (batch.status, batch.out) == (125, b"")
    assert not (tmp_path / "ran").exists()
    return line


def test_a_second_owner_is_told_who_the_first_is(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "j.db")
    try:
        assert f"process {os.getpid()} owns it" in refused(tmp_path, "--journal", str(tmp_path / "j.db"))
    finally:
        journal.close()
    assert toolrun("run", "-q", "--journal", str(tmp_path / "j.db"), "--", "true").status == 0


def test_a_folder_that_may_not_be_written_is_told_before_anything_runs(tmp_path: Path) -> None:
    # A file in the place of a folder stops root as well.
    (tmp_path / "file").write_text("")
    assert f"{tmp_path / 'file'}: File exists" in refused(tmp_path, env=environment(XDG_STATE_HOME=str(tmp_path / "file")))
    assert "No such file or directory" in refused(tmp_path, "--journal", str(tmp_path / "nowhere" / "j.db"))


def test_a_read_only_folder_is_told_before_anything_runs(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root writes everywhere; the suite runs as a plain user too")
    (tmp_path / "closed").mkdir(mode=0o500)
    assert "Permission denied" in refused(tmp_path, env=environment(XDG_STATE_HOME=str(tmp_path / "closed")))


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small file system")
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", str(place)], check=True)
    try:
        (place / "filler").write_bytes(b"x" * 60_000)
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.root
def test_a_full_disk_is_told_before_anything_runs(full_disk: Path, tmp_path: Path) -> None:
    line = refused(tmp_path, "--journal", str(full_disk / "j.db"))
    assert "make room" in line


@pytest.mark.root
def test_a_disk_that_fills_up_meanwhile_is_told_at_the_end(full_disk: Path, tmp_path: Path) -> None:
    (full_disk / "filler").unlink()
    subprocess.run(["mount", "-o", "remount,size=200k", str(full_disk)], check=True)
    fill = f"head -c 300k /dev/zero > {full_disk}/filler 2> /dev/null; true"
    done = toolrun("run", "--journal", str(full_disk / "j.db"), "--", "sh", "-c", fill, cwd=tmp_path)
    assert done.status == 0, "it is the command's own"
    assert b"The journal cannot be written: no space is left." in done.err


@pytest.mark.root
def test_a_disk_that_fills_up_during_a_batch_is_told_once_beside_the_results(full_disk: Path, tmp_path: Path) -> None:
    (full_disk / "filler").unlink()
    subprocess.run(["mount", "-o", "remount,size=200k", str(full_disk)], check=True)
    fill = f"head -c 300k /dev/zero > {full_disk}/filler 2> /dev/null; true"
    calls = jsonl(shell("a", fill), shell("b", "echo 2"), shell("c", "echo 3"))
    done = toolrun("batch", "-", "--journal", str(full_disk / "j.db"), stdin=calls, cwd=tmp_path)
    assert [line["started"] for line in done.lines] == [True, False, False]
    (said,) = done.err.decode().splitlines()
    assert said.startswith("toolrunner: the journal cannot be written: no space is left")
    assert "no more calls are started" in said


# log and show.


def test_what_cannot_be_found_is_said_in_one_line() -> None:
    for words, status, text in [
        (("log",), 2, "there is no session yet"),
        (("log", "--session", "nowhere"), 1, "there is no such file"),
        (("show", "ab", "--journal", "/nowhere/j.db"), 1, "there is no such file"),
        (("log", "--session", "../x"), 1, "letters, digits"),
    ]:
        done = toolrun(*words)
        assert (done.status, done.out) == (status, b"")
        assert text in done.err.decode()
        assert len(done.err.splitlines()) == 1


def test_an_id_may_be_any_unique_beginning_and_one_that_fits_several_lists_them() -> None:
    calls = jsonl(shell("call_one", "echo 1"), shell("call_two", "echo 2"))
    results = toolrun("batch", "-", "--session", "s", stdin=calls).lines
    run_id = results[1]["run_id"]
    for wanted in (run_id, run_id[:12], "call_two", "call_t"):
        assert toolrun("show", wanted, "--session", "s", "--json").result["run_id"] == run_id
    done = toolrun("show", "call_", "--session", "s")
    assert done.status == 2
    for one in results:
        assert one["run_id"] in done.err.decode()
    assert toolrun("show", "zzz", "--session", "s").status == 2
    assert toolrun("show", "", "--session", "s").status == 2
    assert {line["run_id"] for line in toolrun("log", "--run", "call_t", "--session", "s", "--json").lines} == {run_id}


def test_show_tells_a_call_from_its_record_to_its_result(tmp_path: Path) -> None:
    toolrun("run", "-q", "--timeout", "0.3", *SH, "sleep 60")
    (settled,) = [line for line in toolrun("log", "--json").lines if line["type"] == "call/settled"]
    text = toolrun("show", settled["run_id"][:6]).out.decode()
    for step in ("recorded", "decided", "dispatched", "ended", "settled", "running:", "outcome: timed_out", "effects: unknown"):
        assert step in text
    told = toolrun("show", settled["run_id"], "--json").result
    assert told["result"]["outcome"] == "timed_out"
    assert told["records"][0]["type"] == "call/recorded"
    stretches = {one["name"]: one["end"] - one["start"] for one in told["stretches"]}
    assert 0.3 <= stretches["running"] < BOUND


def test_what_is_shown_is_harmless_at_a_terminal() -> None:
    toolrun("run", "-q", "--session", "evil", "--", "echo", "\x1b[31m\u202e")
    for words in (
        ("log", "--session", "evil"),
        ("show", toolrun("log", "--session", "evil", "--json").lines[0]["run_id"], "--session", "evil"),
    ):
        out = toolrun(*words).out
        assert b"\x1b" not in out
        assert "\u202e".encode() not in out
        assert rb"\u202e" in out


def test_log_follows_until_the_owner_has_ended(tmp_path: Path) -> None:
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    with running("run", "--session", "s", *SH, f"echo ready; read line <{fifo}; echo $line") as program:
        program.read_until(b"ready\n")
        with running("log", "--follow", "--session", "s", "--json") as follower:
            follower.read_until(b'"call/dispatched"')
            fifo.write_text("on\n")
            done = follower.done()
    assert done.status == 0
    assert [line["type"] for line in done.lines[-2:]] == ["call/ended", "call/settled"]


def test_the_page_is_written_whole_for_its_owner(tmp_path: Path) -> None:
    toolrun("run", "-q", "--session", "s", "--", "echo", "<b>")
    done = toolrun("log", "--html", "page.html", "--session", "s", cwd=tmp_path)
    assert (done.status, done.out, done.err) == (0, b"", b"")
    text = (tmp_path / "page.html").read_text()
    assert "&lt;b&gt;" in text
    assert "<b>" not in text.replace('<b title="command">', "")
    assert toolrun("log", "--html", "page.html", "--json", "--session", "s", cwd=tmp_path).status == 2


# journal check and export.


def test_a_whole_journal_checks_and_a_damaged_one_does_not(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    toolrun("run", "-q", "--journal", str(path), "--", "true")
    done = toolrun("journal", "check", "--journal", str(path))
    assert toolrun("journal", "check", str(path)).out == done.out
    assert (done.status, b"whole; 5 records, 1 call\n" in done.out) == (0, True)
    assert toolrun("journal", "check", "--journal", str(path), "--json").result["whole"] is True
    path.write_bytes(b"x" * 5000)
    assert toolrun("journal", "check", "--journal", str(path)).status == 1


def test_an_export_says_what_happened_and_not_with_what(tmp_path: Path) -> None:
    path = str(tmp_path / "j.db")
    toolrun("run", "-q", "--journal", path, "--", "echo", "secret word")
    done = toolrun("journal", "export", "--journal", path)
    assert toolrun("journal", "export", path).out == done.out
    both = toolrun("journal", "export", path, "--journal", path)
    assert (both.status, both.out) == (2, b"")
    assert b"give one of them" in both.err
    assert [line["type"] for line in done.lines] == [
        "journal/opened", "call/recorded", "call/decided", "call/dispatched", "call/ended", "call/settled",
    ]  # fmt: skip
    assert b"secret" not in done.out
    assert b"secret word" in toolrun("journal", "export", "--raw", "--journal", path).out


# A program that dies.


@pytest.fixture
def crashed(tmp_path: Path) -> bytes:
    """A batch of three, killed while the second one runs. Each leaves a line in `ground` when it has done its work."""
    with Lifeline(tmp_path) as line:
        calls = jsonl(
            shell("c1", "echo one >>ground", idempotency_key="k1"),
            shell("c2", f"echo two >>ground; {line.sh}; sleep 600", idempotency_key="k2"),
            shell("c3", "echo three >>ground", idempotency_key="k3"),
        )
        (tmp_path / "calls.jsonl").write_bytes(calls)
        with running("batch", "calls.jsonl", "--journal", "j.db", cwd=tmp_path) as program:
            line.wait_opened()
            program.process.kill()
            program.process.wait(BOUND)
            line.wait_gone()
    assert (tmp_path / "ground").read_text() == "one\ntwo\n"
    return calls


@pytest.mark.usefixtures("crashed")
def test_after_a_kill_the_story_is_true_and_the_same_batch_again_does_nothing_twice(tmp_path: Path) -> None:
    before = (tmp_path / "j.db").read_bytes()
    dry = toolrun("recover", "--dry-run", "--journal", "j.db", "--json", cwd=tmp_path).result
    assert {one["call_id"]: (one["outcome"], one["code"], one["started"]) for one in dry["results"]} == {
        "c2": ("failed", "LOST", True),
        "c3": ("aborted", "ABORTED_BEFORE_DISPATCH", False),
    }
    assert (tmp_path / "j.db").read_bytes() == before
    done = toolrun("recover", "--journal", "j.db", cwd=tmp_path)
    assert done.status == 0
    assert b"LOST" in done.out
    assert b"nothing to recover" in toolrun("recover", "--journal", "j.db", cwd=tmp_path).out
    shown = {
        one: toolrun("show", one, "--journal", "j.db", "--json", cwd=tmp_path).result["result"] for one in ("c1", "c2", "c3")
    }
    assert [shown[one]["outcome"] for one in shown] == ["succeeded", "failed", "aborted"]
    assert (shown["c2"]["ended"], shown["c2"]["effects"]["state"]) == ("lost", "unknown")
    assert (shown["c3"]["started"], shown["c3"]["effects"]["state"]) == (False, "none")
    for one, stretch in (("c2", b"running"), ("c3", b"waiting")):
        told = toolrun("show", one, "--journal", "j.db", cwd=tmp_path).out
        assert stretch + b": end not known" in told, "nobody saw when its host was killed"
    again = toolrun("batch", "calls.jsonl", "--journal", "j.db", cwd=tmp_path)
    first, second, third = again.lines
    assert (first["outcome"], first["replayed"], first["about_run_id"]) == ("succeeded", True, shown["c1"]["run_id"])
    assert (second["outcome"], second["code"], second["started"]) == ("rejected", "IN_DOUBT", False)
    assert second["about_run_id"] == shown["c2"]["run_id"]
    assert (third["outcome"], third["replayed"]) == ("succeeded", False)
    assert (tmp_path / "ground").read_text() == "one\ntwo\nthree\n"
    assert toolrun("journal", "check", "--journal", "j.db", cwd=tmp_path).status == 0


@pytest.mark.usefixtures("crashed")
def test_a_batch_is_resumed_where_it_died(tmp_path: Path) -> None:
    done = toolrun("batch", "calls.jsonl", "--resume", "--journal", "j.db", cwd=tmp_path)
    assert done.status == 0
    assert [line["call_id"] for line in done.lines] == ["c3"]
    assert b"2 of 3 calls were settled already and are left out (1 of them with effects that are not known" in done.err
    assert (tmp_path / "ground").read_text() == "one\ntwo\nthree\n"
    again = toolrun("batch", "calls.jsonl", "--resume", "--journal", "j.db", cwd=tmp_path)
    assert (again.status, again.out) == (0, b"")
    assert b"3 of 3 calls" in again.err


@pytest.mark.usefixtures("crashed")
def test_the_users_word_settles_a_doubt(tmp_path: Path) -> None:
    toolrun("recover", "--journal", "j.db", cwd=tmp_path)
    done = toolrun("reconcile", "c2", "--as", "none", "--note", "I looked", "--journal", "j.db", cwd=tmp_path)
    assert done.status == 0, done.err
    (said,) = [
        line
        for line in toolrun("log", "--run", "c2", "--journal", "j.db", "--json", cwd=tmp_path).lines
        if line["type"] == "call/reconciled"
    ]
    assert (said["as_"], said["by"], said["note"]) == ("none", "user", "I looked")
    assert b"in no doubt" in toolrun("reconcile", "c1", "--as", "none", "--journal", "j.db", cwd=tmp_path).err
    assert toolrun("reconcile", "c2", "--as", "perhaps", "--journal", "j.db", cwd=tmp_path).status == 2


def test_reconcile_and_recover_are_refused_while_an_owner_lives(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "j.db")
    try:
        done = toolrun("recover", "--journal", "j.db", cwd=tmp_path)
        assert (done.status, b"owns it" in done.err) == (1, True)
        assert toolrun("recover", "--dry-run", "--journal", "j.db", cwd=tmp_path).status == 0
    finally:
        journal.close()


def test_a_resumed_batch_runs_what_was_stopped_before_it_started_and_refuses_other_calls_under_an_old_id(tmp_path: Path) -> None:
    toolrun("batch", "-", "--journal", "j.db", stdin=jsonl(shell("a", "echo 1")), cwd=tmp_path)
    lines = jsonl(
        shell("a", "echo 2"),
        {"name": "shell", "arguments": {"command": "echo no id"}},
        {"call_id": "a", "name": "other"},
        shell("b", "echo 3"),
    )
    done = toolrun("batch", "-", "--resume", "--journal", "j.db", stdin=lines, cwd=tmp_path)
    assert done.status == 2
    assert [set(line) == {"line", "error"} for line in done.lines] == [True, False, True, False]
    assert done.lines[0] == {"line": 1, "error": "call_id 'a' is settled in this journal with other arguments"}
    assert "as a call of 'shell'" in done.lines[2]["error"]
    assert done.lines[3]["value"] is not None or done.lines[3]["outcome"] == "succeeded"
    assert toolrun("batch", "-", "--resume", stdin=lines, cwd=tmp_path).status == 2


# ps and cancel.


def test_ps_lists_what_runs_with_its_processes_and_cancel_stops_it_and_tells_the_result(tmp_path: Path) -> None:
    with (
        Lifeline(tmp_path) as line,
        running("run", "--session", "s", "--report", "r.json", *SH, f"{line.sh}; sleep 600", cwd=tmp_path) as program,
    ):
        line.wait_opened()
        (found,) = toolrun("ps", "--json").lines
        assert found["pid"] == program.process.pid
        assert found["about"]["session"] == "s"
        (call,) = found["calls"]
        assert call["standing"] == "running"
        assert str(call["pid"]) in json.dumps(found["processes"])
        assert call["run_id"][:8].encode() in toolrun("ps").out
        # A tool of that very program may not.
        assert toolrun("cancel", "nothing").status == 2
        done = toolrun("cancel", call["run_id"][:5], "--json")
        assert done.status == 0
        assert (done.result["run_id"], done.result["outcome"]) == (call["run_id"], "aborted")
        line.wait_gone()
        assert program.done().status == 130
    assert json.loads((tmp_path / "r.json").read_text())["stop"]["reason"] == "toolrunner cancel"
    nothing = toolrun("ps")
    assert (nothing.out, nothing.err) == (b"", b"toolrunner: nothing runs now\n")
    assert b"nothing runs" in toolrun("cancel", "--all").err


def test_a_tool_cannot_cancel_its_siblings() -> None:
    done = toolrun("run", "-q", *SH, f"setsid -w {' '.join(PROGRAM)} cancel --all; echo went on")
    assert done.status == 0
    assert b"went on" in done.out
    assert b"a tool does not stop its siblings" in done.err
