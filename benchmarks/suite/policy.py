"""Policy: one judgement with 200 rules of every sort, for calls that show a path, a command line, a URL."""

import time

from benchmarks.benchmark import Benchmark, Order, Report
from benchmarks.measure import Contender, Trial, interleave
from benchmarks.rows import Bound, row
from toolrunner.policy import Policy, Rule, Subject, Verdict

RULES = 200

SHARE = 20
"""Judgements are short: each contender is run so many times as often."""

CALLS = {
    "a path": Subject("write_file", arguments={"path": "src/app/main.py", "content": "x = 1\n" * 200}),
    "a command line": Subject("shell", arguments={"command": "git log --oneline | head -20"}),
    "a URL": Subject("fetch", arguments={"url": "https://www.example.com/a/b"}),
}


def _rule(number: int) -> Rule:
    """None of them matches the calls, so nothing ends the search early."""
    verdict = list(Verdict)[number % 3]
    match number % 5:
        case 0:
            return Rule(verdict, [f"tool_{number}_*"])
        case 1:
            return Rule(verdict, paths=[f"/srv/project{number}/**", f"/**/.secret{number}"])
        case 2:
            return Rule(verdict, hosts=[f"h{number}.example.com", f"*.d{number}.example.org"])
        case 3:
            return Rule(verdict, commands=[f"prog{number} sub *"])
        case _:
            return Rule(verdict, arguments={"branch": [f"release/{number}"]})


def _judging(policy: Policy, name: str, subject: Subject) -> Contender:
    async def judge() -> Trial:
        began = time.perf_counter()
        found = policy.judge(subject)
        took = time.perf_counter() - began
        assert found.decision is Verdict.ASK
        return Trial(took * 1_000_000)

    return Contender(f"toolrunner, {name}", judge)


async def run(order: Order) -> Report:
    """Each sort of call in turn, so that a busy moment is everybody's."""
    policy = Policy([_rule(number) for number in range(RULES)])
    found = await interleave([_judging(policy, name, subject) for name, subject in CALLS.items()], order.runs * SHARE)
    rows = [row("policy", series, bound=Bound(p50=50), unit="us", note=f"{RULES} rules") for series in found]
    return Report(rows, {"policy: one judgement": list(found)})


POLICY = Benchmark("policy", "one judgement of a policy with 200 rules", 50, run)
