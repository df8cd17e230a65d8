"""Services: what calls may use of the runner that runs them. Built once by the runner; frozen, so nobody rewires it later."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from toolrunner.loops import LoopCall, Post
from toolrunner.observe import Watches
from toolrunner.pipeline.doubts import Doubts
from toolrunner.pipeline.hooks import Hooks
from toolrunner.pipeline.idempotency import KeyTable
from toolrunner.pipeline.leases import LeaseDesk
from toolrunner.pipeline.shells.table import Shells
from toolrunner.pipeline.threads import WorkerThreads
from toolrunner.policy import ApprovalDesk, Grants, Policy
from toolrunner.process import JobTable, Prepared
from toolrunner.records import Journal
from toolrunner.results import ToolResult
from toolrunner.sandbox import Sandbox
from toolrunner.tasks import TaskRoot
from toolrunner.tools import Catalogue


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one runner. Seconds where nothing else is said."""

    hook_timeout: float = 30.0
    settle_timeout: float | None = None
    kill_after: float = 2.0
    max_threads: int = 32
    max_processes: int = 256
    dedupe_by_arguments: bool = False
    spill_dir: Path | None = None
    """Where output past a command's limit is kept whole; None = it is only counted."""


@dataclass(frozen=True, slots=True)
class Services:
    """One runner's parts, as the pipeline sees them. `prepare_process` and `run_child` are handed in: they live in rows above."""

    root: TaskRoot
    catalogue: Catalogue
    journal: Journal
    emit: Callable[..., Awaitable[None] | None]
    """Append records to the journal, then show them to observers. Returns what to await until they are durable, or None."""
    hooks: Hooks
    policy: Policy | None
    approvals: ApprovalDesk
    grants: Grants
    leases: LeaseDesk
    threads: WorkerThreads
    keys: KeyTable
    watches: Watches
    prepare_process: Callable[..., Awaitable[Prepared]]
    shells: Shells
    run_child: Callable[..., Awaitable[ToolResult]]
    jobs: JobTable
    post: Post
    """Runs a callback on the runner's loop, from any thread."""
    loop_call: LoopCall
    """Runs a function on the runner's loop, from another thread, and waits for it."""
    loop_thread: int
    """`threading.get_ident()` of the loop."""
    limits: Limits = field(default_factory=Limits)
    doubts: Doubts = field(default_factory=Doubts)
    session: str = ""
    sandbox: Sandbox | None = None
    """What contains every process; `prepare_process` does so with those that are not contained when they come to it."""
