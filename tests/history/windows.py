"""The cancel windows, row by row: where a stop or a crash can come, as the log that it leaves. The next user's words follow each.

`python -m history.windows` in tests/ writes the golden files anew, for a reader to compare.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from history.logs import Log, call, result, text, thought

from toolrunner.history.drafts import Draft
from toolrunner.history.fold import fold
from toolrunner.history.projection import project
from toolrunner.wire import Provider

GOLDEN = Path(__file__).parent / "golden"
SWITCHES = tuple((cut_calls, marker) for cut_calls in ("omit", "answer") for marker in ("user", "off"))


def _stopped(log: Log) -> None:
    log.step_end()
    log.end()


def _cut(*blocks: Callable[[Provider], Any]) -> Callable[[Log], None]:
    def write(log: Log) -> None:
        log.turn("U")
        log.send()
        log.reply(*(block(log.provider) for block in blocks), interrupted=True)
        _stopped(log)

    return write


def _whole(log: Log, calls: int = 1) -> list[Any]:
    log.turn("U")
    log.send()
    made = [call(number, log.provider) for number in range(1, calls + 1)]
    log.reply(thought(), text("T", provider=log.provider), *made)
    return made


def _no_request(log: Log) -> None:
    log.turn("U")
    log.end()


def _no_bytes(log: Log) -> None:
    log.turn("U")
    log.send()
    log.attempt()
    _stopped(log)


def _not_run(log: Log) -> None:
    _whole(log)
    _stopped(log)


def _one_call(fate: str, said: str = "") -> Callable[[Log], None]:
    def write(log: Log) -> None:
        (made,) = _whole(log)
        log.call(made, fate, said)
        _stopped(log)

    return write


def _runs_on(log: Log) -> None:
    (made,) = _whole(log)
    run_id = log.call(made, "running")
    _stopped(log)
    log.turn("V")
    log.send()
    log.reply(text("T2", provider=log.provider))
    log.step_end()
    log.end("completed")
    log.ended(result(run_id, "read", "late", "c1"))


def _batch(log: Log) -> None:
    made = _whole(log, 3)
    for one, fate in zip(made, ("returned", "stopped", "not_started"), strict=True):
        log.call(one, fate, "R" if fate == "returned" else "")
    _stopped(log)


def _next_step(log: Log) -> None:
    (made,) = _whole(log)
    log.call(made, "returned", "R")
    log.step_end()
    log.send()
    log.reply(text("So f", closed=False), interrupted=True)
    _stopped(log)


def _completed(log: Log) -> None:
    log.turn("U")
    log.send()
    log.reply(text("T", provider=log.provider))
    log.step_end()
    log.end("completed")


def _twice(log: Log) -> None:
    _no_request(log)
    log.turn()
    log.end()


def _killed_in_the_stream(log: Log) -> None:
    log.turn("U")
    log.send()
    log.close(Draft(log.turn_id, len(log.records), "Firs"))


def _killed_before_the_call(log: Log) -> None:
    _whole(log)
    log.close()


def _killed_in_the_call(log: Log) -> None:
    (made,) = _whole(log)
    log.dispatched(log.recorded(made), made)
    log.close()


def _killed_after_the_call(log: Log) -> None:
    (made,) = _whole(log)
    log.call(made, "returned", "R")
    log.close()


ROWS: dict[int, tuple[str, Callable[[Log], None]]] = {
    0: ("turn opened, no request", _no_request),
    1: ("request sent, no bytes", _no_bytes),
    2: ("in the middle of a thought", _cut(lambda _: thought(closed=False))),
    3: ("thought closed, text open", _cut(lambda _: thought(), lambda _: text("Firs", closed=False))),
    4: ("thought closed, nothing after", _cut(lambda _: thought())),
    5: (
        "inside the arguments of a call",
        _cut(lambda _: thought(), lambda p: text("T", provider=p), lambda p: call(1, p, closed=False)),
    ),
    6: ("call closed, stream not done", _cut(lambda _: thought(), lambda p: text("T", provider=p), lambda p: call(1, p))),
    7: ("response done, before dispatch", _not_run),
    8: ("waiting for an approval, approved late", _one_call("not_started")),
    9: ("body running, stops", _one_call("stopped")),
    10: ("body running with output, stops", _one_call("stopped", "half of it")),
    11: ("body ignores the signal and finishes", _one_call("late", "R")),
    12: ("body runs on after its answer was sent, and ends", _runs_on),
    13: ("batch: one done, one running, one queued", _batch),
    14: ("all results in, next request not sent", _one_call("returned", "R")),
    15: ("next request streaming", _next_step),
    16: ("after the normal end", _completed),
    17: ("a second cancel with no turn between", _twice),
    18: ("killed in mid-stream", _killed_in_the_stream),
    19: ("killed before the call", _killed_before_the_call),
    20: ("killed in the call", _killed_in_the_call),
    21: ("killed between the result and the end of the turn", _killed_after_the_call),
}


def window(row: int, provider: Provider, cut_calls: str, marker: str) -> Log:
    """The log of one row, with the next user's words."""
    log = Log(provider, cut_calls, marker)
    ROWS[row][1](log)
    log.turn("U'")
    return log


def projected(row: int) -> dict[str, Any]:
    """What each provider is sent next, for each of the switches."""
    return {
        "window": ROWS[row][0],
        **{
            f"cut_calls={cut_calls} marker={marker}": {
                provider.value: project(fold(window(row, provider, cut_calls, marker).records), provider) for provider in Provider
            }
            for cut_calls, marker in SWITCHES
        },
    }


def golden(row: int) -> Path:
    return GOLDEN / f"window_{row:02}.json"


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for number in ROWS:
        golden(number).write_text(json.dumps(projected(number), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
