"""Logs of conversations, written by hand: for the cancel windows and for single facts."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from toolrunner.facts import EffectRecord, Effects, EffectStage, EffectState, Evidence, StillRunning, Stop, StopPhase, Text
from toolrunner.facts.processes import StillRunningKind
from toolrunner.history.closing import closing_records
from toolrunner.markers import InterruptReason
from toolrunner.records import (
    AssistantAttempt,
    AssistantMessage,
    Block,
    CallBlock,
    CallDispatched,
    CallEnded,
    CallRecorded,
    CallSettled,
    ReasoningBlock,
    Record,
    RequestSent,
    StepEnded,
    StepStarted,
    TextBlock,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from toolrunner.results import Code, Ended, Error, Outcome, ToolResult
from toolrunner.wire import Provider

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MODELS = {
    Provider.ANTHROPIC: "claude",
    Provider.OPENAI_CHAT: "gpt",
    Provider.OPENAI_RESPONSES: "gpt",
    Provider.GEMINI: "gemini-3-pro",
    Provider.GEMINI_INTERACTIONS: "gemini-3-pro",
}
NOT_STARTED = Effects(EffectState.NONE, Evidence.NOT_STARTED, complete=True)
UNKNOWN = Effects(EffectState.UNKNOWN, None)
DONE = Effects(
    EffectState.COMPLETED, Evidence.REPORTED, records=(EffectRecord("e1", "file", "a.txt", EffectStage.APPLIED),), complete=True
)


def stop(phase: StopPhase = StopPhase.RUNNING) -> Stop:
    return Stop("caller", "user", phase, requested_at=AT)


def result(run_id: str, name: str, fate: str, call_id: str | None = None, text: str = "") -> ToolResult:
    """What a runner says of a call, by what became of it."""
    content = (Text(text),) if text else ()
    base: dict[str, Any] = {"run_id": run_id, "name": name, "call_id": call_id, "content": content}
    match fate:
        case "returned":
            return ToolResult(**base, outcome=Outcome.SUCCEEDED, started=True, ended=Ended.RETURNED, effects=DONE)
        case "failed":
            error = Error("exception", "no such file")
            return ToolResult(
                **base,
                outcome=Outcome.FAILED,
                code=Code.TOOL_ERROR,
                started=True,
                ended=Ended.RAISED,
                effects=UNKNOWN,
                error=error,
            )
        case "late":
            return ToolResult(
                **base, outcome=Outcome.ABORTED, code=Code.ABORTED, started=True, ended=Ended.RETURNED, effects=DONE, stop=stop()
            )
        case "stopped":
            return ToolResult(
                **base,
                outcome=Outcome.ABORTED,
                code=Code.ABORTED,
                started=True,
                ended=Ended.STOPPED,
                effects=UNKNOWN,
                stop=stop(),
            )
        case "running":
            left = (StillRunning(what=name, kind=StillRunningKind.BODY),)
            return ToolResult(
                **base,
                outcome=Outcome.ABORTED,
                code=Code.ABORTED,
                started=True,
                effects=UNKNOWN,
                stop=stop(),
                still_running=left,
            )
        case "not_started":
            return ToolResult(
                **base,
                outcome=Outcome.ABORTED,
                code=Code.ABORTED_BEFORE_DISPATCH,
                started=False,
                effects=NOT_STARTED,
                stop=stop(StopPhase.BEFORE_DISPATCH),
            )
    raise ValueError(fate)


@dataclass
class Log:
    """A journal in the making. `seq` is dense, from 1."""

    provider: Provider = Provider.ANTHROPIC
    cut_calls: Any = "omit"
    marker: Any = "user"
    records: list[Record] = field(default_factory=list)
    turn_id: str = ""
    step: int = 0
    runs: int = 0

    def add(self, record: Record) -> Record:
        self.records.append(replace(record, seq=len(self.records) + 1, at=AT))
        return self.records[-1]

    def turn(self, *said: str, source: Any = "human") -> None:
        self.turn_id, self.step = f"turn{1 + sum(isinstance(one, TurnStarted) for one in self.records)}", 0
        self.add(TurnStarted(run_id=self.turn_id, cut_calls=self.cut_calls, marker=self.marker))
        for text in said:
            self.say(text, source)

    def say(self, text: str, source: Any = "human") -> None:
        self.add(UserMessage(run_id=self.turn_id, content=(Text(text),), source=source))

    def send(self) -> None:
        self.step += 1
        self.add(StepStarted(run_id=self.turn_id, step=self.step))
        upto = len(self.records)
        self.add(
            RequestSent(run_id=self.turn_id, step=self.step, provider=self.provider, model=MODELS[self.provider], upto_seq=upto)
        )

    def reply(self, *blocks: Block, interrupted: bool = False) -> None:
        self.add(
            AssistantMessage(
                run_id=self.turn_id,
                step=self.step,
                provider=self.provider,
                model=MODELS[self.provider],
                blocks=blocks,
                interrupted=interrupted,
            )
        )

    def attempt(self, cause: Any = "cancelled") -> None:
        model = MODELS[self.provider]
        self.add(AssistantAttempt(run_id=self.turn_id, step=self.step, provider=self.provider, model=model, cause=cause))

    def step_end(self) -> None:
        self.add(StepEnded(run_id=self.turn_id, step=self.step))

    def end(self, outcome: Any = "aborted", interrupt: InterruptReason | None = InterruptReason.USER) -> None:
        source = "caller" if outcome == "aborted" else ""
        why = None if outcome == "completed" else interrupt
        self.add(TurnEnded(run_id=self.turn_id, outcome=outcome, source=source, reason="user" if source else "", interrupt=why))

    def recorded(self, call: CallBlock) -> str:
        self.runs += 1
        run_id = f"run{self.runs}"
        self.add(CallRecorded(run_id=run_id, name=call.name, arguments=call.arguments, call_id=call.call_id))
        return run_id

    def dispatched(self, run_id: str, call: CallBlock) -> None:
        self.add(CallDispatched(run_id=run_id, name=call.name, arguments=call.arguments))

    def ended(self, told: ToolResult) -> None:
        self.add(
            CallEnded(
                run_id=told.run_id, outcome=told.outcome, code=told.code, ended=told.ended, started=told.started, result=told
            )
        )

    def settled(self, told: ToolResult) -> None:
        self.add(CallSettled(run_id=told.run_id, result=told))

    def call(self, call: CallBlock, fate: str, text: str = "") -> str:
        """A call from its first record to its last."""
        run_id = self.recorded(call)
        told = result(run_id, call.name, fate, call.call_id, text)
        if told.started:
            self.dispatched(run_id, call)
            if told.ended is not None:
                self.ended(told)
        self.settled(told)
        return run_id

    def close(self, draft: Any = None) -> list[Record]:
        """What the next opening adds after a crash."""
        added = closing_records(self.records, draft)
        assert [one.seq for one in added] == list(range(len(self.records) + 1, len(self.records) + 1 + len(added)))
        self.records += added
        return added


def thought(closed: bool = True) -> ReasoningBlock:
    return ReasoningBlock("two files", closed, "c2ln" if closed else None, "ZW5j" if closed else None, "rs_1")


def text(said: str, closed: bool = True, provider: Provider | None = None) -> TextBlock:
    own = "msg_1" if closed and provider is Provider.OPENAI_RESPONSES else None
    return TextBlock(said, closed, own)


def call(number: int, provider: Provider, closed: bool = True, call_id: str | None = None) -> CallBlock:
    meta: dict[str, Any] = {}
    if provider is Provider.GEMINI and number == 1:
        meta = {"thoughtSignature": "c2ln"}
    if provider is Provider.OPENAI_RESPONSES:
        meta = {"id": f"fc_{number}", "status": "completed"}
    arguments = '{"path":"%s"}' % number if closed else '{"path":"'  # noqa: UP031 - braces
    return CallBlock("read", arguments, call_id or f"c{number}", closed=closed, provider_meta=meta)


C1 = CallBlock("read", "{}", "c1")


def asked(provider: Provider = Provider.ANTHROPIC, cut_calls: Any = "omit") -> Log:
    log = Log(provider, cut_calls)
    log.turn("U")
    log.send()
    return log
