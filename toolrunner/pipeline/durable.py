"""The waits for the journal, each within a bound: a disk that never answers must not hold a call for ever. No state."""

from collections.abc import Awaitable

import anyio

from toolrunner.effects import DURABLE_WAIT
from toolrunner.errors import JournalError
from toolrunner.facts import Note, NoteKind
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall


async def journal_problem(state: ActiveCall, services: Services, pending: Awaitable[None] | None) -> str | None:
    """Wait until what was appended is durable. If it is not, the call notes that once, and the reason is returned."""
    problem = await durable_problem(services, pending)
    if problem is not None:
        note = Note(NoteKind.JOURNAL_ERROR, f"The journal cannot be written: {problem}.")
        if note not in state.notes:
            state.notes.append(note)
    return problem


async def durable_problem(services: Services, pending: Awaitable[None] | None) -> str | None:
    """The same for what is no call's: the reason alone."""
    problem = None
    if pending is not None:
        with anyio.move_on_after(DURABLE_WAIT) as bound:
            try:
                await pending
            except JournalError as error:
                problem = error.problem
        if bound.cancelled_caught:
            problem = f"it did not answer within {DURABLE_WAIT:g} s"
    return services.journal.error or problem
