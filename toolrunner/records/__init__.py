"""The one list of records: what the journal stores, what an observer receives, what events, logs and histories are folds of.

Records are facts in the order in which they became true. They carry no behaviour; `seq` is given by the journal that takes them
(dense, from 1), `at` is wall time for display only. Transient records (`output`, `progress`, `still_running`) are never waited
for and may be dropped with a count.

`calls`, `effects`, `jobs`, `live` = the records by what they are about, `protocols` = who takes them.
"""

from toolrunner.records.base import now
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

__all__ = [
    "CallAnswered",
    "CallAsked",
    "CallDecided",
    "CallDispatched",
    "CallEnded",
    "CallModified",
    "CallReconciled",
    "CallRecorded",
    "CallSettled",
    "CallStopDelivered",
    "CallStopRequested",
    "EffectApplied",
    "EffectNotApplied",
    "EffectPlanned",
    "EffectUndone",
    "EffectUnknown",
    "JobEnded",
    "JobStarted",
    "Journal",
    "Observer",
    "Output",
    "Progress",
    "Record",
    "StillRunningReport",
    "now",
]
