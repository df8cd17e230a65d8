"""The tools `job_*`: processes that outlive the call that starts them, over the runner's own job table. No state here."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from toolrunner.errors import ToolError
from toolrunner.facts import Text
from toolrunner.process import Job, JobNotStarted, JobState, SpawnRefused, Stdin, UnknownJob
from toolrunner.tools.builtin.attempt import Attempt
from toolrunner.tools.builtin.roots import PathText
from toolrunner.tools.builtin.space import Space
from toolrunner.tools.builtin.write_file import encoded
from toolrunner.tools.command import Command
from toolrunner.tools.context import ToolContext
from toolrunner.tools.decorator import tool
from toolrunner.tools.reply import Reply
from toolrunner.tools.tool import Tool

LONGEST_WAIT = 600.0
"""Seconds that one `job_wait` takes at most: a model that waits longer has nothing else to do and cannot be asked anything."""

LONGEST_GRACE = 60.0
"""Seconds that a model may give a job between the request to end and the kill."""

LONGEST_NAME = 80
"""Characters of a command line by which a job is listed: enough to know it again."""

JobId = Annotated[str, Field(min_length=1, max_length=100)]


def job_tools(space: Space) -> Sequence[Tool[..., Any]]:
    """All of them."""
    return (_job_start(space), _job_read(space), job_write, job_wait, job_stop, job_list)


def _job_start(space: Space) -> Tool[..., Any]:
    @tool(destructive=True, open_world=True, parallel_safe=False)
    async def job_start(  # noqa: D417 - the docstring is the model's, which never sees ctx
        ctx: ToolContext[Any],
        command: Annotated[str, Field(min_length=1)],
        cwd: PathText = ".",
        timeout: Annotated[float | None, Field(gt=0, allow_inf_nan=False)] = None,
    ) -> Reply:
        """Start a command line with /bin/sh that runs on after this call, a server say, and return its job id.

        Its output is kept for job_read; job_write writes to its standard input. It is ended by job_stop, and with the session.

        Args:
            command: The command line.
            cwd: Folder to run it in.
            timeout: Seconds after which it is ended. Default: never.
        """
        wanted = Command(("/bin/sh", "-c", command), cwd=space.roots.absolute(cwd), timeout=timeout, stdin=Stdin.OPEN)
        attempt = Attempt(ctx, "job_start", command)
        return await attempt.wait(lambda: _start(attempt, wanted, command))

    return job_start


async def _start(attempt: Attempt, wanted: Command, command: str) -> Reply:
    async with attempt.effect("job_start", command) as effect:
        try:
            job = await attempt.ctx.jobs.start(wanted, _name(command))
        except (SpawnRefused, JobNotStarted) as error:
            effect.not_applied()
            raise ToolError(f"the job was not started: {error}", kind="not_started") from error
        effect.receipt = job.id
    return Reply(_facts(job), [Text(f"Started {job.id} (pid {job.pid}). Read its output with job_read, end it with job_stop.")])


def _name(command: str) -> str:
    """A command line as one short line."""
    line = " ".join(command.split())
    return line if len(line) <= LONGEST_NAME else line[: LONGEST_NAME - 4] + " ..."


def _job_read(space: Space) -> Tool[..., Any]:
    @tool(read_only=True, open_world=False)
    async def job_read(  # noqa: D417 - the docstring is the model's, which never sees ctx
        ctx: ToolContext[Any],
        job_id: JobId,
        offset: Annotated[int, Field(ge=0)] = 0,
        stream: Literal["stdout", "stderr"] = "stdout",
    ) -> Reply:
        """Read what a job has printed so far, and its state. Never waits.

        Args:
            job_id: The job.
            offset: Byte to read on from: 0, or the next_offset of the last reading.
            stream: Which output.
        """
        job = _job(ctx, job_id)
        piece = job.read(offset, stream, space.shown)
        notes = [_state(job), f"next_offset={piece.next_offset}"]
        if piece.skipped:
            notes.insert(1, f"{piece.skipped} bytes before this are kept no more")
        if not piece.eof and job.read(piece.next_offset, stream, 1).text:
            notes.append("more has been printed; read on from there")
        value = {**_facts(job), "text": piece.text, "next_offset": piece.next_offset, "skipped": piece.skipped, "eof": piece.eof}
        return Reply(value, [Text(text) for text in (piece.text, f"[{'; '.join(notes)}]") if text])

    return job_read


@tool(destructive=True, open_world=True, parallel_safe=False)
async def job_write(  # noqa: D417 - the docstring is the model's, which never sees ctx
    ctx: ToolContext[Any],
    job_id: JobId,
    text: str = "",
    close: bool = False,  # noqa: FBT002 - arguments are given by name
) -> Reply:
    """Write to the standard input of a job. A program that reads lines needs a line break at the end.

    Args:
        job_id: The job.
        text: What to write.
        close: Whether to close its standard input afterwards.
    """
    attempt = Attempt(ctx, "job_input", job_id)
    return await attempt.wait(lambda: _write(attempt, job_id, text, close=close))


async def _write(attempt: Attempt, job_id: str, text: str, *, close: bool) -> Reply:
    job = _job(attempt.ctx, job_id)
    if not text and not close:
        raise ToolError("text is empty and close is false, so there is nothing to do", kind="no_change")
    data = encoded(text)
    async with attempt.effect("job_input", job_id) as effect:
        taken = await job.write(data) if data else 0
        if taken < len(data):
            if not taken:  # else nobody knows what became of the part that was
                effect.not_applied()
            part = f"; {taken} of {len(data)} bytes were written" if taken else ""
            raise ToolError(f"{job_id} reads no input any more ({_state(job)}){part}", kind="no_reader")
        if close:
            job.close_stdin()
        effect.receipt = json.dumps({"bytes": len(data), "closed": close})
    did = [f"Wrote {len(data)} bytes to {job_id}."] if data else []
    return Reply(_facts(job), [Text(" ".join([*did, *(["Closed its standard input."] if close else [])]))])


@tool(read_only=True, open_world=False)
async def job_wait(  # noqa: D417 - the docstring is the model's, which never sees ctx
    ctx: ToolContext[Any], job_id: JobId, seconds: Annotated[float, Field(ge=0, le=LONGEST_WAIT)] = 30.0
) -> Reply:
    """Wait until a job has ended, or until the time is up; the job runs on then.

    Args:
        job_id: The job.
        seconds: How long to wait at most.
    """
    job = _job(ctx, job_id)
    await job.wait(seconds)
    return Reply(_facts(job), [Text(f"{job_id}: {_state(job)}.")])


@tool(destructive=True, idempotent=True, open_world=False, parallel_safe=False)
async def job_stop(  # noqa: D417 - the docstring is the model's, which never sees ctx
    ctx: ToolContext[Any], job_id: JobId, grace: Annotated[float | None, Field(ge=0, le=LONGEST_GRACE)] = None
) -> Reply:
    """End a job with everything it started: it is asked to (SIGTERM), and killed after the grace. Returns when it is over.

    Args:
        job_id: The job.
        grace: Seconds between the two. Default: the runner's own.
    """
    attempt = Attempt(ctx, "job_stop", job_id)
    return await attempt.wait(lambda: _stop(attempt, job_id, grace))


async def _stop(attempt: Attempt, job_id: str, grace: float | None) -> Reply:
    job = _job(attempt.ctx, job_id)
    async with attempt.effect("job_stop", job_id) as effect:
        if job.end is not None:
            effect.not_applied()
        else:
            await job.stop(grace)
            effect.receipt = _state(job)
    return Reply(_facts(job), [Text(f"{job_id}: {_state(job)}.")])


@tool(read_only=True, open_world=False)
async def job_list(ctx: ToolContext[Any]) -> Reply:
    """List the jobs that are running, oldest first."""
    jobs = ctx.jobs.list()
    lines = [f"{job.id}: {job.origin.what}, pid {job.pid}, since {job.started_at:%Y-%m-%d %H:%M:%S} UTC" for job in jobs]
    every: list[JsonValue] = [_facts(job) for job in jobs]
    return Reply(every, [Text("\n".join(lines) or "No jobs are running.")])


def _job(ctx: ToolContext[Any], job_id: str) -> Job:
    try:
        return ctx.jobs.get(job_id)
    except UnknownJob as error:
        living = ", ".join(job.id for job in ctx.jobs.list()) or "none"
        raise ToolError(f"{error}; running: {living}", kind="unknown_job") from error


def _facts(job: Job) -> dict[str, JsonValue]:
    end = job.end
    return {
        "job_id": job.id,
        "state": str(job.state),
        "pid": job.pid,
        "exit_code": None if end is None or job.first_seen else end.facts.exit_code,
        "signal": None if end is None or job.first_seen else end.facts.signal,
    }


def _state(job: Job) -> str:
    if job.state is JobState.RUNNING:
        return "running"
    facts = _facts(job)
    how = {"exit_code": "exit status", "signal": "ended by"}
    details = [f"{words} {facts[key]}" for key, words in how.items() if facts[key] is not None]
    refused = job.end.spawn_error.message if job.end is not None and job.end.spawn_error is not None else None
    return ", ".join([str(job.state), *details, *([refused] if refused else [])])
