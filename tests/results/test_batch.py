"""The results of a batch, taken together."""

from typing import Any

import pytest
from results.legal import MINE, RUNNING, SHARED, STOP, result

from toolrunner.facts import Effects, EffectState, Evidence, StillRunning, StillRunningKind, Text
from toolrunner.results import BatchResult, Code, Ended, Outcome, ToolResult
from toolrunner.wire import Provider, result_messages

BODY = (StillRunning("other", StillRunningKind.BODY),)
UNSTARTED = result(outcome=Outcome.ABORTED, code=Code.ABORTED_BEFORE_DISPATCH, started=False, stop=STOP)


def looked(changes: Any) -> ToolResult:
    return result(effects=Effects(EffectState.UNKNOWN, None, (), changes))


def test_a_batch_is_the_sequence_of_its_results() -> None:
    one, two, three = (result(run_id=f"r{n}") for n in range(3))
    batch = BatchResult((one, two, three), STOP)
    assert (len(batch), batch[0], batch[-1], batch[1:]) == (3, one, three, (two, three))
    assert list(batch) == [one, two, three]
    assert two in batch
    assert batch.stopped is STOP


@pytest.mark.parametrize(
    "left, together",
    [
        ([], ()),
        ([(), ()], ()),
        ([(), None], None),
        ([None, None], None),
        ([None, BODY], BODY),
        ([BODY, (), RUNNING[2]], (*BODY, *(RUNNING[2] or ()))),
    ],
)
def test_what_still_runs_of_a_batch(left: list[Any], together: Any) -> None:
    assert BatchResult(tuple(result(still_running=one) for one in left)).still_running == together


@pytest.mark.parametrize(
    "results, files",
    [
        ([], ()),
        ([looked(None)], None),
        ([looked(()), looked(())], ()),
        ([looked((MINE,)), looked(None), looked((SHARED, MINE))], (MINE.path, SHARED.path)),
        ([looked(()), looked(None)], None),
        ([UNSTARTED], ()),
        ([looked(()), UNSTARTED], ()),
    ],
)
def test_which_files_a_batch_changed(results: list[ToolResult], files: tuple[str, ...] | None) -> None:
    assert BatchResult(tuple(results)).files_changed == files


def test_the_summary_counts_and_then_tells_each_call() -> None:
    timed_out = result(outcome=Outcome.TIMED_OUT, code=Code.TIMED_OUT, ended=Ended.STOPPED, name="slow")
    batch = BatchResult((result(name="a", effects=Effects(EffectState.NONE, Evidence.DECLARED)), timed_out, UNSTARTED))
    assert batch.summary() == (
        "3 calls: 1 succeeded, 1 timed out, 1 aborted.\n"
        "  a succeeded; declared to change nothing.\n"
        "  slow ran over its time limit and was stopped; effects unknown.\n"
        "  write was stopped before it started; asked by the caller (user pressed stop); nothing was changed."
    )


def test_the_summary_of_few_calls() -> None:
    assert BatchResult(()).summary() == "0 calls: nothing to do."
    assert BatchResult((result(),)).summary().startswith("1 call: 1 succeeded.\n")


@pytest.mark.parametrize("provider", Provider)
def test_the_messages_answer_each_call_in_order(provider: Provider) -> None:
    results = tuple(result(call_id=f"call_{n}", name=f"tool_{n}", content=(Text(f"answer {n}"),)) for n in range(3))
    messages = BatchResult(results).to_messages(provider)
    assert messages == result_messages(provider, [one.to_wire() for one in results])
    said = str(messages)
    places = [said.index(f"answer {n}") for n in range(3)]
    assert places == sorted(places)
