"""What is known of a disk by the list of mounts."""

from pathlib import Path

import pytest

from toolrunner.journal.filesystems import NOT_LOCAL, filesystem, mounted_at

MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:25 / /home rw,relatime shared:2 - nfs4 server:/home rw
31 30 0:26 / /home/me/local rw - btrfs /dev/vdb rw
32 22 0:27 / /srv/a\\040b rw - cifs //server/share rw
33 22 0:28 / /covered rw - nfs server:/x rw
34 33 254:0 / /covered rw master:3 propagate_from:2 - ext4 /dev/vda rw
a line that says nothing
"""


@pytest.mark.parametrize(
    "path, kind",
    [
        ("/", "ext4"),
        ("/homes/x", "ext4"),
        ("/home", "nfs4"),
        ("/home/me", "nfs4"),
        ("/home/me/local/state", "btrfs"),
        ("/srv/a b/c", "cifs"),
        ("/covered/x", "ext4"),
    ],
)
def test_the_innermost_mount_tells(path: str, kind: str) -> None:
    assert mounted_at(path, MOUNTS) == kind


def test_where_nobody_says_nothing_is_known() -> None:
    assert mounted_at("/", "") == ""


def test_the_disk_that_tests_run_on_is_a_local_one(tmp_path: Path) -> None:
    assert filesystem(tmp_path)
    assert filesystem(tmp_path) not in NOT_LOCAL
