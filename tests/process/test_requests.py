"""What a request carries, what is refused before anything runs, and what the host is at that moment."""

import errno
import itertools
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from plain_user import PlainUser
from process.host import host_running
from process.shapes import BOUND, run, sh

from toolrunner.errors import ConfigError
from toolrunner.process import EndCause, LaunchPlan, SpawnErrorKind, SpawnRefused, Supervisor

pytestmark = pytest.mark.anyio

ECHO = "import os, sys; sys.stdout.buffer.write(b'\\0'.join([*map(os.fsencode, sys.argv[1:]), os.environb.get(b'W\\xff', b'')]))"


async def refused(supervisor: Supervisor, *argv: str | bytes, **plan: object) -> SpawnRefused:
    with anyio.fail_after(BOUND):
        try:
            prepared = await supervisor.prepare(LaunchPlan(argv, **plan))  # type: ignore[arg-type]
        except SpawnRefused as exc:
            return exc
        await prepared.abandon()
    raise AssertionError("was not refused")


@pytest.mark.case("P82")
async def test_what_is_not_utf8_arrives_byte_for_byte(supervisor: Supervisor) -> None:
    weird = bytes(range(1, 256))
    outcome = await run(supervisor, ("python3", "-c", ECHO, weird, "\udcff", ""), env={b"W\xff": weird.replace(b"=", b"")})  # type: ignore[arg-type]
    assert b"".join(outcome.chunks).split(b"\0") == [weird, b"\xff", b"", weird.replace(b"=", b"")]


@pytest.mark.case("P82")
async def test_a_megabyte_of_arguments_and_environment_arrives(supervisor: Supervisor) -> None:
    arguments = tuple(f"{index:03}" + "x" * 60_000 for index in range(8))
    variables = {f"V{index}": "y" * 60_000 for index in range(10)}
    script = 'echo $# ${#1} ${#8}; env | grep -c "^V[0-9]*=yyy"'
    outcome = await run(supervisor, ("bash", "-c", script, "bash", *arguments), env=variables)
    assert outcome.out == "8 60003 60003\n10\n"


@pytest.mark.case("P82")
async def test_a_string_that_is_too_long_for_the_kernel_is_named(supervisor: Supervisor) -> None:
    error = (await refused(supervisor, "echo", "ok", "x" * 200 * 1024)).error
    assert (error.kind, error.errno) == (SpawnErrorKind.TOO_LONG, errno.E2BIG)
    assert "argument 2 is 204,800 bytes" in error.message
    assert "environment variable BIG" in (await refused(supervisor, "true", env={"BIG": "x" * 200_000})).error.message
    longest = 32 * 4096 - 1
    assert (await run(supervisor, ("bash", "-c", "echo ${#1}", "-", "x" * longest))).out == f"{longest}\n"


async def test_arguments_that_are_too_long_together_are_too_long(supervisor: Supervisor) -> None:
    outcome = await run(supervisor, ("true", *["x" * 100_000] * 40))
    assert (outcome.end.started, outcome.end.cause) == (False, EndCause.SPAWN_FAILED)
    assert outcome.end.spawn_error is not None
    assert outcome.end.spawn_error.kind is SpawnErrorKind.TOO_LONG


@pytest.mark.parametrize(
    "argv,plan,kind,text",
    [
        (("a\0b",), {}, SpawnErrorKind.SETUP, "name holds a NUL"),
        (("true", "a\0b"), {}, SpawnErrorKind.SETUP, "argument 1 holds a NUL"),
        (("true",), {"env": {"A": "\0"}}, SpawnErrorKind.SETUP, "environment variable A holds a NUL"),
        (("true",), {"env": {"A=B": ""}}, SpawnErrorKind.SETUP, "must not be empty or hold '='"),
        (("true",), {"cwd": "/nonexistent/folder"}, SpawnErrorKind.SETUP, "'/nonexistent/folder': No such file"),
        (("true",), {"cwd": "/etc/passwd"}, SpawnErrorKind.SETUP, "Not a directory"),
        (("true",), {"cwd": "a\0b"}, SpawnErrorKind.SETUP, "its name holds a NUL"),
        (("true",), {"stdin": Path("/nonexistent")}, SpawnErrorKind.SETUP, "stdin from '/nonexistent'"),
    ],
)
async def test_what_cannot_be_is_refused_before_anything_runs(
    supervisor: Supervisor, argv: tuple[str, ...], plan: dict[str, object], kind: SpawnErrorKind, text: str
) -> None:
    error = (await refused(supervisor, *argv, **plan)).error
    assert error.kind is kind
    assert text in error.message


@pytest.mark.parametrize(
    "plan",
    [
        {"timeout": 0},
        {"timeout": -1.0},
        {"timeout": float("nan")},
        {"kill_after": -1.0},
        {"output_limit": -1},
        {"pass_fds": {2: 5}},
    ],
)
def test_a_plan_with_a_senseless_value_cannot_be_made(plan: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        LaunchPlan(("true",), **plan)  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        LaunchPlan(())


async def test_a_command_that_does_not_exist_never_started(supervisor: Supervisor, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("no interpreter here")
    script.chmod(0o755)
    orphan = tmp_path / "orphan"
    orphan.write_text("#!/no/such/interpreter\n")
    orphan.chmod(0o755)
    plain = tmp_path / "plain"
    plain.write_text("")
    expected = {
        "no-such-command": (SpawnErrorKind.NOT_FOUND, "no such command in the call's PATH"),
        str(tmp_path / "nothing"): (SpawnErrorKind.NOT_FOUND, "no such file"),
        str(tmp_path): (SpawnErrorKind.NOT_EXECUTABLE, "Permission denied"),
        str(plain): (SpawnErrorKind.NOT_EXECUTABLE, "Permission denied"),
        str(script): (SpawnErrorKind.NOT_EXECUTABLE, "Exec format error"),
        str(orphan): (SpawnErrorKind.NOT_EXECUTABLE, "interpreter"),
        "": (SpawnErrorKind.NOT_FOUND, "no such command"),
    }
    for name, (kind, text) in expected.items():
        end = (await run(supervisor, (name,))).end
        assert (end.started, end.cause, end.still_running) == (False, EndCause.SPAWN_FAILED, ())
        assert end.spawn_error is not None
        assert (end.spawn_error.kind, text in end.spawn_error.message) == (kind, True), end.spawn_error
        assert (end.facts.exit_code, end.facts.signal) == (None, None)


async def test_the_command_is_searched_in_the_path_and_folder_of_the_call(supervisor: Supervisor, tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "my-tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho mine\n")
    tool.chmod(0o755)
    path = os.environ["PATH"]
    assert (await run(supervisor, ("my-tool",), env={"PATH": f"bin:{path}"}, cwd=str(tmp_path))).out == "mine\n"
    assert (await run(supervisor, ("bin/my-tool",), cwd=str(tmp_path))).out == "mine\n"
    assert (await run(supervisor, ("my-tool",), env={"PATH": f":{path}"}, cwd=str(tool.parent))).out == "mine\n"


async def test_a_clear_environment_is_the_plans_own(supervisor: Supervisor) -> None:
    outcome = await run(supervisor, ("/usr/bin/env",), clear_env=True, env={"A": "1"})
    assert sorted(line.partition("=")[0] for line in outcome.out.splitlines()) == ["A", "TOOLRUNNER_PROCESS"]
    assert any(text.startswith("environment:") for text in outcome.end.missing)


@pytest.mark.case("P83")
async def test_the_tool_gets_what_the_host_is_now(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run(supervisor, "true")  # the warden is up, and knows the old ones
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEWCOMER", "here")
    umask = os.umask(0o027)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 7, hard))
    try:
        outcome = await run(supervisor, "pwd; umask; echo $NEWCOMER; ulimit -n")
    finally:
        os.umask(umask)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert outcome.out.split() == [str(tmp_path), "0027", "here", str(soft - 7)]


async def test_an_open_folder_wins_over_the_plans_and_may_be_renamed(supervisor: Supervisor, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    fd = os.open(tmp_path / "old", os.O_PATH | os.O_DIRECTORY)
    try:
        (tmp_path / "old").rename(tmp_path / "new")
        prepared = await supervisor.prepare(LaunchPlan(("/bin/pwd", "-P"), cwd="/"), dirfd=fd)
        prepared.go()
        assert (await prepared.wait()).facts.stdout == f"{tmp_path}/new\n"
    finally:
        os.close(fd)


@pytest.mark.case("P83")
@pytest.mark.root
def test_a_host_that_gave_up_its_uid_runs_nothing_under_the_old_one(tmp_path: Path) -> None:
    body = """
async def main(supervisor):
    say((await shell(supervisor, 'id -u')).facts.stdout.strip())
    os.setgroups([4321])
    say((await shell(supervisor, 'id -G')).facts.stdout.strip())
    os.setresuid(65534, 65534, 65534)
    for containment in (Containment.KEEPER, None):
        other = Supervisor(containment=containment)
        try:
            say((await shell(other, 'id -u', cwd='/')).facts.stdout.strip())
        except SpawnRefused as exc:
            say('refused')
        await other.aclose()
"""
    with host_running(tmp_path, body) as host:
        assert host.line() == "0"
        assert host.line() == "0 4321"
        answers = {host.line(), host.line()}
        assert answers <= {"65534", "refused"}
        assert host.rest()[0] == 0


@contextmanager
def few_descriptors(spare: int) -> Iterator[None]:
    """Leave room for so many more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = {int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}
    free = (number for number in range(soft) if number not in used)
    limit = next(itertools.islice(free, spare, None))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.case("P84")
async def test_without_descriptors_a_call_is_refused_and_the_others_go_on(supervisor: Supervisor) -> None:
    with anyio.fail_after(BOUND):
        other = await supervisor.prepare(LaunchPlan(sh("read x; echo other"), stdin=b"go\n"))
        for spare in range(1, 6):  # what one launch opens first is more; waiting itself needs none
            with few_descriptors(spare):
                error = (await refused(supervisor, "true")).error
            assert (error.kind, error.errno) == (SpawnErrorKind.SETUP, errno.EMFILE), spare
        other.go()
        assert (await other.wait()).facts.stdout == "other\n"
        assert (await run(supervisor, "echo next")).out == "next\n"


@pytest.mark.case("P84")
@pytest.mark.root
def test_without_processes_a_call_is_refused_and_the_warden_lives(as_plain_user: PlainUser) -> None:
    """With a user of its own: the limit counts all processes of a user, and others run as nobody here."""
    user = replace(as_plain_user, uid=61_000 + os.getpid() % 1000, gid=61_000)
    for folder in (user.home, user.home / "tmp", user.home / "mount"):
        os.chown(folder, user.uid, user.gid)
    body = """
import resource
async def main(supervisor):
    first = await supervisor.prepare(LaunchPlan(('echo', 'first')))
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    warden = int(open(f'/proc/{first.identity.pid}/stat').read().rpartition(')')[2].split()[1])
    warden = int(open(f'/proc/{warden}/stat').read().rpartition(')')[2].split()[1])
    resource.prlimit(warden, resource.RLIMIT_NPROC, (1, hard))
    waiting, refused = [first], 0
    while not refused:
        try:
            waiting.append(await supervisor.prepare(LaunchPlan(('echo', 'more'))))
        except SpawnRefused as exc:
            refused += 1
            say(exc.error.kind, exc.error.errno)
    resource.prlimit(warden, resource.RLIMIT_NPROC, (hard, hard))
    waiting.append(await supervisor.prepare(LaunchPlan(('echo', 'at once'))))  # not only after the next try of its own
    for prepared in waiting:
        prepared.go()
        assert (await prepared.wait()).facts.exit_code == 0
    end = await run(supervisor, 'echo', 'next')
    say(end.facts.stdout.strip())
"""
    with host_running(user.home, body, user=user) as host:
        assert host.line() == f"setup {errno.EAGAIN}"
        assert host.line() == "next"
        assert host.rest()[0] == 0
