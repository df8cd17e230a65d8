"""Recovery: what a journal knows of calls whose host is gone, said truthfully, once, by the journal's next owner.

`stories` = the records of each call brought together, `fold` = the one result that they allow, `plan` = what is to be added,
`survivors` = processes that outlived their host, `opening` = all of it for one journal. `past` reads the journal, `keys` answers
for its idempotency keys, `questions` finds the calls that still wait for an answer from elsewhere, `resume` lets them go on.
"""

from toolrunner.recovery.fold import recovered
from toolrunner.recovery.keys import PastKeys
from toolrunner.recovery.opening import Recovered, dry_run, recover
from toolrunner.recovery.past import Past, PastCalls, read_all, read_open
from toolrunner.recovery.plan import Plan, plan, processes
from toolrunner.recovery.questions import Question, open_question
from toolrunner.recovery.resume import record_answer, reopened, resume
from toolrunner.recovery.stories import Stories, Story, read_stories
from toolrunner.recovery.survivors import Life, Survivor

__all__ = [
    "Life",
    "Past",
    "PastCalls",
    "PastKeys",
    "Plan",
    "Question",
    "Recovered",
    "Stories",
    "Story",
    "Survivor",
    "dry_run",
    "open_question",
    "plan",
    "processes",
    "read_all",
    "read_open",
    "read_stories",
    "record_answer",
    "recover",
    "recovered",
    "reopened",
    "resume",
]
