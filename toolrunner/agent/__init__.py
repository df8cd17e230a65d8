"""An agent on top of a runner: messages come in, turns are made of them, and whatever is stopped leaves a true history behind.

    session = Session.open(session="work")
    async with Runner(tools, journal=session.journal) as runner, AgentLoop(model, runner, session) as agent:
        result = await agent.prompt("...")

`loop` = the front door, `inbox` and `phases` = the state machine of messages, wakes and stops, `driver` and `turn` = steps,
`asking` and `streaming` = one request, `session` = the log, `drafts` = what a kill leaves of a reply, `approvals` = who is asked
for a call. `model` = what a model is, `providers` = those of the official SDKs, each behind the extra `agent`.
"""

from toolrunner.agent.approvals import NoOpenTurn, TurnApprover
from toolrunner.agent.frames import Frame, StreamChunk, StreamEnded, StreamStarted
from toolrunner.agent.hooks import Hooks, StepView
from toolrunner.agent.inbox import Message, MessageState
from toolrunner.agent.limits import Retries
from toolrunner.agent.loop import AgentBusy, AgentClosed, AgentLoop
from toolrunner.agent.model import Model, ModelError, ModelRequest, Prices, Spent
from toolrunner.agent.outcomes import Outside, StopHandle, StopReport, TurnResult
from toolrunner.agent.parts import Calls
from toolrunner.agent.phases import Status
from toolrunner.agent.session import Session
from toolrunner.agent.turn import TruncatedCalls

__all__ = [
    "AgentBusy",
    "AgentClosed",
    "AgentLoop",
    "Calls",
    "Frame",
    "Hooks",
    "Message",
    "MessageState",
    "Model",
    "ModelError",
    "ModelRequest",
    "NoOpenTurn",
    "Outside",
    "Prices",
    "Retries",
    "Session",
    "Spent",
    "Status",
    "StepView",
    "StopHandle",
    "StopReport",
    "StreamChunk",
    "StreamEnded",
    "StreamStarted",
    "TruncatedCalls",
    "TurnApprover",
    "TurnResult",
]
