"""Programs at a terminal of ours: what they see, what they print to the last byte, and how they are stopped."""

import os
from pathlib import Path

import anyio
import pytest
from liveness import survivors, unique_duration
from process.shapes import BOUND, GRACE, SLACK, part, run, run_until, sh

from toolrunner.errors import ConfigError
from toolrunner.process import DEFAULT_GRACE, EndCause, LaunchPlan, Prepared, SpawnRefused, Stdin, Supervisor, WindowSize

pytestmark = pytest.mark.anyio

SIZE = WindowSize(rows=31, columns=97)

LONG = 50.0
"""A grace that no test waits out."""


@pytest.mark.case("P51")
async def test_the_last_bytes_before_the_exit_are_never_lost(keeper: Supervisor) -> None:
    for _ in range(200):
        outcome = await run(keeper, ("printf", "last"), tty=SIZE)
        assert outcome.out == "last"
        assert outcome.end.facts.drained == "eof"
        assert outcome.end.still_running == ()


@pytest.mark.case("P51")
async def test_much_output_right_before_the_exit_is_whole(keeper: Supervisor) -> None:
    for _ in range(20):
        outcome = await run(keeper, "seq 20000", tty=SIZE)
        assert outcome.out.split("\r\n") == [*map(str, range(1, 20001)), ""]


async def test_it_sees_a_terminal_of_the_given_size_that_controls_its_session(keeper: Supervisor) -> None:
    script = "test -t 0 && test -t 1 && test -t 2 && stty size && test -c /dev/tty && echo over >/dev/tty && echo error >&2"
    outcome = await run(keeper, script, tty=SIZE, stdin=Stdin.OPEN)
    assert outcome.out == "31 97\r\nover\r\nerror\r\n"
    assert (outcome.end.facts.stderr, outcome.end.facts.stderr_bytes) == ("", 0)
    assert outcome.end.facts.exit_code == 0


async def test_without_input_of_its_own_nothing_can_be_typed_and_a_reader_does_not_wait(keeper: Supervisor) -> None:
    outcome = await run(keeper, "cat; test -t 0 || echo none; test -t 1 && echo done", tty=SIZE)
    assert outcome.out == "none\r\ndone\r\n"


async def test_only_what_says_that_there_is_no_terminal_is_left_out_of_its_environment(
    keeper: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "vt220")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("PAGER", "less")
    script = "echo $TERM ${NO_COLOR-unset} $PAGER"
    assert (await run(keeper, script)).out == "dumb 1 cat\n"
    assert (await run(keeper, script, tty=SIZE)).out == "vt220 unset cat\r\n"
    assert (await run(keeper, script, tty=SIZE, stdin=Stdin.OPEN)).out == "vt220 unset less\r\n"
    monkeypatch.delenv("TERM")
    assert (await run(keeper, script, tty=SIZE)).out == "xterm unset cat\r\n"


@pytest.mark.parametrize("data", [b"one\ntwo\n", b"one\ntwo"], ids=["whole lines", "an unfinished line"])
async def test_input_is_typed_and_has_an_end(keeper: Supervisor, data: bytes) -> None:
    outcome = await run(keeper, "stty -echo; echo part; cat | tr a-z A-Z", tty=SIZE, stdin=data)
    assert "ONE" in outcome.out
    assert "TWO" in outcome.out
    assert outcome.end.facts.exit_code == 0


async def test_input_can_be_written_while_it_runs_and_be_ended(keeper: Supervisor) -> None:
    with anyio.fail_after(BOUND):
        asked = anyio.Event()
        prepared = await keeper.prepare(
            LaunchPlan(sh("read -p 'name? ' name; echo hello $name; cat"), tty=SIZE, stdin=Stdin.OPEN),
            on_output=lambda _, data: asked.set() if b"?" in data else None,
        )
        prepared.go()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prepared.wait)
            await asked.wait()
            assert await prepared.write(b"you\n")
            prepared.close_stdin()
        end = await prepared.wait()
        assert not await prepared.write(b"more")
    assert end.facts.stdout == "name? you\r\nhello you\r\n"
    assert end.facts.exit_code == 0


async def test_a_new_size_is_told_to_the_program(keeper: Supervisor) -> None:
    script = "trap 'stty size <&1; exit' WINCH; echo part; while :; do sleep .05; done"
    prepared: list[Prepared] = []

    def look(_: str, data: bytes) -> None:
        if part(data):
            prepared[0].resize(WindowSize(5, 40))

    with anyio.fail_after(BOUND):
        prepared.append(await keeper.prepare(LaunchPlan(sh(script), tty=SIZE), on_output=look))
        prepared[0].go()
        end = await prepared[0].wait()
        prepared[0].resize(SIZE)  # there is nothing any more that could have a size
    assert end.facts.stdout == "part\r\n5 40\r\n"


@pytest.mark.case("P34")
async def test_a_program_that_answers_the_first_ctrl_c_with_a_question_gets_a_second_one(keeper: Supervisor) -> None:
    script = "n=0; trap 'n=$((n+1)); echo int $n; test $n = 2 && exit 0' INT; echo part; while :; do sleep .02; done"
    outcome = await run_until(keeper, script, part, tty=SIZE, grace=1.0)
    assert outcome.out.split() == ["part", "int", "1", "int", "2"]
    assert outcome.end.signals == ("SIGINT", "SIGINT")
    assert outcome.end.cause is EndCause.STOPPED
    assert not outcome.end.escalated
    assert outcome.seconds < 1.0 + SLACK


@pytest.mark.case("P34")
async def test_a_terminal_program_that_obeys_nothing_gets_int_int_term_kill_within_the_grace(keeper: Supervisor) -> None:
    outcome = await run_until(
        keeper, "trap 'echo i' INT; trap 'echo t' TERM; echo part; while :; do sleep .02; done", part, tty=SIZE, grace=0.8
    )
    assert [word for word in outcome.out.split() if len(word) == 1] == ["i", "i", "t"]  # bash also tells of its own child
    assert outcome.end.signals == ("SIGINT", "SIGINT", "SIGTERM", "SIGKILL")
    assert outcome.end.escalated
    delivered, ended = outcome.end.delivered_at, outcome.end.ended_at
    assert delivered is not None
    assert ended is not None
    assert 0.8 <= (ended - delivered).total_seconds() < 0.8 + SLACK


@pytest.mark.case("P34")
async def test_ctrl_c_goes_to_the_job_in_the_foreground_of_an_interactive_shell(keeper: Supervisor) -> None:
    duration = unique_duration()
    with anyio.fail_after(BOUND):
        at_work = anyio.Event()
        out = bytearray()

        def look(_: str, data: bytes) -> None:
            out.extend(data)
            if b"part\r\n" in out:  # not the echo of what is typed
                at_work.set()

        plan = LaunchPlan(
            ("bash", "--norc", "--noprofile", "-i"), tty=SIZE, stdin=Stdin.OPEN, kill_after=GRACE, env={"PS1": "> "}
        )
        prepared = await keeper.prepare(plan, on_output=look)
        prepared.go()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prepared.wait)
            await prepared.write(f"sh -c 'trap \"echo got; exit\" INT; echo part; sleep {duration} & wait'\n".encode())
            await at_work.wait()
            prepared.stop()
        end = await prepared.wait()
    assert b"got" in out
    assert end.signals[0] == "SIGINT"
    assert end.still_running == ()
    assert await survivors(duration) == []


async def test_killing_now_asks_nobody_first(keeper: Supervisor) -> None:
    outcome = await run_until(keeper, "trap 'echo int' INT; echo part; while :; do sleep .02; done", part, tty=SIZE, grace=0)
    assert outcome.end.signals == ("SIGKILL",)
    assert outcome.out == "part\r\n"


async def test_its_own_time_limit_begins_the_same_ladder(keeper: Supervisor) -> None:
    outcome = await run(keeper, ("sleep", "600"), tty=SIZE, timeout=0.2, kill_after=LONG)
    assert outcome.end.cause is EndCause.TIMED_OUT
    assert outcome.end.signals == ("SIGINT",)
    assert outcome.seconds < LONG / 2


async def test_what_comes_after_the_terminal_was_let_go_and_opened_again_is_kept(keeper: Supervisor) -> None:
    script = "echo first; exec </dev/null >/dev/null 2>&1; sleep .3; echo again >/dev/tty; sleep .3; echo last >/dev/tty"
    outcome = await run(keeper, script, tty=SIZE)
    assert outcome.out == "first\r\nagain\r\nlast\r\n"


async def test_what_outlives_the_leader_and_holds_the_terminal_is_ended(keeper: Supervisor) -> None:
    duration = unique_duration()
    outcome = await run(keeper, f"(trap '' HUP; exec sleep {duration}) & echo part; sleep .1", tty=SIZE)
    assert outcome.out == "part\r\n"
    assert outcome.end.cause is EndCause.EXITED
    assert [one.what for one in outcome.end.facts.leftovers] == ["sleep"]
    assert outcome.end.facts.drained == "deadline"
    assert await survivors(duration) == []


async def test_the_terminal_is_no_descriptor_of_the_tool_but_its_streams(keeper: Supervisor) -> None:
    outcome = await run(keeper, "ls -l /proc/self/fd | grep -c pts", tty=SIZE, stdin=Stdin.OPEN)
    assert outcome.out == "2\r\n"  # stdout of `ls` is the pipe


async def test_a_host_that_leaves_takes_the_program_with_it(keeper: Supervisor) -> None:
    duration = unique_duration()
    with anyio.fail_after(BOUND):
        prepared = await keeper.prepare(
            LaunchPlan(sh(f"trap '' HUP INT TERM; sleep {duration}"), tty=SIZE, kill_after=DEFAULT_GRACE)
        )
        prepared.go()
        await keeper.aclose()
    assert await survivors(duration) == []


async def test_without_keepers_a_terminal_is_refused(best_effort: Supervisor) -> None:
    with pytest.raises(SpawnRefused, match="best_effort cannot give a terminal"):
        await best_effort.prepare(LaunchPlan(("true",), tty=SIZE))


async def test_without_a_free_terminal_the_call_is_refused(keeper: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left() -> tuple[int, int]:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "openpty", none_left)
    with pytest.raises(SpawnRefused, match="a terminal: No space left"):
        await keeper.prepare(LaunchPlan(("true",), tty=SIZE))


@pytest.mark.parametrize("rows, columns", [(0, 80), (24, -1), (70_000, 80)])
def test_a_size_that_no_terminal_has_is_refused(rows: int, columns: int) -> None:
    with pytest.raises(ConfigError, match="window size"):
        WindowSize(rows, columns)


async def test_open_input_without_a_terminal_is_a_pipe_with_backpressure(supervisor: Supervisor, tmp_path: Path) -> None:
    copy, data = tmp_path / "copy", os.urandom(1 << 20)
    with anyio.fail_after(BOUND):
        prepared = await supervisor.prepare(LaunchPlan(sh(f"cat > {copy}"), stdin=Stdin.OPEN))
        prepared.go()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prepared.wait)
            assert await prepared.write(data)
            prepared.close_stdin()
        end = await prepared.wait()
    assert end.facts.exit_code == 0
    assert copy.read_bytes() == data
