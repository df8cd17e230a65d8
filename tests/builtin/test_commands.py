"""shell and the tools of jobs, and the set as a whole."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from builtin.workplace import BOUND, words, workplace

from toolrunner import AbortController, Runner, ToolResult
from toolrunner.errors import ConfigError
from toolrunner.records import JobStarted, Record
from toolrunner.tools.builtin import builtins

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


def job_id(result: ToolResult) -> str:
    assert isinstance(result.value, dict), result.error
    return str(result.value["job_id"])


async def test_a_command_runs_in_the_first_root_and_its_changes_are_seen(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    async with workplace(tmp_path) as place:
        result = await place.use("shell", command="pwd; echo hi > made")
        assert words(result) == f"{tmp_path}\n"
        assert result.files_changed == (f"{tmp_path}/made",)
        inner = await place.use("shell", command="pwd; echo hi > ../beside", cwd="sub")
        assert words(inner) == f"{tmp_path}/sub\n"
        assert inner.files_changed == ()


async def test_nobody_looks_where_nobody_should(tmp_path: Path) -> None:
    async with workplace(tmp_path, watch=False) as place:
        assert (await place.use("shell", command="echo hi > made")).files_changed is None


async def test_long_output_is_cut_and_the_file_with_all_of_it_can_be_read(tmp_path: Path) -> None:
    work, spill = tmp_path / "work", tmp_path / "spill"
    work.mkdir()
    async with Runner(builtins(work, readable=spill, shown=2_000), spill_dir=spill) as runner:
        with anyio.fail_after(BOUND):
            result = await runner.run("shell", {"command": "seq 10000"})
            assert result.process is not None
            (file,) = result.process.spill
            text = "\n".join(part.text for part in result.content_for_model() if part.type == "text")
            assert file in text
            assert "left out" in text
            assert len(text) < 3_000
            rest = await runner.run("read_file", {"path": file, "offset": 5_000, "limit": 2})
            assert words(rest).startswith("5000\n5001\n")
            assert (await runner.run("write_file", {"path": file, "content": "x"})).outcome == "failed"


async def test_a_job_is_started_written_to_read_waited_for_and_listed(tmp_path: Path) -> None:
    async with workplace(tmp_path) as place:
        started = await place.use("job_start", command='while read line; do echo "got $line"; done; echo bad >&2; exit 3')
        job = job_id(started)
        assert [(one.kind, one.stage, one.receipt) for one in started.effects.records] == [("job_start", "applied", job)]
        assert "job-" in words(await place.use("job_list"))
        assert 'while read line; do echo "got $line"; done' in words(await place.use("job_list"))
        wrote = await place.use("job_write", job_id=job, text="héllo\n")
        assert words(wrote) == f"Wrote 7 bytes to {job}."
        assert words(await place.use("job_write", job_id=job, close=True)) == "Closed its standard input."
        assert words(await place.use("job_wait", job_id=job)) == f"{job}: exited, exit status 3."
        read = await place.use("job_read", job_id=job)
        assert words(read) == "got héllo\n\n[exited, exit status 3; next_offset=11]"
        assert words(await place.use("job_read", job_id=job, offset=11)) == "[exited, exit status 3; next_offset=11]"
        assert words(await place.use("job_read", job_id=job, stream="stderr")).startswith("bad\n")
        assert await place.refusal("job_write", job_id=job, text="x") == (
            f"no_reader: {job} reads no input any more (exited, exit status 3)"
        )
        again = await place.use("job_stop", job_id=job)
        assert (words(again), again.effects.state) == (f"{job}: exited, exit status 3.", "none")
        assert words(await place.use("job_list")) == "No jobs are running."


async def test_a_job_outlives_its_call_and_is_stopped_with_what_it_started(tmp_path: Path) -> None:
    async with workplace(tmp_path) as place:
        started = await place.use("job_start", command="sleep 1000 & sleep 1000")
        job = job_id(started)
        assert started.still_running is not None
        assert [one.kind for one in started.still_running] == ["job"]
        assert words(await place.use("job_wait", job_id=job, seconds=0)) == f"{job}: running."
        stopped = await place.use("job_stop", job_id=job, grace=5)
        assert words(stopped) == f"{job}: stopped, ended by SIGTERM."
        assert stopped.effects.state == "completed"


async def test_a_job_that_is_unknown_is_told_with_those_that_are_there(tmp_path: Path) -> None:
    async with workplace(tmp_path) as place:
        job = job_id(await place.use("job_start", command="sleep 1000"))
        for name, arguments in (("job_read", {}), ("job_write", {"text": "x"}), ("job_wait", {}), ("job_stop", {})):
            message = await place.refusal(name, job_id="job-x", **arguments)
            assert message.startswith("unknown_job: no job 'job-x' is known here")
            assert message.endswith(f"running: {job}")
        assert (await place.refusal("job_write", job_id=job)).startswith("no_change")


async def test_an_input_that_was_taken_in_part_is_not_told_as_one_that_was_not(tmp_path: Path) -> None:
    async with workplace(tmp_path) as place:
        job = job_id(await place.use("job_start", command="head -c 1 >/dev/null; exec <&-; exec sleep 1000"))
        result = await place.use("job_write", job_id=job, text="x" * (1 << 20))
        assert result.error is not None
        assert result.error.kind == "no_reader"
        assert "of 1048576 bytes" in result.error.message
        assert result.effects.state == "unknown"


async def test_a_job_that_cannot_start_is_known_not_to_have_started(tmp_path: Path) -> None:
    async with workplace(tmp_path) as place:
        message = await place.refusal("job_start", command="true", cwd="nothing")
        assert message.startswith("not_started: the job was not started")


async def test_output_of_a_job_is_read_in_pieces_that_fit_together(tmp_path: Path) -> None:
    async with workplace(tmp_path, shown=1_000) as place:
        job = job_id(await place.use("job_start", command="seq 2000"))
        await place.use("job_wait", job_id=job)
        text, offset = "", 0
        while True:
            piece: Any = (await place.use("job_read", job_id=job, offset=offset)).value
            text, offset = text + piece["text"], piece["next_offset"]
            if piece["eof"]:
                break
    assert text.split() == [str(number) for number in range(1, 2_001)]


async def test_a_call_that_is_stopped_while_it_starts_a_job_takes_it_with_it(tmp_path: Path) -> None:
    controller = AbortController()

    def look(record: Record) -> None:
        if isinstance(record, JobStarted):
            controller.abort()

    async with Runner(builtins(tmp_path)) as runner:
        runner.on_record(look)
        with anyio.fail_after(BOUND):
            result = await runner.run("job_start", {"command": "sleep 1000"}, signal=controller.signal)
        assert (result.outcome, result.still_running) == ("aborted", ())
        assert runner.jobs.list() == ()


async def test_a_wait_that_is_stopped_leaves_the_job_running(tmp_path: Path) -> None:
    controller = AbortController()
    async with workplace(tmp_path) as place:
        job = job_id(await place.use("job_start", command="sleep 1000"))
        results: list[ToolResult] = []

        async def wait() -> None:
            results.append(await place.runner.run("job_wait", {"job_id": job, "seconds": 600}, signal=controller.signal))

        with anyio.fail_after(BOUND):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                controller.abort()
        assert (results[0].outcome, results[0].effects.state) == ("aborted", "none")
        assert words(await place.use("job_wait", job_id=job, seconds=0)) == f"{job}: running."


# The set.


def test_the_set_has_these_tools_and_each_declares_what_it_is(tmp_path: Path) -> None:
    tools = builtins(tmp_path)
    reads = {"read_file", "list_dir", "search", "job_read", "job_wait", "job_list"}
    changes = {"shell", "write_file", "edit_file", "job_start", "job_write", "job_stop"}
    assert {tool.name for tool in tools} == reads | changes
    for tool in tools:
        assert tool.annotations.read_only == (tool.name in reads)
        assert bool(tool.annotations.destructive) == (tool.name in changes)
        assert tool.is_parallel({"path": "x"}) == (tool.name in reads)
    idempotent = {tool.name for tool in tools if tool.annotations.idempotent}
    assert idempotent == {"read_file", "list_dir", "search", "write_file", "job_stop"}


def test_every_parameter_is_described_and_ctx_is_none(tmp_path: Path) -> None:
    for tool in builtins(tmp_path):
        assert len(tool.description) > 20
        for name, schema in tool.parameters["properties"].items():
            assert schema.get("description"), f"{tool.name}.{name}"
            assert name != "ctx"


def test_a_writer_and_a_reader_of_one_file_name_the_same_key(tmp_path: Path) -> None:
    tools = builtins(tmp_path)
    os.symlink("f", tmp_path / "link")
    keys = [
        tools[name].locks({"path": path}) for name, path in (("read_file", "link"), ("write_file", "f"), ("edit_file", "./f"))
    ]
    assert [[(lock.key, lock.mode) for lock in locks] for locks in keys] == [
        [(f"file:{tmp_path}/f", "read")],
        [(f"file:{tmp_path}/f", "write")],
        [(f"file:{tmp_path}/f", "write")],
    ]


@pytest.mark.parametrize("shown", [0, -1, 999, True, "x"])
def test_a_share_that_is_none_is_refused(tmp_path: Path, shown: Any) -> None:
    with pytest.raises(ConfigError, match="shown is"):
        builtins(tmp_path, shown=shown)


def test_a_part_of_the_set_is_a_set(tmp_path: Path) -> None:
    assert [tool.name for tool in builtins(tmp_path).only("read_file", "search")] == ["read_file", "search"]
