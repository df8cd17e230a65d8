"""The scan: it proves changes, follows nothing, ends within its budget and survives what it cannot read."""

import os
from pathlib import Path

import pytest

from toolrunner.errors import ConfigError
from toolrunner.facts import Attribution, ChangeKind
from toolrunner.observe import Budget, Snapshot, diff, rescan, snapshot

CREATED, MODIFIED, DELETED = ChangeKind.CREATED, ChangeKind.MODIFIED, ChangeKind.DELETED


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "w"
    (root / "sub").mkdir(parents=True)
    (root / "a").write_text("a")
    (root / "sub" / "b").write_text("b")
    # Old times, so that a change within the kernel's clock tick shows.
    for path in (root / "a", root / "sub" / "b"):
        os.utime(path, ns=(1, 1))
    return root


def seen(before: Snapshot, root: Path) -> list[tuple[str, ChangeKind]]:
    return [(os.path.relpath(change.path, root), change.kind) for change in diff(before, rescan(before))]


def test_what_is_created_modified_and_deleted_is_told_sorted_by_path(root: Path) -> None:
    before = snapshot([root])
    (root / "new").mkdir()
    (root / "new" / "c").write_text("c")
    (root / "a").write_text("b")
    (root / "sub" / "b").unlink()
    assert seen(before, root) == [("a", MODIFIED), ("new", CREATED), ("new/c", CREATED), ("sub/b", DELETED)]


def test_nothing_changed_is_no_change(root: Path) -> None:
    before = snapshot([root])
    (root / "a").read_text()
    assert seen(before, root) == []
    assert before.complete


def test_a_change_that_hides_its_size_and_its_time_is_seen(root: Path) -> None:
    before = snapshot([root])
    (root / "a").write_text("x")
    os.utime(root / "a", ns=(1, 1))
    assert seen(before, root) == [("a", MODIFIED)]


def test_a_file_that_is_replaced_by_another_one_is_modified(root: Path) -> None:
    before = snapshot([root])
    (root / "tmp").write_text("a")
    (root / "tmp").rename(root / "a")
    assert seen(before, root) == [("a", MODIFIED)]


def test_a_mode_is_a_change_also_of_a_folder(root: Path) -> None:
    before = snapshot([root])
    (root / "sub").chmod(0o711)
    (root / "a").chmod(0o600)
    assert seen(before, root) == [("a", MODIFIED), ("sub", MODIFIED)]


def test_a_symlink_is_a_name_and_never_a_way(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "out").symlink_to(outside)
    (root / "loop").symlink_to(root)
    before = snapshot([root])
    (outside / "secret").write_text("x")
    assert seen(before, root) == []
    (root / "out").unlink()
    (root / "out").symlink_to("/")
    assert seen(before, root) == [("out", MODIFIED)]


def test_a_root_may_be_a_symlink_and_is_told_by_its_real_path(root: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(root)
    before = snapshot([link])
    assert before.roots == (str(root),)
    (root / "c").write_text("c")
    assert seen(before, root) == [("c", CREATED)]


def test_a_root_that_is_gone_afterwards_is_a_change(root: Path) -> None:
    before = snapshot([root])
    (root / "a").unlink()
    (root / "sub" / "b").unlink()
    (root / "sub").rmdir()
    root.rmdir()
    assert seen(before, root) == [(".", DELETED), ("a", DELETED), ("sub", DELETED), ("sub/b", DELETED)]


def test_roots_inside_each_other_are_told_once(root: Path) -> None:
    before = snapshot([root, root / "sub", root])
    (root / "sub" / "c").write_text("c")
    assert seen(before, root) == [("sub/c", CREATED)]


@pytest.mark.parametrize("name", ["missing", "a"])
def test_a_root_that_cannot_be_watched_is_refused(root: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"a watched folder is .*; expected a directory that can be read"):
        snapshot([root / name])


@pytest.mark.parametrize("entries", [1, 2, 3])
def test_a_budget_that_is_used_up_is_said_and_proves_less(root: Path, entries: int) -> None:
    before = snapshot([root], Budget(entries=entries))
    assert before.complete is (entries == 3)
    (root / "a").write_text("other")
    (root / "sub" / "new").write_text("new")
    changes = diff(before, rescan(before))
    # Whatever it says is true: nothing that was there before is called created.
    assert {(change.path, change.kind) for change in changes} <= {(f"{root}/a", MODIFIED), (f"{root}/sub/new", CREATED)}
    after = rescan(before, Budget(entries=entries))
    assert [change for change in diff(snapshot([root]), after) if change.kind is not MODIFIED] == []


def test_the_time_runs_out_too(root: Path) -> None:
    assert not snapshot([root], Budget(seconds=1e-9)).complete


@pytest.mark.parametrize("budget", [(0, 1.0), (1, 0.0), (1, float("nan")), (1, float("inf"))])
def test_a_budget_without_an_end_is_refused(budget: tuple[int, float]) -> None:
    with pytest.raises(ConfigError):
        Budget(*budget)


def test_a_name_that_is_no_utf8_survives_as_text(root: Path) -> None:
    before = snapshot([root])
    with open(os.fsencode(root) + b"/caf\xe9", "wb"):
        pass
    (change,) = diff(before, rescan(before))
    assert change.path == f"{root}/caf\\xe9"
    change.path.encode()


def test_a_folder_that_cannot_be_read_is_listed_and_proves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = snapshot([root])
    scandir = os.scandir

    def refuses(path: str) -> object:
        if path == str(root / "sub"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuses)  # root may read everything, and the tests run as root too
        after = rescan(before)
    assert after.unreadable == (str(root / "sub"),)
    assert not after.complete
    assert diff(before, after) == ()
    assert diff(after, before) == ()


def test_a_root_that_cannot_be_looked_at_any_more_is_not_called_deleted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = snapshot([root])

    def refuses(path: str) -> os.stat_result:
        raise PermissionError(13, "Permission denied", path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "lstat", refuses)
        after = rescan(before)
    assert after.unreadable == (str(root),)
    assert diff(before, after) == ()


def test_the_attribution_is_what_the_watch_says_and_proves_nothing_by_itself(root: Path) -> None:
    before = snapshot([root])
    (root / "c").write_text("c")
    after = rescan(before)
    assert [change.attribution for change in diff(before, after)] == [Attribution.SHARED]
    assert [change.attribution for change in diff(before, after, Attribution.EXCLUSIVE)] == [Attribution.EXCLUSIVE]
