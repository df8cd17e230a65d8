"""Shared by every test: the loops they run on, the leak guard around each of them, and the users they run as.

Async tests are marked `pytest.mark.anyio` and run on asyncio (debug) and trio; those marked `uvloop`, or all with `--all-loops`,
run on uvloop too. Where limits are waited for, `virtual_time` gives both loops a clock that jumps: an hour costs nothing, and
a busy machine is no slower than an idle one. (Not with threads or processes: while they work, the loop has nothing to do.)
"""

import os
import signal
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

import leaks
import pytest
import uvloop
from hypothesis import settings
from plain_user import PlainUser, plain_user
from stillness import VirtualLoop
from trio.testing import MockClock

TESTS = Path(__file__).parent
PROCESS_FOLDERS = {"process", "cli", "infra"}
UVLOOP = ("asyncio", {"debug": True, "use_uvloop": True})

# A deadline per example measures the machine, not the code.
# CI must fail for a reason that is in the commit, so there the examples are always the same.
settings.register_profile("toolrunner", deadline=None, print_blob=True, derandomize=bool(os.environ.get("CI")))
settings.load_profile("toolrunner")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-loops", action="store_true", help="run every async test on uvloop too, not only those marked for it")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: Any) -> None:
    """Give every anyio test the task guard, the way anyio's plugin gives it its loop. (Autouse would put sync ones on a loop.)"""
    if not collector.istestfunction(obj, name):
        return
    inner = obj.hypothesis.inner_test if hasattr(obj, "hypothesis") else obj
    marks = [*collector.iter_markers("anyio"), *(mark for mark in getattr(obj, "pytestmark", ()) if mark.name == "anyio")]
    if iscoroutinefunction(inner) and marks:
        pytest.mark.usefixtures("no_task_is_left")(obj)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if _runs_here(item, all_loops=config.getoption("--all-loops"))]
    for item in items:
        if item.get_closest_marker("root") and os.geteuid() != 0:
            item.add_marker(pytest.mark.skip(reason="needs root"))
        ids = [case for mark in item.iter_markers("case") for case in mark.args]
        folder = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
        if folder in PROCESS_FOLDERS or any(case.startswith("P") for case in ids):
            item.add_marker(pytest.mark.processes)


def _runs_here(item: pytest.Item, *, all_loops: bool) -> bool:
    loop = item.callspec.params.get("anyio_backend") if isinstance(item, pytest.Function) and hasattr(item, "callspec") else None
    return loop != UVLOOP or all_loops or item.get_closest_marker("uvloop") is not None


_STRAYS = pytest.StashKey[frozenset[str]]()


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[_STRAYS] = frozenset(leaks.strays())


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With several processes nobody can say whose a file in /tmp is, so all of them together are asked."""
    before = session.config.stash[_STRAYS]
    left = set(leaks.strays()) - before
    if left and session.config.getoption("numprocesses", None):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        session.config.get_terminal_writer().line(f"\nleft in /tmp: {', '.join(sorted(left))}", red=True)


def pytest_report_header() -> str:
    exact = "exact (under tests/reaper.py)" if leaks.REAPER in os.environ else "by descent and by mark"
    return f"user: {'root' if os.geteuid() == 0 else 'plain'}, leak guard for processes: {exact}"


@pytest.fixture(
    params=[
        pytest.param(("asyncio", {"debug": True}), id="asyncio"),
        pytest.param(("trio", {}), id="trio"),
        pytest.param(UVLOOP, id="uvloop"),
    ]
)
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    name, options = request.param
    if request.node.get_closest_marker("virtual_time"):
        # A clock belongs to one run of one loop.
        clock = {"clock": MockClock(autojump_threshold=0)} if name == "trio" else {"loop_factory": VirtualLoop}
        options = {**options, **clock}
    return name, options


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """Hear SIGINT, SIGTERM and SIGHUP as a program at a terminal does, also where the suite was started with them ignored.

    A shell without job control, nohup and some CI runners start what runs in the background that way, and it is inherited through
    exec (signal(7)): Ctrl-C under test would be waited for for ever.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def session_tmpdir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give the session a mark for its processes, and a TMPDIR of its own: whatever lies in it after a test is that test's."""
    folder = tmp_path_factory.mktemp("TMPDIR", numbered=False)  # this also fixes pytest's own folder, before TMPDIR changes
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setenv(leaks.MARK, uuid.uuid4().hex)
        patch.setattr(tempfile, "tempdir", str(folder))
        # The command line keeps a journal of what it runs, and a socket while it does: not in the home of whoever runs the tests.
        for name in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
            place = tmp_path_factory.mktemp(name, numbered=False)
            place.chmod(0o700)
            patch.setenv(name, str(place))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def warm_uvloop() -> None:
    """Let libuv open, before the first look, the pipe for signals that it keeps for the life of the process."""
    uvloop.new_event_loop().close()


@pytest.fixture(autouse=True)
def nothing_is_left(session_tmpdir: Path) -> Iterator[None]:
    """Fail the test, by name, that leaves a process, fd, thread, temp file, signal action or another working directory behind."""
    before = leaks.Snapshot.take()
    yield
    if found := leaks.check(before):
        pytest.fail("left behind by this test:\n  " + "\n  ".join(found), pytrace=False)


@pytest.fixture
async def no_task_is_left() -> AsyncIterator[None]:
    """Fail the async test after which a task is still there. Set up before the test's own fixtures: it looks after their end."""
    before = set(leaks.tasks())
    yield
    if left := [name for task, name in leaks.tasks().items() if task not in before]:
        pytest.fail("tasks left behind by this test:\n  " + "\n  ".join(left), pytrace=False)


@pytest.fixture
def as_plain_user() -> Iterator[PlainUser]:
    """Somebody without rights (we ourselves when not root): `run(as_plain_user.argv("id"), **as_plain_user.popen)`."""
    with plain_user() as user:
        yield user
