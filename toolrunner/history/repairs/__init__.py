"""Mends a history that a provider would refuse, as the last guard before it is sent. Pure; no state.

Prevention is better: a history that this project wrote never needs it. What is whole stays the object it was; whatever is
left out, moved or added is told as a `Repair`.
"""

from toolrunner.history.atoms import Originals, joined, opened_messages, take_apart
from toolrunner.history.repairs.answers import mend_answers
from toolrunner.history.repairs.content import leave_out_unsendable, mend_calls
from toolrunner.history.repairs.order import join_neighbours, mend_order, with_both_ends
from toolrunner.history.repairs.work import Repair, Work
from toolrunner.history.shapes import shape_of
from toolrunner.wire import Item

__all__ = ["Repair", "repair"]

_STEPS = (leave_out_unsendable, mend_calls, mend_answers, mend_order, join_neighbours, with_both_ends)
"""Content first: what is left out may take a call's answer with it. Ends last: they are whatever the rest has left there."""

_PASSES = 5
"""A step may uncover work for one before it (a call left out leaves a thought at the end); each pass leaves less."""


def repair(messages: list[Item], provider: str) -> list[Repair]:
    """Mend `messages` in place; returns what was done, [] when nothing was wrong. A second time does nothing.

    A call without a result is answered with a text that says no more than that nothing is known of it.

    Raises:
        ConfigError: the provider is unknown.
        MalformedItem: a message is not of the form its API promises.
    """
    shape = shape_of(provider)
    atoms = take_apart(shape, messages)
    originals = Originals(opened_messages(shape, messages), tuple(atoms))
    work = Work(shape, atoms)
    for _ in range(_PASSES):
        before = len(work.repairs)
        for step in _STEPS:
            step(work)
        if len(work.repairs) == before:
            break
    if work.repairs:
        messages[:] = joined(shape, work.atoms, originals)
    return work.repairs
