"""A worker process is gone when the time for an undo has come, so it takes none."""

from collections.abc import Callable

import pytest

from toolrunner.pipeline.isolation.inside import Hosted, NotInWorker


def never(fn: Callable[[], object]) -> object:
    raise AssertionError("nothing is done on the loop")


def test_an_undo_given_in_a_worker_is_refused_before_the_act() -> None:
    sent: list[object] = []
    hosted = Hosted("run", sent.append, never)
    with pytest.raises(NotInWorker, match="undo="):
        hosted.effect("file", "a", False, lambda effect: None)
    hosted.effect("file", "a", False, None)
    assert (sent, hosted.ledger.records) == ([], ())
