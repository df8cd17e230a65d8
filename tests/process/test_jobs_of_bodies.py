"""Jobs that a body starts: named by its result, ended with a body that is stopped, refused before anything is spawned."""

import anyio
import pytest
from liveness import survivors, unique_duration
from process.jobs import of_jobs, seen, until
from process.shapes import BOUND

from toolrunner import AbortController, Runner, ToolCall, ToolContext, tool
from toolrunner.facts import StillRunningKind
from toolrunner.process import JobNotStarted, SpawnRefused
from toolrunner.tools import AsyncOnly, Command

pytestmark = pytest.mark.anyio


async def test_a_body_starts_a_job_that_its_result_names() -> None:
    @tool
    async def serve(ctx: ToolContext[None]) -> str:
        job = await ctx.jobs.start(Command(("sleep", "600")), read_only=True)
        assert ctx.jobs.list() == (job,)
        return job.id

    async with Runner([serve]) as runner:
        with anyio.fail_after(BOUND):
            result = await runner.run("serve")
            assert result.outcome == "succeeded"
            assert result.still_running is not None
            (listed,) = result.still_running
            job = runner.jobs.get(str(result.value))
            assert (listed.kind, listed.pid) == (StillRunningKind.JOB, job.pid)
            assert job.id in listed.what
            assert "still running" in result.summary()
            await job.stop()


@pytest.mark.case("A16")
async def test_a_body_that_is_stopped_takes_its_jobs_with_it_and_starts_no_more() -> None:
    duration = unique_duration()
    started = anyio.Event()
    refused: list[str] = []

    @tool
    async def serve(ctx: ToolContext[None]) -> None:
        await ctx.jobs.start(Command(("sleep", duration)))
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            with ctx.cleanup(), anyio.CancelScope(shield=True):
                try:
                    await ctx.jobs.start(Command(("sleep", duration)))
                except JobNotStarted as error:
                    refused.append(str(error))

    stop = AbortController()
    async with Runner([serve]) as runner, anyio.create_task_group() as tasks:
        with anyio.fail_after(BOUND):

            async def call() -> None:
                result = await runner.run(ToolCall("serve", {}), signal=stop.signal)
                assert (result.outcome, result.still_running) == ("aborted", ())

            tasks.start_soon(call)
            await started.wait()
            stop.abort("stop")
            await until(lambda: bool(refused))
    assert refused == ["the job was not started: its call is being stopped (stop)"]
    assert await survivors(duration) == []


@pytest.mark.case("A18")
@pytest.mark.parametrize(
    "command", [Command(("true",), cwd="/nowhere-at-all"), Command(("true", "x" * 200_000))], ids=["cwd", "too long"]
)
async def test_a_job_that_fails_its_preflight_spawns_nothing(command: Command) -> None:
    @tool
    async def serve(ctx: ToolContext[None]) -> None:
        with pytest.raises(SpawnRefused):
            await ctx.jobs.start(command)
        assert ctx.jobs.list() == ()

    async with Runner([serve]) as runner:
        records = seen(runner)
        with anyio.fail_after(BOUND):
            result = await runner.run("serve")
        assert result.outcome == "succeeded"
        assert result.still_running == ()
        assert of_jobs(records) == []


async def test_a_sync_body_has_no_jobs() -> None:
    @tool
    def serve(ctx: ToolContext[None]) -> None:
        with pytest.raises(AsyncOnly, match=r"ctx\.jobs"):
            ctx.jobs.list()

    async with Runner([serve]) as runner:
        with anyio.fail_after(BOUND):
            assert (await runner.run("serve")).outcome == "succeeded"
