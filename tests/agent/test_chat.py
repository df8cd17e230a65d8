"""`toolrunner chat` at a terminal of its own, against a provider of ours: stopped, resumed, killed."""

import contextlib
import fcntl
import json
import os
import select
import signal
import sys
import termios
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from agent.anthropic_words import START, call, end, text
from agent.loopback import Hang, LoopbackProvider, provider_in_thread
from cli.program import BOUND, Terminal, at_terminal, read, running

from toolrunner.agent import TurnResult
from toolrunner.cli.chat import layers
from toolrunner.facts import AbortReason, Effects, EffectState, StillRunning, StillRunningKind, Stop, StopPhase
from toolrunner.results import Code, Ended, Outcome, Retry, ToolResult

pytest.importorskip("anthropic", reason="needs the extra agent")

pytestmark = [pytest.mark.processes, pytest.mark.skipif(sys.platform != "linux", reason="a pty, and /proc")]


@pytest.fixture
def state(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    return {"XDG_STATE_HOME": str(folder), "ANTHROPIC_API_KEY": "k"}


def words(served: LoopbackProvider, work: Path, *more: str) -> tuple[str, ...]:
    about = ("--provider", "anthropic", "--model", "claude-test", "--base-url", served.url, "--root", str(work))
    return ("chat", *about, "--session", "talk", *more)


def sent(served: LoopbackProvider, number: int) -> list[Any]:
    found: list[Any] = served.requests[number].body["messages"]
    return found


class Screen:
    """What a person sees, read on from where it was read to."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal, self._fd = terminal, terminal._master
        self._seen, self._at = "", 0

    def shows(self, wanted: str) -> str:
        """Wait for this, behind what was waited for before; returns all that came up to it."""
        limit = time.monotonic() + BOUND
        while (found := self._seen.find(wanted, self._at)) < 0:
            ready = select.select([self._fd], [], [], max(0.0, limit - time.monotonic()))[0]
            came = read(self._fd) if ready else b""
            assert came, f"{wanted!r} was not shown; there was {self._seen[self._at :]!r}"
            self._seen += came.decode(errors="replace")
        before, self._at = self._seen[self._at : found], found + len(wanted)
        return before + wanted

    def type(self, line: str) -> None:
        """Type a line at the prompt."""
        self.shows("> ")
        self.terminal.press(line.encode() + b"\n")

    def leave(self) -> int:
        self.shows("> ")
        self.terminal.press(b"\x04")
        return self.terminal.end()[0]


@contextlib.contextmanager
def talking(served: LoopbackProvider, work: Path, state: dict[str, str], *more: str) -> Iterator[Screen]:
    with at_terminal(*words(served, work, *more), env=state) as terminal:
        screen = Screen(terminal)
        screen.shows("Ctrl-D leaves")
        yield screen


def wait_for(path: Path, wanted: str) -> None:
    limit = time.monotonic() + BOUND
    while not path.exists() or wanted not in path.read_text():
        assert time.monotonic() < limit, f"{wanted!r} is not in {path}"
        time.sleep(0.01)


@pytest.mark.parametrize("key, how", [(b"\x1b", "Esc"), (b"\x03", "Ctrl-C")])
def test_a_stop_in_mid_sentence_tells_three_layers_and_the_next_words_build_on_what_was_read(
    key: bytes, how: str, tmp_path: Path, state: dict[str, str]
) -> None:
    first = [START, *text("First, apples. ", "Second, pe", closed=False), Hang()]
    with provider_in_thread(first, [START, *text("Pears, then."), *end()]) as served:
        with talking(served, tmp_path, state) as screen:
            screen.type("list fruit")
            screen.shows("Second, pe")
            screen.terminal.press(key)
            shown = screen.shows("nothing outside has to be checked")
            assert f"{how}: asked to stop" in shown
            assert "everything that was under way has ended" in shown
            screen.type("expand on your second point")
            screen.shows("Pears, then.")
            assert screen.leave() == 0
        before, after = sent(served, 0), sent(served, 1)
    assert after[: len(before)] == before
    assert after[len(before)]["content"] == [{"type": "text", "text": "First, apples. Second, pe"}]
    assert [part["text"] for part in after[-1]["content"]] == ["[Request interrupted by user]", "expand on your second point"]


def test_a_running_command_is_stopped_and_the_next_request_says_what_is_true_of_it(tmp_path: Path, state: dict[str, str]) -> None:
    command = "echo begun > begun.txt; while :; do sleep 0.05; done"
    first = [START, *call("shell", json.dumps({"command": command})), *end("tool_use")]
    with provider_in_thread(first, [START, *text("I see."), *end()]) as served:
        with talking(served, tmp_path, state, "--policy", str(allow_all(tmp_path))) as screen:
            screen.type("run it")
            screen.shows("toolrunner: shell")
            wait_for(tmp_path / "begun.txt", "begun")
            screen.terminal.press(b"\x1b")
            screen.shows("check: shell")
            screen.shows("begun.txt")
            screen.type("what happened?")
            screen.shows("I see.")
            assert screen.leave() == 0
        answer, marker, _ = sent(served, 1)[-1]["content"]
    assert (answer["type"], answer["is_error"]) == ("tool_result", True)
    told = answer["content"][0]["text"]
    assert "stopped" in told
    assert "begun.txt" in told
    assert marker["text"] == "[Request interrupted by user]"


def allow_all(folder: Path) -> Path:
    path = folder / "allow.toml"
    path.write_text('schema = 1\nsummary = "Everything is allowed."\ndefault = "allow"\n')
    return path


def test_what_the_policy_asks_about_is_asked_at_the_terminal_and_a_no_runs_nothing(tmp_path: Path, state: dict[str, str]) -> None:
    first = [START, *call("shell", json.dumps({"command": "touch made.txt"})), *end("tool_use")]
    with provider_in_thread(first, [START, *text("As you like."), *end()]) as served:
        with talking(served, tmp_path, state) as screen:
            screen.type("do it")
            screen.shows("Type ")
            screen.terminal.press(b"no\n")
            screen.shows("As you like.")
            assert screen.leave() == 0
        (answer,) = sent(served, 1)[-1]["content"]
    assert answer["is_error"]
    assert not (tmp_path / "made.txt").exists()


def test_killed_in_mid_stream_and_opened_again_the_prefix_and_the_marker_are_there(tmp_path: Path, state: dict[str, str]) -> None:
    draft = Path(state["XDG_STATE_HOME"]) / "toolrunner" / "sessions" / "talk" / "journal.db.draft"
    first = [START, *text("First, apples. ", "Second, pe", closed=False), Hang()]
    with provider_in_thread(first, [START, *text("Pears, then."), *end()]) as served:
        with talking(served, tmp_path, state) as screen:
            screen.type("list fruit")
            screen.shows("Second, pe")
            wait_for(draft, "Second, pe")
            assert draft.stat().st_mode & 0o777 == 0o600
            screen.terminal.process.send_signal(signal.SIGKILL)
            screen.terminal.end()
        with talking(served, tmp_path, state) as screen:
            assert not draft.exists()
            screen.type("expand on your second point")
            screen.shows("Pears, then.")
            assert screen.leave() == 0
        before, after = sent(served, 0), sent(served, 1)
    assert after[: len(before)] == before
    assert after[len(before)] == {"role": "assistant", "content": [{"type": "text", "text": "First, apples. Second, pe"}]}
    assert [part["text"] for part in after[-1]["content"]] == [
        "[Request interrupted: runner stopped unexpectedly]",
        "expand on your second point",
    ]


def test_lines_from_a_pipe_are_turns_and_the_words_alone_go_to_standard_output(tmp_path: Path, state: dict[str, str]) -> None:
    with provider_in_thread([START, *text("one"), *end()], [START, *text("two"), *end()]) as served:
        source, sink = os.pipe()
        os.write(sink, b"first\nsecond\n")
        os.close(sink)
        env = {**os.environ, **state}
        with running(*words(served, tmp_path), env=env, stdin=source) as program:
            os.close(source)
            done = program.done()
        assert [len(seen.body["messages"]) for seen in served.requests] == [1, 3]
    assert (done.status, done.out) == (0, b"one\ntwo\n")


def test_lines_of_a_file_are_turns_the_last_one_without_its_end_too(tmp_path: Path, state: dict[str, str]) -> None:
    lines = tmp_path / "lines"
    lines.write_text("first\nsecond")
    with provider_in_thread([START, *text("one"), *end()], [START, *text("two"), *end()]) as served, lines.open("rb") as source:
        with running(*words(served, tmp_path), env={**os.environ, **state}, stdin=source) as program:
            done = program.done()
        assert sent(served, 1)[-1]["content"][-1]["text"] == "second"
    assert (done.status, done.out) == (0, b"one\ntwo\n")


def wait_until_read(pipe: int) -> None:
    limit = time.monotonic() + BOUND
    while any(fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4)):
        assert time.monotonic() < limit, "nobody reads the pipe"
        time.sleep(0.01)


def test_a_signal_ends_it_while_a_pipe_that_stays_open_says_nothing(tmp_path: Path, state: dict[str, str]) -> None:
    with provider_in_thread([START, *text("one"), *end()]) as served:
        source, sink = os.pipe()
        os.write(sink, b"first\n")
        try:
            with running(*words(served, tmp_path), env={**os.environ, **state}, stdin=source) as program:
                os.close(source)
                program.read_until(b"one\n")
                os.write(sink, b"half a li")
                wait_until_read(sink)
                program.process.send_signal(signal.SIGTERM)
                assert program.done().status == 143
        finally:
            os.close(sink)


@pytest.mark.parametrize(
    "left, wanted",
    [
        ((), "everything that was under way has ended"),
        (None, "nothing was found that still runs (not provable here)"),
        ((StillRunning("crawl", StillRunningKind.BODY),), "still running: crawl"),
    ],
)
def test_a_stopped_turn_is_not_said_to_have_ended_beyond_what_its_results_prove(
    left: tuple[StillRunning, ...] | None, wanted: str
) -> None:
    stopped = ToolResult(
        run_id="r", name="crawl", outcome=Outcome.ABORTED, code=Code.ABORTED, started=True, ended=Ended.STOPPED,
        effects=Effects(EffectState.UNKNOWN, None), attempts=1, retry=Retry.CHECK_FIRST, still_running=left,
        stop=Stop("caller", "Esc", StopPhase.RUNNING, requested_at=datetime.now(UTC)),
    )  # fmt: skip
    turn = TurnResult(outcome="aborted", reason=AbortReason("caller", "Esc"), results=(stopped,))
    first, *outside = layers(turn)
    assert first == f"stopped (Esc): {wanted}"
    assert [line.partition(":")[0] for line in outside] == ["check"]


def test_without_its_sdk_a_provider_is_refused_with_a_sentence(tmp_path: Path, state: dict[str, str]) -> None:
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "sitecustomize.py").write_text("import sys\nsys.modules['anthropic'] = None\n")
    package = str(Path(__file__).parents[2])
    env = {**os.environ, **state, "PYTHONPATH": f"{blocked}:{package}"}
    with running("chat", "--provider", "anthropic", "--model", "m", env=env) as program:
        done = program.done()
    assert done.status == 125
    assert b"pip install" in done.err
    assert done.err.count(b"\n") == 1
