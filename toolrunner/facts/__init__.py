"""Facts that results, records and tools share: frozen values with no behaviour beyond reading them.

Nothing here knows how a call is run. `reasons` = why something was stopped, `content` = what a tool said, `effects` = what
it changed, `processes` = how a process ended, `annotations` = what a tool declares, `grants` = what an approval covers.
"""

from toolrunner.facts.annotations import Annotations, Isolation
from toolrunner.facts.content import Content, File, Image, Json, Text
from toolrunner.facts.effects import Attribution, Change, ChangeKind, EffectRecord, Effects, EffectStage, EffectState, Evidence
from toolrunner.facts.grants import GrantKey
from toolrunner.facts.processes import Containment, Drained, Process, ProcessIdentity, StillRunning, StillRunningKind
from toolrunner.facts.reasons import AbortMode, AbortReason, Note, NoteKind, Source, Stop, StopPhase

__all__ = [
    "AbortMode",
    "AbortReason",
    "Annotations",
    "Attribution",
    "Change",
    "ChangeKind",
    "Containment",
    "Content",
    "Drained",
    "EffectRecord",
    "EffectStage",
    "EffectState",
    "Effects",
    "Evidence",
    "File",
    "GrantKey",
    "Image",
    "Isolation",
    "Json",
    "Note",
    "NoteKind",
    "Process",
    "ProcessIdentity",
    "Source",
    "StillRunning",
    "StillRunningKind",
    "Stop",
    "StopPhase",
    "Text",
]
