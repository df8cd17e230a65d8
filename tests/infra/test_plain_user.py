"""The facility that runs things as a plain user does take the rights away, and leaves nothing behind."""

import subprocess
import sys
from pathlib import Path

import pytest
from plain_user import PlainUser

SCRIPT = Path(__file__).parent.parent / "plain_user.py"
WHO = "import os, tempfile; print(os.geteuid(), os.getgroups(), os.access('/etc/shadow', os.R_OK), tempfile.gettempdir())"


@pytest.mark.root
def test_a_root_session_can_start_something_without_rights(as_plain_user: PlainUser) -> None:
    done = subprocess.run(
        as_plain_user.argv(sys.executable, "-c", WHO), **as_plain_user.popen, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["65534", "[]", "False", f"{as_plain_user.home}/tmp"]


@pytest.mark.root
def test_the_script_runs_a_command_without_rights_and_removes_its_home() -> None:
    argv = [sys.executable, str(SCRIPT), sys.executable, "-c", WHO]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    uid, _, readable, folder = done.stdout.split()
    assert (uid, readable) == ("65534", "False")
    assert not Path(folder).exists()


def test_the_plain_user_owns_their_home(as_plain_user: PlainUser) -> None:
    subprocess.run(as_plain_user.argv("sh", "-c", 'touch "$HOME/a" "$TMPDIR/b"'), **as_plain_user.popen, check=True)
    assert (as_plain_user.home / "a").stat().st_uid == as_plain_user.uid
