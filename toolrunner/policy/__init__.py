"""The policy engine (the folder `policies/` at the top level is its data): may a call run, who says so, and for how long.

`rule` and `policies` judge by what `reading` sees of a call, `choosing` finds the rules that speak about it; `documents` and
`loading` are policies in files; `decisions` is what a person or program answers, `approvals` asks, `grants` and `remembered` keep
what was allowed.
"""

from toolrunner.policy.answers import Answer, AnswerKind
from toolrunner.policy.approvals import ApprovalDesk, Cancellable, Spawn
from toolrunner.policy.decisions import ApprovalRequest, Approver, Decision, DecisionKind, GrantScope
from toolrunner.policy.grants import Grant, Grants
from toolrunner.policy.loading import Opened, load_policy, open_policy
from toolrunner.policy.policies import Policy, Remember
from toolrunner.policy.reading import NAMES, Names, Subject
from toolrunner.policy.remembered import Kept, forget, remember, remembered
from toolrunner.policy.rule import Rule
from toolrunner.policy.verdicts import Judgement, Verdict, strictest

__all__ = [
    "NAMES",
    "Answer",
    "AnswerKind",
    "ApprovalDesk",
    "ApprovalRequest",
    "Approver",
    "Cancellable",
    "Decision",
    "DecisionKind",
    "Grant",
    "GrantScope",
    "Grants",
    "Judgement",
    "Kept",
    "Names",
    "Opened",
    "Policy",
    "Remember",
    "Rule",
    "Spawn",
    "Subject",
    "Verdict",
    "forget",
    "load_policy",
    "open_policy",
    "remember",
    "remembered",
    "strictest",
]
