"""A workspace that a contained command may write, and a supervisor with keepers. Skipped where no bubblewrap is installed."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from plain_user import NOBODY
from sandbox.running import Box

from toolrunner.facts import Containment
from toolrunner.process import Supervisor
from toolrunner.sandbox.probing import candidates


@pytest.fixture
def workspace() -> Iterator[Path]:
    """Of nobody when we are root, because root is never contained; below /tmp, where nobody can get."""
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="sbx-", dir="/tmp")))
    (folder / "work").mkdir()
    folder.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(folder / "work", NOBODY, NOBODY)
    yield folder / "work"
    shutil.rmtree(folder)


@pytest.fixture
async def box(workspace: Path, anyio_backend: object) -> AsyncIterator[Box]:
    """Runs commands in that workspace."""
    if not candidates():
        pytest.skip("no bubblewrap is installed")
    supervisor = Supervisor(containment=Containment.KEEPER)
    yield Box(supervisor, workspace)
    await supervisor.aclose()
