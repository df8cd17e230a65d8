"""The control socket: who may ask, what is answered, and that nobody who asks badly holds anything up. Over a scripted runner."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.to_thread import run_sync

from toolrunner import Runner, ToolCall, ToolContext, control, tool
from toolrunner.control import client as client_module
from toolrunner.control import lines, place
from toolrunner.control import peers as peers_module
from toolrunner.facts import Effects, EffectState, Evidence, Stop, StopPhase
from toolrunner.records import CallDispatched, CallRecorded, CallSettled, Observer, Record
from toolrunner.results import Code, Outcome, ToolResult

pytestmark = pytest.mark.anyio


class FakeRunner:
    """Its records are played by the test; a stop settles the call, unless the test says otherwise."""

    def __init__(self) -> None:
        self.observers: list[Observer] = []
        self.stopped: list[tuple[str, str]] = []
        self.settles_at_once = True
        self.was_stopped = anyio.Event()

    def on_record(self, observer: Observer, /) -> Callable[[], None]:
        self.observers.append(observer)
        return lambda: self.observers.remove(observer)

    def take_stops(self) -> Callable[[str, str], bool]:
        return self.stop

    def stop(self, run_id: str, text: str) -> bool:
        self.stopped.append((run_id, text))
        self.was_stopped.set()
        if self.settles_at_once:
            self.settle(run_id)
        return True

    def play(self, *records: Record) -> None:
        for record in records:
            for observer in self.observers:
                observer(record)

    def begin(self, run_id: str, name: str = "work") -> None:
        self.play(
            CallRecorded(run_id=run_id, name=name, arguments={}, call_id=f"c-{run_id}"),
            CallDispatched(run_id=run_id, name=name, arguments={}),
        )

    def settle(self, run_id: str) -> None:
        self.play(CallSettled(run_id=run_id, result=aborted(run_id)))


def aborted(run_id: str) -> ToolResult:
    return ToolResult(
        run_id=run_id,
        name="work",
        outcome=Outcome.ABORTED,
        code=Code.ABORTED_BEFORE_DISPATCH,
        started=False,
        effects=Effects(EffectState.NONE, Evidence.NOT_STARTED),
        stop=Stop("caller", "toolrunner cancel", StopPhase.BEFORE_DISPATCH, datetime.now(UTC)),
    )


@pytest.fixture(autouse=True)
def runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "toolrunner"


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process count as somebody else: else it would be refused as one that runs inside the program."""
    monkeypatch.setattr(peers_module, "ancestry", lambda pid: [pid + 1_000_000])


async def asked(path: Path, *questions: bytes, answers: int = 1) -> list[dict[str, Any]]:
    """What a bare client is told."""

    def talk() -> list[dict[str, Any]]:
        with place.connect(path, 5) as connection, connection.makefile("rb") as file:
            for question in questions:
                connection.sendall(question)
            return [json.loads(line) for line in (file.readline() for _ in range(answers)) if line]

    return await run_sync(talk)


@pytest.mark.usefixtures("others")
async def test_calls_under_way_are_listed_and_settled_ones_are_not() -> None:
    runner = FakeRunner()
    with anyio.fail_after(5):
        async with control.serve(runner, about={"session": "s1"}):
            runner.begin("a")
            runner.begin("b", "other")
            runner.settle("a")
            (found,) = await run_sync(control.runners)
    assert found.answer is not None
    assert (found.answer.pid, found.answer.about) == (os.getpid(), {"session": "s1"})
    assert [(call.run_id, call.call_id, call.name, call.standing) for call in found.answer.calls] == [
        ("b", "c-b", "other", "running")
    ]
    assert runner.observers == []


@pytest.mark.usefixtures("others")
async def test_cancel_stops_the_one_call_waits_and_tells_its_result() -> None:
    runner = FakeRunner()
    with anyio.fail_after(5):
        async with control.serve(runner) as path:
            runner.begin("a")
            runner.begin("b")
            told = await run_sync(lambda: list(control.request_cancel(path, "b")))
    assert runner.stopped == [("b", "toolrunner cancel")]
    assert told[0] == {"asked": ["b"], "number": 1}
    assert (told[1]["result"]["outcome"], told[1]["result"]["run_id"]) == ("aborted", "b")


@pytest.mark.usefixtures("others")
async def test_cancel_of_all_goes_the_programs_own_way() -> None:
    runner = FakeRunner()
    reasons: list[str] = []

    def stop_all(text: str) -> None:
        reasons.append(text)
        for run_id in ("b", "a"):
            runner.settle(run_id)

    with anyio.fail_after(5):
        async with control.serve(runner, stop_all=stop_all) as path:
            runner.begin("a")
            runner.begin("b")
            told = await run_sync(lambda: list(control.request_cancel(path, None)))
    assert reasons == ["toolrunner cancel"]
    assert runner.stopped == []
    assert told[0]["asked"] == ["a", "b"]
    assert [one["result"]["run_id"] for one in told[1:]] == ["b", "a"]


@pytest.mark.usefixtures("others")
async def test_a_result_that_is_there_is_told_although_the_program_leaves_in_the_same_moment() -> None:
    runner = FakeRunner()
    runner.settles_at_once = False
    told: list[dict[str, Any]] = []

    async def ask(path: Path) -> None:
        told.extend(await run_sync(lambda: list(control.request_cancel(path, "a"))))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks, control.serve(runner) as path:
            runner.begin("a")
            tasks.start_soon(ask, path)
            await runner.was_stopped.wait()
            await anyio.wait_all_tasks_blocked()
            runner.settle("a")  # and out, without a pause
    assert told[-1]["result"]["outcome"] == "aborted"


@pytest.mark.usefixtures("others")
async def test_cancel_of_a_call_that_is_not_there_asks_nobody() -> None:
    runner = FakeRunner()
    with anyio.fail_after(5):
        async with control.serve(runner) as path:
            runner.begin("a")
            assert await run_sync(lambda: list(control.request_cancel(path, "b"))) == [{"asked": [], "number": 0}]
    assert runner.stopped == []


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize(
    "question",
    [
        b"{}\n", b"no json\n", b"[]\n", b'{"verb": "approve"}\n', b'{"verb": "cancel"}\n', b'{"verb": "cancel", "run": 3}\n',
        b"[" * 1000 + b"\n", b"x" * (lines.LONGEST_QUESTION + 1), b"\xff\n",
    ],
)  # fmt: skip
async def test_what_is_no_question_is_refused_and_stops_nothing(question: bytes) -> None:
    runner = FakeRunner()
    with anyio.fail_after(5):
        async with control.serve(runner) as path:
            runner.begin("a")
            (answer,) = await asked(path, question)
    assert set(answer) == {"refused"}
    assert runner.stopped == []


async def test_whoever_runs_inside_the_program_is_refused() -> None:
    runner = FakeRunner()
    script = "import sys; from toolrunner import control; from pathlib import Path\n"
    script += "try: list(control.request_cancel(Path(sys.argv[1]), None))\nexcept control.NotReached as error: print(error)"
    with anyio.fail_after(20):
        async with control.serve(runner) as path:
            runner.begin("a")
            for words in ([], ["setsid", "-w"], ["sh", "-c", '"$@" & wait', "sh"]):
                done = await anyio.run_process([*words, sys.executable, "-c", script, str(path)], check=False)
                assert b"a tool does not stop its siblings" in done.stdout, done
            assert "siblings" in (await asked(path, b'{"verb": "list"}\n'))[0]["refused"]
    assert runner.stopped == []


async def test_a_connection_whose_maker_is_gone_is_refused() -> None:
    """What a tool would do that hands its connection to a process of which nothing is known."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours, theirs:
        assert peers_module.why_refused(ours) is not None  # we are inside ourselves
    with closing(place.listen(runtime(), "x.sock", 1)) as listener:
        # By its name alone: a whole path may be longer than a socket's address can be (unix(7)).
        script = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('x.sock')"
        subprocess.run([sys.executable, "-c", script], cwd=runtime(), check=True, timeout=20)
        connection, _ = listener.accept()
        with connection:
            assert peers_module.why_refused(connection) == "the process that connected is gone, or cannot be seen whole from here"


def test_a_parent_that_cannot_be_seen_is_not_looked_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where /proc is mounted with hidepid (proc(5)), and the parent is another user's."""
    looks = 0

    def unseen(_: int) -> int:
        nonlocal looks
        looks += 1
        assert looks < 10_000
        return 0

    monkeypatch.setattr(peers_module, "starttime_of", unseen)
    assert peers_module.ancestry(os.getpid()) is None


def runtime() -> Path:
    return place.folder(make=True)


@pytest.mark.usefixtures("others")
async def test_silent_clients_hold_up_neither_others_nor_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "QUESTION_BOUND", 600)
    runner = FakeRunner()
    with anyio.fail_after(5):
        async with control.serve(runner) as path:
            runner.begin("a")
            silent = [place.connect(path, 5) for _ in range(lines.MOST_CLIENTS - 1)]
            assert (await asked(path, b'{"verb": ', b'"list"}\n'))[0]["calls"]
            more = place.connect(path, 5)
            # All places are taken: one more is closed at once, and nobody waits for it.
            # (It says nothing: a word, even an empty one, to a socket that is closed by then breaks the pipe.)
            assert await asked(path) == []
        for one in (*silent, more):
            one.close()


@pytest.mark.usefixtures("others")
async def test_a_silent_client_is_sent_away_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "QUESTION_BOUND", 0.05)
    with anyio.fail_after(5):
        async with control.serve(FakeRunner()) as path:
            assert await asked(path) == []


@pytest.mark.usefixtures("others")
async def test_one_that_asks_to_cancel_and_leaves_has_asked_all_the_same() -> None:
    runner = FakeRunner()
    runner.settles_at_once = False
    with anyio.fail_after(5):
        async with control.serve(runner) as path:
            runner.begin("a")
            assert await asked(path, b'{"verb": "cancel", "run": "a"}\n') == [{"asked": ["a"], "number": 1}]
            await anyio.wait_all_tasks_blocked()
            runner.settle("a")
    assert runner.stopped == [("a", "toolrunner cancel")]


@pytest.mark.usefixtures("others")
async def test_names_of_any_size_give_an_answer_within_its_bound() -> None:
    runner = FakeRunner()
    with anyio.fail_after(20):
        async with control.serve(runner) as path:
            for number in range(lines.MOST_CALLS + 5):
                runner.begin(str(number), "\u202e" * 10_000 if number < 3 else "n" * 100)
            (answer,) = await asked(path, b'{"verb": "list"}\n')
            (found,) = await run_sync(control.runners)
    assert len(answer["calls"]) == lines.MOST_CALLS
    assert answer["more_calls"] == 5
    assert len(answer["calls"][0]["name"]) <= lines.LONGEST_TEXT
    assert found.answer is not None


async def test_what_the_block_raises_comes_out_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        async with control.serve(FakeRunner()):
            raise ZeroDivisionError
    with anyio.CancelScope() as scope:
        async with control.serve(FakeRunner()):
            scope.cancel()
            await anyio.sleep(5)
    assert scope.cancelled_caught


# A real one.


@pytest.mark.usefixtures("others")
async def test_one_call_of_a_batch_is_stopped_its_siblings_and_a_queued_one_are_not() -> None:
    started: dict[str, anyio.Event] = {"one": anyio.Event(), "two": anyio.Event()}
    release = anyio.Event()

    @tool(parallel_safe=True)
    async def work(ctx: ToolContext[None], name: str) -> str:
        """Wait."""
        started[name].set()
        await release.wait()
        return name

    @tool
    async def last() -> str:
        """Run alone, after them."""
        return "last"

    with anyio.fail_after(10):
        async with Runner([work, last]) as runner, control.serve(runner) as path:
            calls = [ToolCall("work", {"name": "one"}), ToolCall("work", {"name": "two"}), ToolCall("last"), ToolCall("last")]
            batch = runner.start_batch(calls)
            for one in started.values():
                await one.wait()
            first, second, third, fourth = batch.run_ids
            assert (await run_sync(lambda: list(control.request_cancel(path, second))))[1]["result"]["outcome"] == "aborted"
            (found,) = await run_sync(control.runners)
            assert found.answer is not None
            assert [(call.run_id, call.standing) for call in found.answer.calls] == [
                (first, "running"), (second, "ended"), (third, "accepted"), (fourth, "accepted"),
            ]  # fmt: skip
            # One that waits for its turn settles when that comes.
            assert runner.take_stops()(third, "toolrunner cancel")
            assert not runner.take_stops()("no such call", "toolrunner cancel")
            release.set()
            results = await batch
    assert [one.outcome for one in results] == ["succeeded", "aborted", "aborted", "succeeded"]
    assert results[1].stop is not None
    assert (results[1].stop.source, results[1].stop.reason) == ("caller", "toolrunner cancel")


# The folder.


async def test_the_folder_and_the_socket_are_ours_alone_and_gone_afterwards(runtime_folder: Path) -> None:
    async with control.serve(FakeRunner()) as path:
        assert path.parent == runtime_folder
        assert runtime_folder.stat().st_mode & 0o777 == 0o700
    assert list(runtime_folder.iterdir()) == []


def test_one_that_answers_a_byte_now_and_then_does_not_hold_up_a_look(
    runtime_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "ASK_BOUND", 0.2)
    runtime_folder.mkdir(mode=0o700)
    over = threading.Event()

    def drip(listener: socket.socket) -> None:
        listener.settimeout(5)
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            for _ in range(50):  # for hangs: 2.5 s
                connection.sendall(b" ")
                if over.wait(0.05):
                    return
            connection.sendall(b'{"refused": "late"}\n')

    with closing(place.listen(runtime_folder, "1-drip.sock", 1)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        (found,) = control.runners()
        over.set()
        thread.join()
    assert found.problem.endswith("not within 0.2 s")


def test_a_dead_programs_socket_is_removed_by_the_next_look(runtime_folder: Path) -> None:
    runtime_folder.mkdir(mode=0o700)
    place.listen(runtime_folder, "1-dead.sock", 1).close()
    assert control.runners() == []
    assert list(runtime_folder.iterdir()) == []


async def test_a_dead_programs_socket_is_removed_by_the_next_program(runtime_folder: Path) -> None:
    runtime_folder.mkdir(mode=0o700)
    place.listen(runtime_folder, "1-dead.sock", 1).close()
    async with control.serve(FakeRunner()) as path:
        assert list(runtime_folder.iterdir()) == [path]


@pytest.mark.parametrize("make", [True, False])
def test_a_folder_that_others_may_enter_is_not_used(runtime_folder: Path, make: bool) -> None:
    runtime_folder.mkdir()
    runtime_folder.chmod(0o755)
    with pytest.raises(control.NoPlace, match="others may enter it"):
        place.folder(make=make)
    runtime_folder.rmdir()
    runtime_folder.symlink_to(runtime_folder.parent)
    with pytest.raises(control.NoPlace, match="it is no folder"):
        place.folder(make=make)


def test_a_folder_of_somebody_else_is_not_used(monkeypatch: pytest.MonkeyPatch, runtime_folder: Path) -> None:
    runtime_folder.mkdir(mode=0o700)
    uid = os.geteuid()
    monkeypatch.setattr(place, "_wanted", lambda: runtime_folder)
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    with pytest.raises(control.NoPlace, match=f"it belongs to user {uid}"):
        place.folder(make=True)


async def test_a_folder_with_a_long_name_serves_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("d" * 200)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    with anyio.fail_after(5):
        async with control.serve(FakeRunner()) as path:
            assert "refused" in (await asked(path, b'{"verb": "list"}\n'))[0]


def test_without_a_runtime_folder_it_is_a_fixed_one_of_this_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert place._wanted() == Path(f"/tmp/toolrunner-{os.geteuid()}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative")
    assert place._wanted() == Path(f"/tmp/toolrunner-{os.geteuid()}")
