"""The one list of records: what the journal stores, what an observer receives, what events, logs and histories are folds of.

Records are facts in the order in which they became true. They carry no behaviour; `seq` is given by the journal that takes them
(dense, from 1), `at` is wall time for display only. Transient records (`output`, `progress`, `still_running`) are never waited
for and may be dropped with a count.

`calls`, `effects`, `jobs`, `live`, `turns`, `inbox` = the records by what they are about, `blocks` = what a message
consists of, `protocols` = who takes them.
"""

from toolrunner.records.base import now
from toolrunner.records.blocks import (
    Block,
    CallBlock,
    ReasoningBlock,
    RedactedBlock,
    TextBlock,
    UnknownBlock,
)
from toolrunner.records.calls import (
    CallAnswered,
    CallAsked,
    CallDecided,
    CallDispatched,
    CallEnded,
    CallModified,
    CallReconciled,
    CallRecorded,
    CallSettled,
    CallStopDelivered,
    CallStopRequested,
)
from toolrunner.records.effects import (
    EffectApplied,
    EffectNotApplied,
    EffectPlanned,
    EffectUndone,
    EffectUnknown,
)
from toolrunner.records.inbox import (
    InboxCancelled,
    InboxClaimed,
    InboxQueued,
)
from toolrunner.records.jobs import (
    JobEnded,
    JobStarted,
)
from toolrunner.records.live import (
    Output,
    Progress,
    StillRunningReport,
)
from toolrunner.records.protocols import Journal, Observer, Record
from toolrunner.records.turns import (
    AssistantAttempt,
    AssistantMessage,
    CompactedItem,
    CutCalls,
    HistoryCompacted,
    MarkerMode,
    RequestSent,
    StepEnded,
    StepStarted,
    TurnEnded,
    TurnStarted,
    UserMessage,
)

__all__ = [
    "AssistantAttempt",
    "AssistantMessage",
    "Block",
    "CallAnswered",
    "CallAsked",
    "CallBlock",
    "CallDecided",
    "CallDispatched",
    "CallEnded",
    "CallModified",
    "CallReconciled",
    "CallRecorded",
    "CallSettled",
    "CallStopDelivered",
    "CallStopRequested",
    "CompactedItem",
    "CutCalls",
    "EffectApplied",
    "EffectNotApplied",
    "EffectPlanned",
    "EffectUndone",
    "EffectUnknown",
    "HistoryCompacted",
    "InboxCancelled",
    "InboxClaimed",
    "InboxQueued",
    "JobEnded",
    "JobStarted",
    "Journal",
    "MarkerMode",
    "Observer",
    "Output",
    "Progress",
    "ReasoningBlock",
    "Record",
    "RedactedBlock",
    "RequestSent",
    "StepEnded",
    "StepStarted",
    "StillRunningReport",
    "TextBlock",
    "TurnEnded",
    "TurnStarted",
    "UnknownBlock",
    "UserMessage",
    "now",
]
