"""Watches: a change is a call's own only if nobody else could have made it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrunner.facts import Attribution
from toolrunner.observe import Watch, Watches, Writer

EXCLUSIVE, SHARED = Attribution.EXCLUSIVE, Attribution.SHARED


def test_a_call_alone_has_its_changes_for_itself() -> None:
    watches = Watches()
    assert watches.begin(["/w"]).finish() is EXCLUSIVE
    assert watches.begin(["/w"]).finish() is EXCLUSIVE


@pytest.mark.parametrize(
    "other, attribution",
    [
        ("/w", SHARED),
        ("/w/sub", SHARED),
        ("/", SHARED),
        ("/w/", SHARED),
        ("/w/x/..", SHARED),
        ("/wx", EXCLUSIVE),
        ("/v", EXCLUSIVE),
    ],
)
def test_overlapping_roots_share_and_others_do_not(other: str, attribution: Attribution) -> None:
    watches = Watches()
    first, second = watches.begin(["/w"]), watches.begin([other])
    assert second.finish() is attribution
    assert first.finish() is attribution


@pytest.mark.parametrize("roots, attribution", [(None, SHARED), (["/w/a"], SHARED), (["/v"], EXCLUSIVE), ([], EXCLUSIVE)])
def test_whoever_is_not_watched_may_write_where_it_may(roots: list[str] | None, attribution: Attribution) -> None:
    watches = Watches()
    with watches.writer_active(roots):
        assert watches.begin(["/w"]).finish() is attribution


ORDERS: list[Callable[[Watches], Watch]] = []


def order(fn: Callable[[Watches], Watch]) -> Callable[[Watches], Watch]:
    ORDERS.append(fn)
    return fn


@order
def writer_ends_during_the_watch(watches: Watches) -> Watch:
    writer = watches.writer_active()
    watch = watches.begin(["/w"])
    writer.close()
    return watch


@order
def writer_comes_and_goes(watches: Watches) -> Watch:
    watch = watches.begin(["/w"])
    watches.writer_active().close()
    return watch


@order
def writer_stays(watches: Watches) -> Watch:
    watch = watches.begin(["/w"])
    watches.writer_active()
    return watch


@pytest.mark.parametrize("happens", ORDERS)
def test_together_for_a_moment_is_shared_for_good(happens: Callable[[Watches], Watch]) -> None:
    assert happens(Watches()).finish() is SHARED


def test_who_ended_before_does_not_count() -> None:
    watches = Watches()
    with watches.writer_active():
        pass
    assert watches.begin(["/w"]).finish() is EXCLUSIVE


def test_a_call_that_is_not_confined_spoils_what_others_watch_and_not_its_own() -> None:
    watches = Watches()
    loose, other = watches.begin(["/v"], unconfined=True), watches.begin(["/w"])
    assert other.finish() is SHARED
    assert loose.finish() is EXCLUSIVE


def test_the_end_may_be_said_twice() -> None:
    watches = Watches()
    watch, writer = watches.begin(["/w"]), watches.writer_active(["/w"])
    writer.close()
    writer.close()
    assert watch.finish() is SHARED
    assert watch.finish() is SHARED
    assert not watches._active
    assert not watches._looking


def test_two_names_of_one_folder_overlap(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "w")
    watches = Watches()
    watch = watches.begin([tmp_path / "w"])
    with watches.writer_active([tmp_path / "link"]):
        assert watch.finish() is SHARED


steps = st.tuples(st.sampled_from(["watch", "write", "end"]), st.sampled_from(["/a", "/a/b", "/c", "/"]), st.integers(0, 9))


class Model:
    """Who overlapped whom, told by comparing everybody with everybody."""

    def __init__(self) -> None:
        self.watches = Watches()
        self.active: list[tuple[Watch | Writer, str]] = []
        self.begun: list[Watch | Writer] = []  # so that no id is used twice
        self.spoilt: set[int] = set()

    def begin(self, kind: str, root: str) -> None:
        new = self.watches.begin([root]) if kind == "watch" else self.watches.writer_active([root])
        for other, where in self.active:
            if root.startswith(where) or where.startswith(root):
                self.spoilt.update({id(new), id(other)})
        self.active.append((new, root))
        self.begun.append(new)

    def end(self, which: int) -> None:
        one, _ = self.active.pop(which % len(self.active))
        if isinstance(one, Writer):
            one.close()
        else:
            assert one.finish() is (SHARED if id(one) in self.spoilt else EXCLUSIVE)


@given(st.lists(steps, max_size=12))
def test_exclusive_means_that_nobody_overlapped_at_any_time(plan: list[tuple[str, str, int]]) -> None:
    model = Model()
    for kind, root, which in plan:
        if kind != "end":
            model.begin(kind, root)
        elif model.active:
            model.end(which)
    while model.active:
        model.end(0)


def test_one_who_only_writes_and_is_gone_shares_with_nobody_who_looks_later(tmp_path: Path) -> None:
    watches = Watches()
    with watches.writer_active([tmp_path]):
        pass
    watch = watches.begin([tmp_path])
    watches.writer_active([tmp_path.parent / "elsewhere"]).close()
    assert watch.finish() is Attribution.EXCLUSIVE


def test_a_look_among_many_who_write_shares_with_those_only_that_write_there(tmp_path: Path) -> None:
    watches = Watches()
    elsewhere = [watches.writer_active([tmp_path / f"w{index}"]) for index in range(5)]
    watch = watches.begin([tmp_path / "looked"])
    apart = watches.begin([tmp_path / "apart"])
    late = watches.writer_active([tmp_path / "apart" / "inside"])
    assert watch.finish() is Attribution.EXCLUSIVE
    assert apart.finish() is Attribution.SHARED
    for writer in (*elsewhere, late):
        writer.close()
