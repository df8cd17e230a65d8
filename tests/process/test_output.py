"""What a command printed: kept whatever happened, bounded, decoded; what it reads; who else sees it."""

import hashlib
import os
import time
from pathlib import Path

import anyio
import pytest
from liveness import unique_duration
from process.shapes import BOUND, GRACE, SLACK, part, run, run_until, sh

from toolrunner.process import EndCause, LaunchPlan, Stdin, Supervisor
from toolrunner.process.output import Capture

pytestmark = pytest.mark.anyio


def rss() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.case("P47")
async def test_what_was_printed_before_the_limit_is_in_the_result(supervisor: Supervisor) -> None:
    outcome = await run(supervisor, f"echo part; echo bad >&2; sleep {unique_duration()}", timeout=0.3)
    assert outcome.end.cause is EndCause.TIMED_OUT
    assert (outcome.end.facts.stdout, outcome.end.facts.stderr) == ("part\n", "bad\n")


@pytest.mark.case("P37", "P49")
async def test_endless_output_neither_delays_the_limit_nor_fills_memory(supervisor: Supervisor) -> None:
    limit = 1 << 20
    before = rss()
    with anyio.fail_after(BOUND):
        prepared = await supervisor.prepare(LaunchPlan(("yes", "x" * 16), timeout=1.0, output_limit=limit, kill_after=GRACE))
        prepared.go()
        start = time.monotonic()
        end = await prepared.wait()
    facts = end.facts
    assert rss() - before < 32 << 20
    assert end.cause is EndCause.TIMED_OUT
    assert time.monotonic() - start < 1 + GRACE + SLACK
    assert facts.truncated
    assert facts.stdout_bytes > limit
    head, middle, tail = facts.stdout.partition("\n[... ")
    assert head.startswith("xxxxxxxxxxxxxxxx\n")
    assert middle
    assert len(head) + len(tail) < limit + 100
    assert f"[... {facts.stdout_bytes - limit} bytes left out ...]" in facts.stdout


@pytest.mark.case("P49")
async def test_memory_stays_bounded_while_much_passes(keeper: Supervisor) -> None:
    with anyio.fail_after(BOUND):
        prepared = await keeper.prepare(LaunchPlan(("head", "-c", "400000000", "/dev/zero")))
        before = rss()
        prepared.go()
        end = await prepared.wait()
        grown = rss() - before
    assert end.facts.stdout_bytes == 400_000_000
    assert grown < 32 << 20


async def test_past_the_limit_everything_is_in_the_spill_file(supervisor: Supervisor, tmp_path: Path) -> None:
    folder = tmp_path / "spill"
    outcome = await run(supervisor, "seq 1 20000; echo e >&2", output_limit=1000, spill_dir=folder)
    facts = outcome.end.facts
    assert len(facts.spill) == 1
    assert Path(facts.spill[0]).read_text() == "".join(f"{n}\n" for n in range(1, 20001))
    assert os.stat(facts.spill[0]).st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert facts.stdout.startswith("1\n2\n")
    assert facts.stdout.endswith("\n20000\n")


async def test_a_spill_file_that_is_full_says_so(supervisor: Supervisor, tmp_path: Path) -> None:
    outcome = await run(supervisor, "seq 1 20000", output_limit=1000, spill_dir=tmp_path / "spill", spill_limit=5000)
    assert os.stat(outcome.end.facts.spill[0]).st_size == 5000
    assert [text for text in outcome.end.missing if "first 5000 bytes" in text]


@pytest.mark.parametrize("limit", [0, 1, 5, 6, 7, 1000])
def test_a_capture_keeps_head_and_tail_and_counts_all(limit: int) -> None:
    capture = Capture("stdout", limit)
    for byte in b"abcdefghij":
        capture.add(bytes([byte]))
    assert capture.total == 10
    head, tail = "abcdefghij"[: limit - limit // 2], "abcdefghij"[10 - limit // 2 :]
    if limit < 10:
        assert capture.text() == f"{head}\n[... {10 - limit} bytes left out ...]\n{tail}"
    else:
        assert capture.text() == "abcdefghij"
    assert capture.truncated is (limit < 10)


def test_a_character_across_chunks_is_whole_and_one_cut_by_our_limit_is_left_out() -> None:
    capture = Capture("stdout", 100)
    for byte in "é€😀".encode():
        capture.add(bytes([byte]))
    assert capture.text() == "é€😀"
    cut = Capture("stdout", 4)
    cut.add("a€€€€€€b".encode())
    assert cut.text() == "a\n[... 16 bytes left out ...]\nb"


async def test_output_that_is_not_utf8_is_replaced_and_never_lost(supervisor: Supervisor) -> None:
    outcome = await run(supervisor, r"printf 'a\xff\xfeb'")
    assert outcome.out == "a\ufffd\ufffdb"
    assert b"".join(outcome.chunks) == b"a\xff\xfeb"


async def test_an_observer_that_raises_costs_the_call_nothing(supervisor: Supervisor) -> None:
    def broken(stream: str, data: bytes) -> None:
        raise RuntimeError("observer")

    with anyio.fail_after(BOUND):
        prepared = await supervisor.prepare(LaunchPlan(sh("echo one; echo two")), on_output=broken)
        prepared.go()
        end = await prepared.wait()
    assert end.facts.stdout == "one\ntwo\n"


class SlowSink:
    """Holds each write until `gate` is set."""

    def __init__(self) -> None:
        self.gate = anyio.Event()
        self.got = b""

    async def write(self, stream: str, data: bytes) -> None:
        await self.gate.wait()
        self.got += data


async def test_a_sink_gets_everything_and_holds_the_tool_back(supervisor: Supervisor, tmp_path: Path) -> None:
    sink, mark = SlowSink(), tmp_path / "mark"
    size = 3_000_000
    with anyio.fail_after(BOUND):
        prepared = await supervisor.prepare(LaunchPlan(sh(f"head -c {size} /dev/zero; touch {mark}")), sink=sink)
        prepared.go()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prepared.wait)
            await anyio.sleep(0.3)  # a test of time: it would be done long ago
            assert not mark.exists()
            sink.gate.set()
        end = await prepared.wait()
    assert len(sink.got) == size == end.facts.stdout_bytes
    assert (end.cause, end.sink_dropped) == (EndCause.EXITED, 0)


async def test_an_abort_releases_a_sink_that_is_stuck(supervisor: Supervisor) -> None:
    sink = SlowSink()
    with anyio.fail_after(BOUND):
        prepared = await supervisor.prepare(LaunchPlan(("yes",), kill_after=GRACE), sink=sink)
        prepared.go()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prepared.wait)
            await anyio.sleep(0.1)  # a test of time: the sink has its first write by then
            prepared.stop()
        end = await prepared.wait()
    assert end.cause is EndCause.STOPPED
    assert sink.got == b""
    assert end.sink_dropped == end.facts.stdout_bytes > 0


async def test_a_sink_that_is_stuck_after_the_exit_does_not_hold_a_stop(supervisor: Supervisor) -> None:
    sink = SlowSink()
    with anyio.fail_after(BOUND):
        prepared = await supervisor.prepare(LaunchPlan(sh("echo one")), sink=sink)
        prepared.go()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prepared.wait)
            await anyio.sleep(0.2)  # a test of time: the command has long exited, and its result waits for the sink
            prepared.stop()
        end = await prepared.wait()
    assert (end.cause, end.facts.stdout, end.sink_dropped) == (EndCause.EXITED, "one\n", 4)


@pytest.mark.case("P54")
async def test_a_command_that_reads_its_input_finds_it_empty(supervisor: Supervisor) -> None:
    outcome = await run(supervisor, "cat; echo done", timeout=10)
    assert (outcome.end.cause, outcome.out) == (EndCause.EXITED, "done\n")


async def test_data_is_fed_to_stdin_with_backpressure(supervisor: Supervisor) -> None:
    data = os.urandom(1 << 20)
    outcome = await run(supervisor, "sleep .05; cat | md5sum", stdin=data)
    assert outcome.out.split()[0] == hashlib.md5(data).hexdigest()  # noqa: S324


async def test_a_tool_that_stops_reading_ends_the_feed_quietly(supervisor: Supervisor) -> None:
    outcome = await run(supervisor, "head -c 3; exec <&-; echo; echo done", stdin=b"abc" + b"x" * (1 << 20))
    assert outcome.out == "abc\ndone\n"


async def test_the_ladder_closes_stdin_first(supervisor: Supervisor) -> None:
    """A server that only knows end of input as an order to leave."""
    script = "trap '' TERM; echo part; cat >/dev/null; echo left; exit 3"
    outcome = await run_until(supervisor, script, part, grace=BOUND, stdin=b"x" * (1 << 20))
    assert "left" in outcome.out or outcome.end.facts.exit_code == 3
    assert outcome.seconds < SLACK


async def test_stdin_from_a_file_and_from_the_host(supervisor: Supervisor, tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_text("from a file")
    assert (await run(supervisor, "cat", stdin=file)).out == "from a file"
    saved = os.dup(0)
    with open(file, "rb") as source:
        os.dup2(source.fileno(), 0)
        try:
            assert (await run(supervisor, "cat", stdin=Stdin.INHERIT)).out == "from a file"
        finally:
            os.dup2(saved, 0)
            os.close(saved)


@pytest.mark.case("P55")
async def test_nothing_that_would_ask_someone_is_opened(supervisor: Supervisor, tmp_path: Path) -> None:
    setup = "git init -q . && git config user.email a@example.org && git config user.name a && echo x >f && git add f"
    outcome = await run(supervisor, f"unset EDITOR VISUAL; {setup} && git commit", cwd=str(tmp_path), timeout=10)
    assert outcome.end.cause is EndCause.EXITED
    assert outcome.end.facts.exit_code == 1


@pytest.mark.case("P55")
async def test_the_callers_own_environment_wins_over_the_quiet_defaults(supervisor: Supervisor) -> None:
    script = 'echo "$TERM $PAGER ${NO_COLOR-unset} $GIT_TERMINAL_PROMPT"'
    assert (await run(supervisor, script)).out == "dumb cat 1 0\n"
    assert (await run(supervisor, script, env={"TERM": "vt100", "NO_COLOR": None})).out == "vt100 cat unset 0\n"


async def test_the_tool_has_no_terminal(keeper: Supervisor) -> None:
    outcome = await run(keeper, "echo x >/dev/tty", timeout=10)
    assert outcome.end.facts.exit_code == 1
    assert "No such device" in outcome.end.facts.stderr
