"""`toolrunner doctor`: which promises hold on this machine, and for each that does not: why, and what to do. Changes nothing.

State: none. It tries things out rather than guess: the supervising process is started and proves itself.
"""

import importlib.metadata
import io
import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import anyio
from rich.console import Console
from rich.text import Text

from toolrunner.cli.printable import shown
from toolrunner.facts import Containment
from toolrunner.process import Abilities, Supervisor
from toolrunner.process.cgroups import describe_own
from toolrunner.process.probe import processes_at_once
from toolrunner.runner.settings import DEFAULT_PARALLEL
from toolrunner.sandbox import probing

DISTRIBUTION = "agent-toolrunner"
OTHER = "toolrunner"
"""Another project on the index, with our import name."""

NOBODY = 65534
"""The overflow user, whom every system has."""

PROBE_BOUND = 10.0
"""Seconds for the supervising process to prove itself; it takes 20 ms where it works."""


@final
@dataclass(frozen=True, slots=True)
class Promise:
    """One guarantee. `reason` and `fix` are empty where it holds."""

    name: str
    text: str
    holds: bool
    reason: str = ""
    fix: str = ""


@final
@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that was found out."""

    version: str
    python: str
    system: str
    user: str
    containment: str
    supervised_with: str | None
    max_processes: int
    cgroup: str
    open_files: int | None
    sandbox: tuple[str, ...]
    """What became of each program that could contain commands; the first that works is used. None is needed to run commands."""
    promises: tuple[Promise, ...]
    limits: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        """Whether everything holds that can hold anywhere."""
        return all(promise.holds for promise in self.promises)


async def examine() -> Findings:
    """Try it all out."""
    abilities = await _abilities()
    return Findings(
        version=version(),
        python=f"{platform.python_version()} ({sys.executable})",
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        user=_user(),
        containment=abilities.containment,
        supervised_with=abilities.python,
        max_processes=processes_at_once(),
        cgroup=_cgroup(),
        open_files=_open_files(),
        sandbox=await _sandboxes(),
        promises=tuple(_promises(abilities)),
        limits=(
            "a tool of the same user can read this program's own environment and files; only a sandbox closes that",
            "what a command hands to a program that was running before (docker, systemd-run, tmux, at) is not ended with it",
        ),
    )


def version() -> str:
    """The installed version; a checkout that was never installed has none."""
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return "unknown (not installed)"


async def _abilities() -> Abilities:
    supervisor = Supervisor()
    try:
        with anyio.fail_after(PROBE_BOUND):
            return await supervisor.abilities()
    except TimeoutError:
        return Abilities(Containment.BEST_EFFORT, None, (f"no answer within {PROBE_BOUND:.0f} s",), 1)
    finally:
        await supervisor.aclose()


async def _sandboxes() -> tuple[str, ...]:
    """Each candidate, run as a plain user: root is never contained, so what works for it alone is of no use."""
    if sys.platform != "linux":
        return ("none: sandboxes need Linux",)
    _, tried = await probing.find((NOBODY, NOBODY) if os.geteuid() == 0 else None, overlay=True)
    if not tried:
        return (f"none: {probing.INSTALL}",)
    return tuple(f"bubblewrap {each.path}: {_ability(each)}" for each in tried)


def _ability(found: probing.Found) -> str:
    if found.problem is not None:
        return f"does not work: {found.problem}"
    nested = "" if found.forbids_nesting else ", but leaves commands free to make namespaces of their own"
    return f"works{nested}; {'with' if found.overlays else 'without'} overlays"


def _promises(abilities: Abilities) -> Iterator[Promise]:
    kept = abilities.containment is not Containment.BEST_EFFORT
    reason = "; ".join(abilities.reasons) or ("" if kept else "keepers do not work here")
    fix = "" if kept else _keeper_fix(abilities)
    why = {} if kept else {"reason": reason, "fix": fix}
    yield Promise("kill_tree", "everything a command started is gone when its result is there, by the kernel's word", kept, **why)
    yield Promise("host_death", "killed outright, toolrunner leaves nothing running", kept, **why)
    yield Promise("time_limits", "time limits hold although this program is busy", kept, **why)
    most = processes_at_once()
    roomy = most >= DEFAULT_PARALLEL
    yield Promise(
        "room", f"{most} commands at once", roomy,
        *(() if roomy else (f"only {_open_files()} files may be open", "raise the limit: ulimit -n 1024")),
    )  # fmt: skip
    other = _other_distribution()
    yield Promise(
        "import_name", "the import name toolrunner is ours alone", other is None,
        *(() if other is None else (
            f"another distribution named {OTHER} {other} is installed; its files and ours lie in one folder",
            f"pip uninstall {OTHER}, then pip install --force-reinstall {DISTRIBUTION}",
        )),
    )  # fmt: skip


def _keeper_fix(abilities: Abilities) -> str:
    if sys.platform != "linux":
        return "run it on Linux (5.9 or newer), in a container say"
    if abilities.python is None:
        return "give it a Python interpreter: Runner(supervisor=lambda: Supervisor(python=...))"
    if not Path("/proc/self").is_dir():
        return "mount /proc"
    if not os.access(abilities.python, os.X_OK):
        return f"run it with a Python that this user may execute: {abilities.python} is none"
    return "use Linux 5.9 or newer with /proc mounted, and let no seccomp filter refuse prctl, pidfd_open and memfd_create"


def _cgroup() -> str:
    usable, text = describe_own()
    return text if usable else f"none to use unless one is given, Supervisor(cgroup=...): {text}"


def _other_distribution() -> str | None:
    try:
        return importlib.metadata.version(OTHER)
    except importlib.metadata.PackageNotFoundError:
        return None


def _user() -> str:
    return f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"


def _open_files() -> int | None:
    try:
        return os.sysconf("SC_OPEN_MAX")
    except (AttributeError, ValueError, OSError):
        return None


def as_json(findings: Findings) -> str:
    """One line."""
    content: dict[str, Any] = {"healthy": findings.healthy, **asdict(findings)}
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def for_people(findings: Findings, *, terminal: bool, width: int) -> str:
    """A page."""
    console = Console(
        file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False,
        force_terminal=terminal, color_system="standard" if terminal else None, legacy_windows=False,
    )  # fmt: skip
    with console.capture() as captured:
        for name, value in _facts(findings):
            console.print(Text.assemble((f"{name:<14}", "dim"), shown(value)), soft_wrap=True)
        console.print()
        for promise in findings.promises:
            mark, style = ("yes", "bold green") if promise.holds else ("NO ", "bold red")
            console.print(Text.assemble((mark, style), f"  {promise.name:<12}  ", shown(promise.text)), soft_wrap=True)
            for name, text in (("why", promise.reason), ("fix", promise.fix)):
                if text:
                    console.print(Text.assemble((f"     {name}  ", "dim"), shown(text)), soft_wrap=True)
        console.print()
        for limit in findings.limits:
            console.print(Text.assemble(("known limit   ", "dim"), shown(limit)), soft_wrap=True)
    return captured.get()


def _facts(findings: Findings) -> Iterator[tuple[str, str]]:
    yield "toolrunner", findings.version
    yield "python", findings.python
    yield "system", f"{findings.system}, {findings.user}"
    yield "containment", findings.containment
    yield "supervised by", findings.supervised_with or "nothing"
    yield "cgroup", findings.cgroup
    for text in findings.sandbox:
        yield "sandbox", text
    yield "open files", str(findings.open_files) if findings.open_files is not None else "unknown"
