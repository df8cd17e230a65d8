"""Bodies in worker processes: what works as in the host, what does not, and what is said about each end."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from isolation import workers
from isolation.opening import opened

from toolrunner import ToolCall, tool
from toolrunner.facts import Containment, EffectStage, EffectState, Evidence
from toolrunner.process import Supervisor
from toolrunner.records import Record
from toolrunner.results import Code, Ended, Outcome

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


# What works as it does in the host.


@pytest.mark.parametrize("body", [workers.hello, workers.hello_sync])
async def test_a_body_in_a_worker_has_effects_output_progress_and_follow_ups(body: Any) -> None:
    records = list[Record]()
    async with opened(body) as runner:
        call = ToolCall(body.name, {"name": "you"}, call_id="c1")
        (result,) = await runner.run_batch([call], on_event=records.append)
    assert (result.outcome, result.ended, result.started) == (Outcome.SUCCEEDED, Ended.RETURNED, True)
    assert isinstance(result.value, dict)
    assert result.process is not None
    pid = result.process.pid
    assert pid != os.getpid()
    assert result.value == {"hi": "you", "run_id": result.run_id, "call_id": "c1", "attempt": 1, "pid": pid}
    assert (result.effects.state, result.effects.evidence) == (EffectState.COMPLETED, Evidence.REPORTED)
    assert [(one.kind, one.target, one.stage, one.receipt) for one in result.effects.records] == [
        ("greeting", "you", EffectStage.APPLIED, "r1")
    ]
    assert result.follow_up == ({"to": "you"},)
    assert (result.process.stdout, result.process.stderr) == ("printed\n", "complained\n")
    assert (result.still_running, result.enforced) == ((), ("kill_tree",))
    outputs = [(one.stream, one.text) for one in records if one.type == "output"]
    assert sorted(outputs) == [("output", "said"), ("stderr", "complained\n"), ("stdout", "printed\n")]
    assert [(one.message, one.done, one.total) for one in records if one.type == "progress"] == [("half", 1, 2)]
    dispatched = next(one for one in records if one.type == "call/dispatched")
    assert dispatched.process is not None
    assert dispatched.process.pid == pid


async def test_each_call_has_a_process_of_its_own_and_shares_nothing_with_another() -> None:
    async with opened(workers.surroundings) as runner:
        first, second = [(await runner.run("surroundings")).value for _ in range(2)]
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first == second
    assert first["count"] == 1
    assert workers.counter == [0]
    assert first["isolated"] == 1
    assert first["inherited"] == []
    assert first["path"] == [path or os.getcwd() for path in sys.path]
    assert first["cwd"] == os.getcwd()


async def test_a_body_runs_on_the_kind_of_loop_that_its_host_has(anyio_backend: tuple[str, dict[str, Any]]) -> None:
    async with opened(workers.loop_name) as runner:
        assert (await runner.run("loop_name")).value == anyio_backend[0]


async def test_a_function_that_became_a_tool_under_another_name_is_found_by_its_own() -> None:
    async with opened(workers.renamed) as runner:
        assert (await runner.run("another_name")).value == "plain"


async def test_a_reply_comes_back_whole() -> None:
    async with opened(workers.replies) as runner:
        result = await runner.run("replies", {"text": "shown ☃"})
    assert (result.value, result.follow_up) == ({"n": 1}, ("more",))
    assert [getattr(part, "text", "") for part in result.content] == ["shown ☃"]


async def test_an_isolated_body_makes_child_calls_in_its_host() -> None:
    @tool
    def adder(a: int, b: int) -> int:
        return a + b

    async with opened(workers.calls, adder) as runner:
        result = await runner.run("calls")
        missing = await runner.run("calls", {"name": "nobody"})
    assert result.value == {"value": 3, "outcome": "succeeded", "parent": True}
    assert isinstance(missing.value, dict)
    assert missing.value["outcome"] == "rejected"


async def test_a_retry_is_a_new_worker_that_knows_its_number() -> None:
    async with opened(workers.second_time) as runner:
        result = await runner.run("second_time")
    assert (result.value, result.attempts, result.outcome) == (2, 2, Outcome.SUCCEEDED)


async def test_an_isolated_body_runs_without_a_keeper_and_says_so() -> None:
    def best_effort() -> Supervisor:
        return Supervisor(containment=Containment.BEST_EFFORT)

    async with opened(workers.hello, supervisor=best_effort) as runner:
        result = await runner.run("hello", {"name": "you"})
    assert result.outcome is Outcome.SUCCEEDED
    assert (result.still_running, result.enforced) == (None, ())
    assert result.missing


# What does not work, in words that say why.


async def test_deps_stay_behind_and_whoever_wants_them_is_told() -> None:
    async with opened(workers.uses_deps, deps={"database": 1}) as runner:
        result = await runner.run("uses_deps")
    assert result.outcome is Outcome.FAILED
    assert result.error is not None
    assert "ctx.deps is not there in a worker process" in result.error.message


async def test_a_sync_body_in_a_worker_cannot_make_child_calls() -> None:
    async with opened(workers.calls_sync) as runner:
        result = await runner.run("calls_sync")
    assert result.error is not None
    assert "AsyncOnly: ctx.run has to be awaited" in result.error.message


@pytest.mark.parametrize("what", ["object", "nan", "huge"])
async def test_a_value_that_cannot_be_sent_is_invalid_output(what: str) -> None:
    async with opened(workers.returns) as runner:
        result = await runner.run("returns", {"what": what})
    assert (result.outcome, result.code, result.ended) == (Outcome.FAILED, Code.INVALID_OUTPUT, Ended.RETURNED)


@pytest.mark.parametrize(
    "kind, message",
    [
        ("tool_error", "no such row"),
        ("group", "ExceptionGroup: two: ValueError: a; KeyError: 'b'"),
        ("surrogate", "FileNotFoundError: [Errno 2] No such file: 'bad\\udcff'"),
        ("other", "LookupError: nothing there"),
    ],
)
async def test_an_error_is_told_as_in_the_host(kind: str, message: str) -> None:
    async with opened(workers.raises) as runner:
        result = await runner.run("raises", {"kind": kind})
    assert (result.outcome, result.code, result.ended) == (Outcome.FAILED, Code.TOOL_ERROR, Ended.RAISED)
    assert result.error is not None
    assert result.error.message == message
    assert result.error.kind == ("not_found" if kind == "tool_error" else "exception")
    assert message in result.summary()


async def test_arguments_too_large_to_be_sent_are_refused_before_anything_runs() -> None:
    async with opened(workers.hello) as runner:
        result = await runner.run("hello", {"name": "x" * (33 << 20)})
    assert (result.outcome, result.code, result.started) == (Outcome.REJECTED, Code.SPAWN_REFUSED, False)


async def test_a_module_that_changed_since_it_was_registered_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "changing_tools.py"
    source = "from toolrunner import tool\n\n@tool(isolation='process')\ndef changing() -> int:\n    return 1\n"
    module.write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    changing = __import__("changing_tools").changing
    try:
        async with opened(changing) as runner:
            before = await runner.run("changing")
            module.write_text(source.replace("return 1", "return 2"))
            after = await runner.run("changing")
            module.unlink()
            gone = await runner.run("changing")
    finally:
        del sys.modules["changing_tools"]
    assert before.value == 1
    assert (after.outcome, after.code, after.value) == (Outcome.FAILED, Code.TOOL_ERROR, None)
    assert after.error is not None
    assert "source is another one" in after.error.message
    assert gone.error is not None
    assert "could not import changing_tools.changing: ModuleNotFoundError" in gone.error.message
