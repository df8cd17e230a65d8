"""Run one shell script contained, and own files the way a command in a workspace would."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import anyio

from toolrunner.process import LaunchPlan, Prepared, ProcessEnd, Supervisor
from toolrunner.sandbox import Sandbox

BOUND = 60.0


@final
@dataclass(frozen=True, slots=True)
class Box:
    """A supervisor and the folder that its commands work in."""

    supervisor: Supervisor
    folder: Path

    async def prepare(self, profile: str | Mapping[str, Any] | Sandbox, script: str, **plan: Any) -> Prepared:
        sandbox = profile if isinstance(profile, Sandbox) else Sandbox(profile)
        on_output = plan.pop("on_output", None)
        wanted = LaunchPlan(**{"argv": ("sh", "-c", script), "cwd": str(self.folder), "kill_after": 1.0, **plan})
        return await self.supervisor.prepare(await sandbox.wrap(wanted), on_output=on_output)

    async def run(self, profile: str | Mapping[str, Any] | Sandbox, script: str, **plan: Any) -> ProcessEnd:
        with anyio.fail_after(BOUND):
            prepared = await self.prepare(profile, script, **plan)
            prepared.go()
            return await prepared.wait()

    async def out(self, profile: str | Mapping[str, Any] | Sandbox, script: str, **plan: Any) -> str:
        """What it printed, errors too; it must have run."""
        end = await self.run(profile, script, **plan)
        assert end.started, end
        return end.facts.stdout + end.facts.stderr

    def write(self, name: str, text: str = "") -> Path:
        """A file in the workspace, of whoever the workspace is."""
        path = self.folder / name
        for folder in reversed(path.relative_to(self.folder).parents):
            if not (self.folder / folder).is_dir():
                (self.folder / folder).mkdir()
                self._give(self.folder / folder)
        path.write_text(text)
        self._give(path)
        return path

    def _give(self, path: Path) -> None:
        facts = self.folder.stat()
        os.chown(path, facts.st_uid, facts.st_gid)


def profile(**tables: Any) -> dict[str, Any]:
    """A profile of values."""
    return {"schema": 1, "summary": "for a test", **tables}
