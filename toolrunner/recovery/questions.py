"""Questions that were asked elsewhere and may still be answered although the host that asked is gone. Pure; no state.

Such a call stays open over a restart. It is run with what is on record, so it must all be there: a call of which something was
masked or cut when it was written is closed like any other that never started.
"""

from dataclasses import dataclass
from typing import final

from toolrunner.journal.clocks import boottime, this_process
from toolrunner.policy.approvals import ASKED_ELSEWHERE
from toolrunner.records import CallAsked
from toolrunner.recovery.past import Past
from toolrunner.recovery.stories import Story


@final
@dataclass(frozen=True, slots=True)
class Question:
    """A question without an answer. `expires` in seconds of CLOCK_BOOTTIME of this boot."""

    story: Story
    asked: CallAsked
    expires: float


def may_be_answered(past: Past, story: Story) -> bool:
    """Whether the call stays open."""
    return open_question(past, story) is not None


def open_question(past: Past, story: Story) -> Question | None:
    """The call's question, if it was asked elsewhere, has no answer, and its time is not over.

    A question of another boot is over: nobody knows how long that boot lasted after it was asked.
    """
    recorded, asked = story.recorded, story.asked
    if recorded is None or asked is None or story.answered is not None or asked.expires is None:
        return None
    if story.effects:  # of hooks; what comes now would be numbered like them
        return None
    if story.dispatched or story.stop is not None or story.denial is not None or recorded.parent_run_id is not None:
        return None
    if story.run_id in past.altered or not _says_elsewhere(story, asked.seq):
        return None
    if past.boot_of(asked.seq) != this_process().boot_id or asked.expires <= boottime():
        return None
    return Question(story, asked, asked.expires)


def _says_elsewhere(story: Story, seq: int) -> bool:
    return any(one.by == ASKED_ELSEWHERE and one.seq > seq for one in story.decisions)
