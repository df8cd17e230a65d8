"""Scans of watched folders around a body, and the note that somebody writes, for everybody else's scans.

No state of its own: a call's watch hangs on its ActiveCall. Scans block, so they run in a thread of the runner.
"""

import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

import anyio

from toolrunner.effects import Scan
from toolrunner.errors import ConfigError
from toolrunner.facts import Attribution, Change
from toolrunner.journal import is_own
from toolrunner.loops import poster
from toolrunner.observe import Writer, diff, rescan, snapshot
from toolrunner.pipeline.ends import CallWatch
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.results import Code, Error, ErrorKind, Outcome
from toolrunner.tasks import wait_through
from toolrunner.tools import BodyKind

T = TypeVar("T")
_logger = logging.getLogger("toolrunner")


async def begin_watch(state: ActiveCall, services: Services) -> bool:
    """Look at the watched folders before the body. False = one of them cannot be watched, and the call is refused for it."""
    assert state.registration is not None
    tool = state.registration.tool
    if state.watch is not None:
        return True
    roots = [*tool.watch, *(state.command.watch if state.command is not None else ())]
    if not roots:
        if not tool.annotations.read_only:
            state.watch = CallWatch(services.watches.writer_active(), None)
        return True
    # A command without a sandbox may write anywhere; so may any body, but in this process people know what theirs do.
    unconfined = tool.kind in (BodyKind.COMMAND, BodyKind.SHELL) and not tool.annotations.read_only
    try:
        watch = services.watches.begin(roots, unconfined=unconfined)
        state.watch = CallWatch(watch, None)  # at once, so that it is let go whatever becomes of the scan
        before = await in_thread(services, lambda: snapshot(roots))
    except (ConfigError, RuntimeError) as error:  # RuntimeError: no thread could be started for it
        drop_watch(state)
        state.refuse(Outcome.REJECTED, Code.SPAWN_REFUSED, Error(ErrorKind.SETUP, str(error)))
        return False
    state.watch = CallWatch(watch, before)
    return True


def drop_watch(state: ActiveCall) -> None:
    """Nothing of the call runs that could write, or will: it is no writer any more. Called again it does nothing."""
    watch = state.watch.watch if state.watch is not None else None
    state.watch = None
    if isinstance(watch, Writer):
        watch.close()
    elif watch is not None:
        watch.finish()


async def end_watch(state: ActiveCall, services: Services) -> Scan | None:
    """Look again, after a body, and say what changed since before the first one. None = nobody looked."""
    own = state.watch
    if own is None or own.before is None or isinstance(own.watch, Writer) or not state.started:
        drop_watch(state)
        return state.scan
    before, watch = own.before, own.watch
    try:
        after = await in_thread(services, lambda: rescan(before))
        changes = _by_others(diff(before, after, watch.finish()), services)
    except Exception:  # the body is over whatever the look shows; one that failed has seen nothing, and says so
        _logger.exception("the scan after call %s failed", state.run_id)
        return _joined(state.scan, Scan((), before.roots, complete=False))
    finally:
        drop_watch(state)
    return _joined(state.scan, Scan(changes, before.roots, before.complete and after.complete))


def _by_others(changes: Iterable[Change], services: Services) -> tuple[Change, ...]:
    """Without what toolrunner itself wrote there meanwhile, which is nobody's effect: journals, and output that was spilled."""
    spill = services.limits.spill_dir
    ours = os.path.realpath(spill) + os.sep if spill is not None else None
    return tuple(
        one for one in changes if not is_own(one.path, None) and (ours is None or not (one.path + os.sep).startswith(ours))
    )


def _joined(earlier: Scan | None, later: Scan) -> Scan:
    """The changes of all attempts of one call: what an earlier one did is not undone by a later one that did nothing."""
    if earlier is None:
        return later
    changes = {change.path: change for change in earlier.changes}
    for change in later.changes:
        before = changes.get(change.path)
        ours = before is not None and before.attribution is Attribution.EXCLUSIVE
        changes[change.path] = replace(change, attribution=Attribution.EXCLUSIVE) if ours else change
    return Scan(tuple(changes.values()), later.where, earlier.complete and later.complete)


async def in_thread(services: Services, fn: Callable[[], T]) -> T:
    """Run blocking code in a thread of the runner, to its end, whatever is cancelled meanwhile."""
    done = anyio.Event()
    box: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            box.append(fn())
        except BaseException as error:  # noqa: BLE001 - raised again below, in the task that asked
            errors.append(error)

    services.threads.start(run, poster(), done.set)
    await wait_through(done)
    if errors:
        raise errors[0]
    return box[0]
