"""The idempotency check between preparation and action: a key is taken, waited for, replayed, or answered with IN_DOUBT."""

from toolrunner.facts import Note, NoteKind
from toolrunner.journal.clocks import boottime
from toolrunner.pipeline.circles import line_of
from toolrunner.pipeline.idempotency import CLAIMED_BY, Claim, Entry, KeyState, KeyTable, arguments_digest, state_after
from toolrunner.pipeline.leases import WouldDeadlock
from toolrunner.pipeline.reconcile import settle
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.records import CallDecided
from toolrunner.results import Code, Error, ErrorKind, Outcome
from toolrunner.tools import Reconciled

_FOUND_SINCE = Note(NoteKind.RECONCILED, "It was looked up since: it did take effect; do not repeat it.")
"""Facts are not written anew by a later look, so the answer says of itself that more is known."""


async def take_key(state: ActiveCall, services: Services) -> bool:
    """Take the call's key, if it has one. False = the call is answered without being started: replayed, in doubt or refused."""
    found = _key_of(state, services)
    if found is None:
        return True
    key, seconds = found
    digest = arguments_digest(state.name, state.arguments)
    while True:
        entry = services.keys.claim(key, digest, state, seconds)
        if entry is None:
            _took(state, services, key, seconds)
            return True
        if entry.digest not in (None, digest):
            text = f"idempotency key {state.call.idempotency_key!r} was used with another tool or other arguments in this session"
            state.refuse(Outcome.REJECTED, Code.INVALID_ARGUMENTS, Error(ErrorKind.INVALID_ARGUMENTS, text))
            return False
        if not await _says_more(state, services, entry):
            return False


async def _says_more(state: ActiveCall, services: Services, entry: Entry) -> bool:
    """Wait, bounded by the call that has the key or by a look of its tool. True = look again; False = the call is answered."""
    if entry.state is KeyState.IN_DOUBT and await _found_out(state, services, entry):
        return True
    if entry.state is not KeyState.RUNNING:
        _answer(state, entry)
        return False
    try:
        is_over = await _wait_for(services.keys, entry, state)
    except WouldDeadlock as error:
        state.refuse(Outcome.REJECTED, Code.SPAWN_REFUSED, Error(ErrorKind.LIMIT, str(error)))
        return False
    if not is_over:
        state.refuse_if_aborted()
    return is_over


async def _found_out(state: ActiveCall, services: Services, entry: Entry) -> bool:
    """Have the tool of the call that is in doubt asked, if it can tell; it is asked once. True = its key says more now."""
    verdict = await settle(services, entry.run_id, state.signal)
    if verdict is Reconciled.UNKNOWN or state.refuse_if_aborted():
        return False
    services.keys.clear_up(entry.run_id, completed=verdict is Reconciled.COMPLETED)
    return True


def _took(state: ActiveCall, services: Services, key: str, seconds: float | None) -> None:
    state.claimed_key = key
    if state.call.idempotency_key is None:
        claim = Claim(key, None if seconds is None else boottime() + seconds, seconds)
        # Rides in the commit of `call/dispatched`: a call that started has said which key it took.
        services.emit(CallDecided(run_id=state.run_id, decision="allow", by=CLAIMED_BY, text=claim.text()))


def _key_of(state: ActiveCall, services: Services) -> tuple[str, float | None] | None:
    assert state.registration is not None
    if state.call.idempotency_key is not None:
        return f"key:{state.call.idempotency_key}", None
    by_arguments = state.registration.tool.dedupe_by_arguments
    if by_arguments is False and not services.limits.dedupe_by_arguments:
        return None
    seconds = None if isinstance(by_arguments, bool) else float(by_arguments)
    return f"arguments:{state.registration.tool.version}:{arguments_digest(state.name, state.arguments)}", seconds


def _answer(state: ActiveCall, entry: Entry) -> None:
    state.about_run_id = entry.run_id
    if entry.state is KeyState.COMPLETED and entry.result is not None:
        state.replay = entry.result
        if state_after(entry.result) is not KeyState.COMPLETED:  # its result leaves that open, so it was looked up
            state.notes.append(_FOUND_SINCE)
        return
    text = f"call {entry.run_id} with the same key was started and may have taken effect; check before it is made again"
    state.refuse(Outcome.REJECTED, Code.IN_DOUBT, Error(ErrorKind.IN_DOUBT, text))


async def _wait_for(keys: KeyTable, entry: Entry, state: ActiveCall) -> bool:
    """Wait until the call that has the key settled; False if the abort came first. Raises WouldDeadlock."""
    leases = frozenset(call.lease for call in state.ancestors() if call.lease is not None)
    waiting = keys.wait(entry, line_of(state), leases)
    unsubscribe = state.signal.on_abort(waiting.woken.set)
    try:
        if entry.state is KeyState.RUNNING and not entry.freed:
            await waiting.woken.wait()
    finally:
        unsubscribe()
        keys.leave(waiting)
    return entry.state is not KeyState.RUNNING or entry.freed
