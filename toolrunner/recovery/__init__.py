"""Recovery: what a journal knows of calls whose host is gone, said truthfully, once, by the journal's next owner.

`stories` = the records of each call brought together, `fold` = the one result that they allow, `plan` = what is to be added.
"""

from toolrunner.recovery.fold import recovered
from toolrunner.recovery.plan import Plan, plan, processes
from toolrunner.recovery.stories import Stories, Story, read_stories

__all__ = ["Plan", "Stories", "Story", "plan", "processes", "read_stories", "recovered"]
