"""An abort in the middle of which a collection begins: what that finalizes may abort or unsubscribe, too."""

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from toolrunner import abort as abort_module
from toolrunner.abort import AbortController

pytestmark = pytest.mark.anyio


@pytest.fixture
def usual_collections() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.enable()


class _Finalized:
    """Garbage at once, as it refers to itself; calls `fn` when it is collected."""

    def __init__(self, fn: Callable[[], object]) -> None:
        self.me, self.fn = self, fn

    def __del__(self) -> None:
        self.fn()


@pytest.mark.case("E29")
@pytest.mark.parametrize("allocations", range(-8, 4))  # what the look itself had allocated is given back before the walk
async def test_a_finalizer_that_unsubscribes_while_an_abort_walks_its_list_breaks_nothing(
    allocations: int, usual_collections: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collection comes a few allocations after the last look at the cause: one of these is the walk's own (Python 3.11)."""
    controller = AbortController()
    take_backs = [controller.signal.on_abort(lambda: None) for _ in range(40)]  # more than a small tuple that is kept for reuse
    cause = abort_module._Latch.cause
    gc.collect()
    gc.disable()
    _Finalized(take_backs[5])
    ballast: list[list[int]] = [[] for _ in range(20)]  # so many that a threshold below what there is now is none below zero

    def look(latch: abort_module._Latch, *, immediate_only: bool) -> abort_module.Cause | None:
        found = cause(latch, immediate_only=immediate_only)
        if immediate_only:
            gc.enable()
            gc.set_threshold(gc.get_count()[0] + allocations, 1000, 1000)
        return found

    monkeypatch.setattr(abort_module._Latch, "cause", look)
    assert controller.abort()
    del ballast


@pytest.mark.case("E29")
@pytest.mark.parametrize("ended", ["closed", "never closed"])
def test_an_abort_while_the_interpreter_goes_down_raises_nothing(ended: str) -> None:
    """By then no module is found any more."""
    script = f"""
import asyncio, os, sys
from toolrunner import AbortController

class Last:
    def __del__(self):
        try:
            os.write(1, b"%d" % controller.abort())
        except BaseException as error:
            os.write(1, repr(error).encode())

controller = AbortController()

async def main():
    controller.signal.on_abort(print)

loop = asyncio.new_event_loop()
loop.run_until_complete(main())
if {ended!r} == "closed":
    loop.close()
sys.modules["last"] = Last()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("1", "")
