"""Doubts: calls that ended with their effects unknown and whose tool can find out, and what was found out since.

State: one Doubt per such call, kept until somebody knows; changed on the loop, synchronously. Only a tool that declares
`reconcile` ever has one, and only one that declares `resources` too keeps later writers of those out. Nobody waits in here.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, final

from toolrunner.calls import ToolCall
from toolrunner.facts import Effects, EffectState
from toolrunner.results import ToolResult
from toolrunner.tools import InvalidArguments, Reconciled, Resource, ResourceMode, Tool

KEPT_VERDICTS = 10_000
"""Doubts that were cleared up are forgotten beyond this many, oldest first; open ones never."""


@final
@dataclass(eq=False, slots=True)
class Doubt:
    """One call of which nobody knows whether it took effect."""

    run_id: str
    tool: Tool[..., Any]
    call: ToolCall
    effects: Effects
    writes: frozenset[str] = frozenset()
    """The keys of the resources that it may have written to."""
    deps: Any = None
    still_runs: bool = False
    """Something of it was left running, so a look at its effects now would tell nothing of later."""
    verdict: Reconciled | None = None
    """What was found out; None until the tool was asked, and `unknown` if that told nothing: it is asked once."""
    waiting: list[Callable[[], object]] | None = None
    """Who is to be told when the tool has answered; None = it was not asked yet."""

    @property
    def is_open(self) -> bool:
        """Nobody knows yet."""
        return self.verdict is None or self.verdict is Reconciled.UNKNOWN


@final
class Doubts:
    """Those of one runner."""

    __slots__ = ("_by_run", "_open")

    def __init__(self) -> None:
        self._by_run: dict[str, Doubt] = {}
        self._open: dict[str, Doubt] = {}
        """Those of `_by_run` that are open; few, and mostly none."""

    def add(self, doubt: Doubt) -> None:
        """A call ended so. Before it gives its locks back: whoever gets them finds it. The first one of a call stays."""
        if doubt.run_id not in self._by_run:
            self._by_run[doubt.run_id] = self._open[doubt.run_id] = doubt

    def load(self, result: ToolResult, tool: Tool[..., Any], *, call: ToolCall | None = None, deps: Any = None) -> bool:
        """A call of an earlier runner, as its journal tells it. False: nothing is in doubt, or its tool cannot find out.

        `call` is the one that was made, where the journal has more of it than the result. Of arguments that were redacted nobody
        can tell which resources they meant: such a doubt keeps nobody out.
        """
        if not result.started or result.effects.state is not EffectState.UNKNOWN or tool.reconciler is None or result.replayed:
            return False
        arguments = result.arguments if isinstance(result.arguments, dict) else {}
        made = call or ToolCall(
            result.name, arguments, call_id=result.call_id, kind=result.kind, provider_meta=result.provider_meta
        )
        try:
            writes = written(tool.locks(tool.parse(arguments)))
        except InvalidArguments:
            writes = frozenset()
        self.add(Doubt(result.run_id, tool, made, result.effects, writes, deps, still_runs=bool(result.still_running)))
        return True

    def of(self, run_id: str) -> Doubt | None:
        """The doubt about one call, open or cleared up."""
        return self._by_run.get(run_id)

    def about(self, resources: Iterable[Resource]) -> Doubt | None:
        """The oldest open doubt about something that a call with these locks would write to."""
        if not self._open:  # nearly always
            return None
        writes = written(resources)
        return next((doubt for doubt in self._open.values() if doubt.writes & writes), None)

    def answer(self, doubt: Doubt, verdict: Reconciled) -> None:
        """Somebody looked. The last word counts; the user may still know what the tool could not tell."""
        doubt.verdict = verdict
        if not doubt.is_open:
            self._open.pop(doubt.run_id, None)
            self._forget_oldest()

    def drop(self, run_id: str) -> None:
        """It is in doubt no more, by what is known of the call itself."""
        self._open.pop(run_id, None)
        self._by_run.pop(run_id, None)

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    def _forget_oldest(self) -> None:
        surplus = len(self._by_run) - len(self._open) - KEPT_VERDICTS
        if surplus > 0:
            cleared = [run_id for run_id, doubt in self._by_run.items() if not doubt.is_open]
            for run_id in cleared[:surplus]:
                del self._by_run[run_id]


def written(resources: Iterable[Resource]) -> frozenset[str]:
    """The keys that are written to."""
    return frozenset(resource.key for resource in resources if resource.mode == ResourceMode.WRITE)
