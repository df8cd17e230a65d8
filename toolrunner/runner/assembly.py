"""Assembly: puts one runner's parts together, once, on the loop that enters it. No state."""

import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from toolrunner.errors import PolicyError
from toolrunner.journal import boottime
from toolrunner.loops import loop_caller, poster
from toolrunner.observe import Watches
from toolrunner.pipeline.circles import WaitGraph
from toolrunner.pipeline.hooks import Hooks
from toolrunner.pipeline.idempotency import Entry, KeyTable
from toolrunner.pipeline.jobs import JobRecords
from toolrunner.pipeline.leases import LeaseDesk
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.shells.table import Shells
from toolrunner.pipeline.threads import WorkerThreads
from toolrunner.policy import ApprovalDesk, Grants, Kept, Policy, Remember, remembered
from toolrunner.process import JobTable, Prepared
from toolrunner.records import Journal
from toolrunner.results import ToolResult
from toolrunner.runner.containing import sandbox_of
from toolrunner.runner.hub import Hub
from toolrunner.runner.settings import Settings
from toolrunner.tasks import TaskRoot
from toolrunner.tools import Catalogue

_logger = logging.getLogger("toolrunner")


def assemble(  # noqa: PLR0913 - the one place where everything meets
    *,
    catalogue: Catalogue,
    hooks: Hooks,
    journal: Journal,
    hub: Hub,
    root: TaskRoot,
    settings: Settings,
    prepare_process: Callable[..., Awaitable[Prepared]],
    run_child: Callable[..., Awaitable[ToolResult]],
    past_keys: Callable[[str, str], Entry | None] | None,
) -> Services:
    """The parts as the pipeline sees them."""
    post = poster()
    watches = Watches()
    graph = WaitGraph()
    return Services(
        root=root,
        catalogue=catalogue,
        journal=journal,
        emit=hub.emit,
        hooks=hooks,
        policy=settings.policy,
        approvals=_desk(settings, hub, root),
        grants=Grants(kept=_kept(settings.policy)),
        leases=LeaseDesk(graph),
        threads=WorkerThreads(),
        keys=KeyTable(graph, past=past_keys),
        watches=watches,
        prepare_process=prepare_process,
        shells=Shells(prepare_process),
        run_child=run_child,
        jobs=JobTable(prepare_process, root.spawn, JobRecords(hub.emit, watches)),
        post=post,
        loop_call=loop_caller(post),
        loop_thread=threading.get_ident(),
        limits=settings.limits(),
        sandbox=sandbox_of(settings.sandbox),
    )


def _desk(settings: Settings, hub: Hub, root: TaskRoot) -> ApprovalDesk:
    """A policy may say that nobody is asked, not even by hooks, and that an answer is waited for less long."""
    policy = settings.policy
    limits = [settings.approval_timeout, policy.approval_timeout if policy is not None else None]
    return ApprovalDesk(
        settings.approver if policy is None or policy.asks else None,
        append=hub.emit,
        spawn=partial(root.spawn, foreign=True),
        limit=min(limit for limit in limits if limit is not None),
        boottime=boottime,
    )


def _kept(policy: Policy | None) -> Mapping[str, Kept]:
    """What the user allowed for good, where the policy wants to know. A file that cannot be used means that more is asked."""
    if policy is None or policy.remember is not Remember.USER:
        return {}
    try:
        return remembered()
    except PolicyError as error:
        _logger.warning("%s", error)
        return {}
