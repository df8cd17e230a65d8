"""The undo of a write: the old content comes back, unless somebody has changed the file since."""

from pathlib import Path

import pytest

from toolrunner.errors import ToolError
from toolrunner.tools.builtin.changing import old_at, undo_of, version_of
from toolrunner.tools.builtin.roots import read_roots
from toolrunner.tools.builtin.walking import follow

pytestmark = pytest.mark.anyio


class Undoing:
    """What an undo is given."""

    kind, target, receipt = "file_write", "f", None

    def __init__(self) -> None:
        self.said_not_applied = False

    def not_applied(self) -> None:
        self.said_not_applied = True


def undo(root: Path, before: str | None, after: str) -> Undoing:
    roots = read_roots(root)
    current = (root / "f").read_bytes() if (root / "f").exists() else None
    if before is not None:
        (root / "f").write_text(before)
    elif current is not None:
        (root / "f").unlink()
    with follow(roots, "f") as place:
        old = old_at(roots, place, lambda: None)
    if current is not None:
        (root / "f").write_bytes(current)
    elif before is not None:
        (root / "f").unlink()
    effect = Undoing()
    undo_of(roots, f"{root}/f", old, version_of(after.encode())).fn(effect)  # type: ignore[arg-type]
    return effect


def test_an_undo_puts_the_old_content_back(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("new")
    assert not undo(tmp_path, "old", "new").said_not_applied
    assert (tmp_path / "f").read_text() == "old"


def test_an_undo_of_a_new_file_takes_it_away(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("new")
    undo(tmp_path, None, "new")
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize("before", ["old", None])
def test_an_undo_leaves_what_was_changed_again(tmp_path: Path, before: str | None) -> None:
    (tmp_path / "f").write_text("theirs")
    with pytest.raises(ToolError, match="was changed again since"):
        undo(tmp_path, before, "new")
    assert (tmp_path / "f").read_text() == "theirs"


@pytest.mark.parametrize("before", ["old", None])
def test_an_undo_of_what_never_happened_does_nothing(tmp_path: Path, before: str | None) -> None:
    if before is not None:
        (tmp_path / "f").write_text(before)
    assert not undo(tmp_path, before, "new").said_not_applied
    assert (tmp_path / "f").exists() == (before is not None)
