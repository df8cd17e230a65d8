"""Jobs of a runner: started, read, written, waited for and stopped; kept from a command; listed; ended when the runner closes."""

import anyio
import pytest
from liveness import survivors, unique_duration
from process.jobs import leave, of_jobs, seen, until
from process.shapes import BOUND, alive, sh

from toolrunner import AbortController, Decision, Runner, ToolContext, tool
from toolrunner.facts import StillRunningKind
from toolrunner.pipeline.hooks import ask
from toolrunner.process import JobState, LaunchPlan, SpawnRefused, Stdin, UnknownJob
from toolrunner.process.joblog import JobLog
from toolrunner.testing import FakeCommand, FakeSupervisor
from toolrunner.tools import Command, command_tool

pytestmark = pytest.mark.anyio


@pytest.mark.case("P9", "P73")
async def test_what_a_command_leaves_is_a_job_with_a_handle_its_pids_and_a_stop() -> None:
    duration = unique_duration()
    async with Runner([leave]) as runner:
        records = seen(runner)
        with anyio.fail_after(BOUND):
            result = await runner.run("leave", {"script": f"sleep {duration} >/dev/null 2>&1 & echo done"})
            assert (result.outcome, result.value["exit_code"], result.value["stdout"]) == ("succeeded", 0, "done\n")  # type: ignore[index,call-overload]
            assert result.process is not None
            (kept,) = result.process.kept
            assert result.still_running == (kept,)
            assert (kept.kind, kept.pid) == (StillRunningKind.JOB, runner.jobs.list()[0].pid)
            (job,) = runner.jobs.list()
            assert job.id in kept.what
            assert "kill_tree" not in result.enforced
            assert job.origin.run_id == result.run_id
            assert job.pids == (kept.pid,)
            assert all(map(alive, job.pids))
            assert len(await survivors(duration)) == 1
            end = await job.stop()
            assert (job.state, end.still_running) == (JobState.STOPPED, ())
            assert runner.jobs.list() == ()
            assert runner.jobs.get(job.id) is job
        assert await survivors(duration) == []
        assert of_jobs(records) == ["job/started", "job/ended"]
        types = [record.type for record in records]
        assert types.index("job/started") < types.index("call/ended") < types.index("job/ended")


@pytest.mark.case("P73")
async def test_the_output_of_a_kept_job_goes_on_where_its_call_ended() -> None:
    async with Runner([leave]) as runner:
        with anyio.fail_after(BOUND):
            result = await runner.run("leave", {"script": "(while :; do echo tick; sleep .05; done) & echo done; sleep .2"})
            assert result.started
            (job,) = runner.jobs.list()
            first = job.read()
            assert "done" in first.text
            assert not first.eof
            await until(lambda: "tick" in job.read(first.next_offset).text)
            await job.stop()
            assert job.read(job.read().next_offset).eof


async def test_a_kept_job_ends_when_its_runner_closes() -> None:
    duration = unique_duration()
    with anyio.fail_after(BOUND):
        async with Runner([leave]) as runner:
            records = seen(runner)
            await runner.run("leave", {"script": f"(trap '' TERM; setsid sleep {duration}) >/dev/null 2>&1 & echo done"})
            (job,) = runner.jobs.list()
    assert job.state is JobState.STOPPED
    assert of_jobs(records) == ["job/started", "job/ended"]
    assert await survivors(duration) == []


@pytest.mark.case("A16")
async def test_a_cancel_after_the_approval_leaves_no_job() -> None:
    duration = unique_duration()
    stop = AbortController()

    class Allows:
        async def decide(self, request: object, signal: object) -> Decision:
            stop.abort("changed my mind")  # the grant is given, and nobody wants it any more
            return Decision.allow()

    async with Runner([leave], approver=Allows()) as runner:
        records = seen(runner)

        async def asks(call: object, signal: object) -> object:
            return ask("sure?")

        runner.pre_execute(asks)  # type: ignore[arg-type]
        with anyio.fail_after(BOUND):
            result = await runner.run("leave", {"script": f"sleep {duration} >/dev/null 2>&1 & echo done"}, signal=stop.signal)
        assert (result.outcome, result.started, result.process) == ("aborted", False, None)
        assert runner.jobs.list() == ()
    assert of_jobs(records) == []
    assert await survivors(duration) == []


@pytest.mark.case("A16")
@pytest.mark.parametrize("when", ["while it runs", "after the hand-over"])
async def test_a_call_that_is_stopped_after_its_approval_publishes_no_job(when: str) -> None:
    duration = unique_duration()
    stop = AbortController()
    async with Runner([leave]) as runner:

        async def late(call: object, result: object, signal: object) -> None:
            stop.abort("too late for the body, in time for what it left")

        if when == "after the hand-over":
            runner.post_execute(late)
            script = f"sleep {duration} >/dev/null 2>&1 & echo part"
        else:
            runner.on_record(lambda record: record.type == "output" and stop.abort("now"))
            script = f"sleep {duration} >/dev/null 2>&1 & echo part; wait"
        with anyio.fail_after(BOUND):
            result = await runner.run("leave", {"script": script}, signal=stop.signal)
        assert result.outcome == "aborted"
        assert result.process is not None
        assert result.process.kept == ()
        assert result.still_running == ()
        assert runner.jobs.list() == ()
    assert await survivors(duration) == []


async def test_a_job_is_started_read_written_waited_for_and_ends_by_itself() -> None:
    async with Runner() as runner:
        records = seen(runner)
        with anyio.fail_after(BOUND):
            job = await runner.jobs.start(
                LaunchPlan(sh("echo err >&2; while read line; do echo got $line; done; exit 3"), stdin=Stdin.OPEN)
            )
            assert runner.jobs.list() == (job,)
            assert job.state is JobState.RUNNING
            assert await job.wait(0.01) is JobState.RUNNING
            assert await job.write("one\n")
            await until(lambda: job.read().text == "got one\n")
            assert await job.write(b"two\n")
            job.close_stdin()
            assert await job.wait() is JobState.EXITED
            assert job.read(8).text == "got two\n"
            assert (job.read(16).eof, job.read(0, "stderr").text) == (True, "err\n")
            assert job.end is not None
            assert job.end.facts.exit_code == 3
            assert not await job.write("three\n")
            assert runner.jobs.list() == ()
        assert of_jobs(records) == ["job/started", "job/ended"]


@pytest.mark.case("A18")
async def test_one_job_too_many_is_refused_before_anything_of_it_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolrunner.process.jobs.MOST_JOBS", 1)
    fake = FakeSupervisor(FakeCommand(exit_code=None))
    async with Runner([leave], supervisor=fake.made) as runner:
        with anyio.fail_after(BOUND):
            await runner.jobs.start(LaunchPlan(("a",)))
            with pytest.raises(SpawnRefused, match="1 jobs are running; stop one first"):
                await runner.jobs.start(LaunchPlan(("b",)))
            result = await runner.run("leave", {"script": "true"})
            assert (result.outcome, result.code, result.started) == ("rejected", "SPAWN_REFUSED", False)
    assert [process.plan.argv for process in fake.processes] == [("a",)]


async def test_a_command_that_does_not_exist_makes_a_job_that_was_refused() -> None:
    async with Runner() as runner:
        with anyio.fail_after(BOUND):
            job = await runner.jobs.start(LaunchPlan(("no-such-command-here",)))
            assert await job.wait() is JobState.REFUSED
            assert job.end is not None
            assert job.end.spawn_error is not None
            assert job.end.spawn_error.kind == "not_found"


async def test_jobs_of_a_closed_runner_and_unknown_ones_are_misuse() -> None:
    async with Runner() as runner:
        with pytest.raises(UnknownJob, match="job-1"):
            runner.jobs.get("job-1")
    with pytest.raises(SpawnRefused, match="its runner is closing"):
        await runner.jobs.start(LaunchPlan(("true",)))


async def test_changes_while_a_job_runs_are_not_taken_for_a_calls_own(tmp_path: object) -> None:
    @command_tool(destructive=True)
    def write() -> Command:
        """Write a file."""
        return Command(sh(f"echo x > {tmp_path}/file"), watch=[str(tmp_path)])

    async with Runner([write, leave]) as runner:
        with anyio.fail_after(BOUND):
            alone = await runner.run("write")
            assert [change.attribution for change in alone.effects.changes or ()] == ["exclusive"]
            await runner.run("leave", {"script": "sleep 600 >/dev/null 2>&1 &"})
            beside = await runner.run("write")
            assert [change.attribution for change in beside.effects.changes or ()] == ["shared"]


async def test_a_job_that_only_reads_takes_nothing_from_its_neighbours(tmp_path: object) -> None:
    @command_tool(destructive=True)
    def write() -> Command:
        """Write a file."""
        return Command(sh(f"echo x > {tmp_path}/file"), watch=[str(tmp_path)])

    @tool(read_only=True)
    async def look(ctx: ToolContext[None]) -> str:
        """Look on beside a writer."""
        job = await ctx.jobs.start(Command(("sleep", "600")), read_only=True)
        changes = (await ctx.run("write", {})).effects.changes or ()
        await job.stop(0)
        return " ".join(change.attribution for change in changes)

    async with Runner([write, look]) as runner:
        with anyio.fail_after(BOUND):
            assert (await runner.run("look")).value == "exclusive"


def test_a_log_keeps_the_newest_and_cuts_no_character() -> None:
    log = JobLog(limit=8)
    log.add(b"0123456789" * 2)
    assert (log.read(0, 100).skipped, log.read(0, 100).text) == (12, "23456789")
    log = JobLog()
    log.add("ab€".encode()[:-1])
    assert log.read(0, 100).text == "ab"
    assert log.read(0, 100).next_offset == 2
    log.add("€".encode()[-1:])
    assert log.read(2, 100).text == "€"
    assert not log.read(2, 100).eof
    log.ended = True
    assert log.read(5, 100).eof
    log.add(b"\xe2")
    assert log.read(5, 100).text == "\N{REPLACEMENT CHARACTER}"
