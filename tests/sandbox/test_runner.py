"""A sandbox seen through a Runner and through the command line."""

from pathlib import Path

import pytest
from cli.program import environment, toolrun
from sandbox.running import Box

from toolrunner import Decision, Policy, Runner, ToolCall, ToolResult
from toolrunner.errors import ProfileError
from toolrunner.policy import ApprovalRequest
from toolrunner.sandbox.probing import candidates
from toolrunner.tools import AnyTool, Command, command_tool

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


def shell(folder: Path, sandbox: str | None = None) -> AnyTool:
    @command_tool(name="sh")
    def sh(line: str) -> Command:
        return Command(("sh", "-c", line), cwd=folder, sandbox=sandbox)

    return sh


async def run(folder: Path, line: str, *, runner: str | None = None, tool: str | None = None) -> ToolResult:
    async with Runner([shell(folder, tool)], sandbox=runner) as opened:
        return await opened.run("sh", {"line": line})


async def test_a_result_says_what_contained_it_and_what_held(box: Box) -> None:
    result = await run(box.folder, "echo x > here; echo y > /usr/beside", runner="workspace-write")
    assert (result.outcome, result.code, result.started) == ("failed", "EXIT_STATUS", True)
    assert result.sandbox is not None
    assert (result.sandbox.profile, result.sandbox.backend) == ("workspace-write", "bubblewrap")
    assert result.enforced == ("kill_tree", "fs_read", "fs_write", "protect_paths", "network", "env", "tty")
    assert result.process is not None
    assert result.process.containment == "pidns"
    assert (box.folder / "here").exists()


async def test_a_tools_sandbox_only_takes_away_from_the_runners(box: Box) -> None:
    result = await run(box.folder, "echo x > here", runner="read-only", tool="danger-full-access")
    assert result.outcome == "failed"
    assert not (box.folder / "here").exists()
    result = await run(box.folder, "echo x > here", runner="danger-full-access", tool="read-only")
    assert result.outcome == "failed"
    assert not (box.folder / "here").exists()
    assert (await run(box.folder, "echo x > here", tool="workspace-write")).outcome == "succeeded"


async def test_a_profile_that_does_not_load_is_an_error_before_anything_runs() -> None:
    with pytest.raises(ProfileError, match="did you mean 'strict'"):
        Runner(sandbox="strikt")
    with pytest.raises(ProfileError, match="did you mean 'offline'"):
        Command(("true",), sandbox="ofline")


async def test_a_sandbox_that_cannot_be_had_is_a_rejection_with_no_effects(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLRUNNER_BWRAP", "/nowhere/bwrap")
    result = await run(box.folder, "echo x > here", runner="workspace-write")
    assert (result.outcome, result.code, result.started) == ("rejected", "SANDBOX_UNAVAILABLE", False)
    assert (result.effects.state, result.effects.evidence) == ("none", "not_started")
    assert result.error is not None
    assert result.error.kind == "sandbox"
    assert not (box.folder / "here").exists()


@pytest.mark.case("E9")
async def test_a_sandbox_that_vanishes_after_the_approval_lets_nothing_run(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = box.folder.parent / "bwrap"
    copy.write_bytes(Path(candidates()[0]).read_bytes())
    copy.chmod(0o755)
    monkeypatch.setenv("TOOLRUNNER_BWRAP", str(copy))
    assert (await run(box.folder, "true", runner="workspace-write")).outcome == "succeeded", "it works, and is known to"

    class Removing:
        async def decide(self, request: object, signal: object) -> Decision:
            copy.unlink()
            return Decision.allow()

    asking = Policy.of(ask=["sh"], default="allow")
    async with Runner([shell(box.folder)], sandbox="workspace-write", policy=asking, approver=Removing()) as opened:
        (result,) = await opened.run_batch([ToolCall("sh", {"line": "echo x > here"})])
    assert (result.outcome, result.code, result.started) == ("rejected", "SANDBOX_UNAVAILABLE", False)
    assert (result.effects.state, result.effects.evidence) == ("none", "not_started")
    assert not (box.folder / "here").exists()


async def test_the_command_line_contains_and_refuses(box: Box) -> None:
    line = ("run", "--json", "--sandbox", "offline", "--cwd", str(box.folder))
    done = toolrun(*line, "--", "sh", "-c", "echo x > here; echo y > /usr/beside", env=environment())
    (result,) = done.lines
    assert done.status != 0
    assert result["sandbox"]["profile"] == "offline"
    assert (box.folder / "here").exists()
    assert (box.folder / "here").exists()
    done = toolrun(*line, "--require", "limits_pids", "--", "touch", "never")
    assert done.status == 125
    assert done.lines[0]["code"] == "SANDBOX_UNAVAILABLE"
    assert not (box.folder / "never").exists()


@pytest.mark.parametrize(
    "words, status, text",
    [
        (("--sandbox", "strikt"), 125, b"did you mean 'strict'"),
        (("--sandbox", "strict", "--require", "magic"), 125, b"there is no guarantee 'magic'"),
        (("--require", "network"), 2, b"--require needs --sandbox"),
    ],
)
async def test_options_that_cannot_be_kept_run_nothing(words: tuple[str, ...], status: int, text: bytes, tmp_path: Path) -> None:
    done = toolrun("run", *words, "--", "touch", str(tmp_path / "never"))
    assert (done.status, text in done.err) == (status, True), done.err
    assert not (tmp_path / "never").exists()


async def test_an_approval_of_a_contained_call_is_asked_for_once(box: Box) -> None:
    asked: list[ApprovalRequest] = []

    class Yes:
        async def decide(self, request: ApprovalRequest, signal: object) -> Decision:
            asked.append(request)
            return Decision.allow()

    asking = Policy.of(ask=["sh"], default="allow")
    async with Runner([shell(box.folder)], sandbox="workspace-write", policy=asking, approver=Yes()) as opened:
        result = await opened.run("sh", {"line": "echo x > here"})
    assert (result.outcome, len(asked)) == ("succeeded", 1)
