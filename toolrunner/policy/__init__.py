"""The policy engine (the folder `policies/` at the top level is its data): may a call run, who says so, and for how long.

`rules` judges, `decisions` is what a person or program answers, `approvals` asks, `grants` remembers.
"""

from toolrunner.policy.answers import Answer, AnswerKind
from toolrunner.policy.approvals import ApprovalDesk, Cancellable, Spawn
from toolrunner.policy.decisions import ApprovalRequest, Approver, Decision, DecisionKind, GrantScope
from toolrunner.policy.grants import Grant, Grants
from toolrunner.policy.rules import Judgement, Policy, Rule, Verdict, strictest

__all__ = [
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
    "Policy",
    "Rule",
    "Spawn",
    "Verdict",
    "strictest",
]
