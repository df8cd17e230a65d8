"""Idempotency keys in a journal: what each says to the next call that brings it. No state.

Invariant 8: a call that started is never started again by us. So a key is free only when its call is proven to have had no
effects; a call whose end nobody saw is LOST and its key in doubt. A `call/reconciled` is the word of somebody who looked.
"""

from typing import final

from toolrunner.journal.clocks import boottime, this_process
from toolrunner.pipeline.idempotency import Claim, Entry, KeyState, arguments_digest, state_after
from toolrunner.recovery.past import Past, PastCalls, claim_in
from toolrunner.recovery.stories import Story
from toolrunner.results import ToolResult

_BY_KEY = "key:"


@final
class PastKeys:
    """`KeyTable.past`."""

    def __init__(self, calls: PastCalls) -> None:
        self._calls = calls

    def __call__(self, key: str, run_id: str) -> Entry | None:
        """The last other call that has this key, if it still has it.

        A call of this owner whose key the table has forgotten is found as well. One that is not over is in the table itself.
        """
        found: Entry | None = None
        by_key = key.startswith(_BY_KEY)
        names = (key,) if by_key else (key, self._calls.keyed(key))
        for past in self._calls.with_key(key.removeprefix(_BY_KEY)) if by_key else self._calls.that_claimed(key):
            for story in past.stories.by_run.values():
                if story.run_id != run_id:
                    found = self._entry(past, story, names) or found
        return found

    @staticmethod
    def _entry(past: Past, story: Story, names: tuple[str, ...]) -> Entry | None:
        result = story.settled.result if story.settled is not None else None
        # One that was replayed, refused or in doubt itself never had the key; what has no result is pending, or runs.
        if result is None or result.replayed or (not result.started and state_after(result) is None):
            return None
        state = _state(story, result)
        expires = _expires(past, story, names)
        if state is None or (expires is not None and expires <= boottime() and state is KeyState.COMPLETED):
            return None
        digest = None if story.run_id in past.altered else arguments_digest(story.name, story.arguments)
        return Entry(digest, story.run_id, None, expires, state, result)


def _state(story: Story, result: ToolResult) -> KeyState | None:
    """What its key says; None = it is free. A look afterwards tells more than the result."""
    match story.reconciled.as_ if story.reconciled is not None else "unknown":
        case "completed":
            return KeyState.COMPLETED
        case "none":
            return None
        case _:
            return state_after(result)


def _expires(past: Past, story: Story, names: tuple[str, ...]) -> float | None:
    """When the key of a call's arguments is free again, in seconds of this boot; None for one that never is.

    Of a claim of another boot it is known that it is at least as old as this boot.
    """
    claim: Claim | None = None
    for record in story.decisions:
        claim = claim_in(record) or claim
        if claim is not None and claim.key in names:
            if claim.expires is None or claim.seconds is None:
                return None
            return claim.expires if past.boot_of(record.seq) == this_process().boot_id else claim.seconds
    return None
