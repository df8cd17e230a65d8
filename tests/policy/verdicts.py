"""What one rule decides about a call that is given by its arguments."""

from typing import Any

from toolrunner.policy import Policy, Rule, Subject, Verdict

ALLOW, DENY = Verdict.ALLOW, Verdict.DENY


def decided(rule: Rule, arguments: dict[str, Any], **more: Any) -> Verdict:
    workspace = more.pop("workspace", None)
    default = DENY if rule.decision is ALLOW else ALLOW
    return Policy([rule], default=default, workspace=workspace).judge(Subject("t", arguments=arguments, **more)).decision
