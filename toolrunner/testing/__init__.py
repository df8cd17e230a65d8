"""For tests of tools, and of programs around a runner: reach a race on purpose, in a fixed order, without a sleep.

`Gate` holds a body where the test wants it. `abort_sweep` and `cancel_sweep` stop a scenario before each of its steps in turn.
`ScriptedTool` keeps the truth about what its body did, `Recorder` what the runner said, so the two can be compared.
`ScriptedApprover` answers and `ScriptedModel` speaks when it is told to. `FakeSupervisor` stands in for processes.
"""

from toolrunner.testing.approvers import ScriptedApprover
from toolrunner.testing.gates import Gate
from toolrunner.testing.models import ScriptedModel, call_chunks, said_chunks, thought_chunks
from toolrunner.testing.processes import FakeCommand, FakeProcess, FakeSupervisor
from toolrunner.testing.recorder import Recorder
from toolrunner.testing.steps import StepCount, before_step
from toolrunner.testing.sweeps import Round, abort_sweep, cancel_sweep
from toolrunner.testing.tools import Entry, Script, ScriptedTool

__all__ = [
    "Entry",
    "FakeCommand",
    "FakeProcess",
    "FakeSupervisor",
    "Gate",
    "Recorder",
    "Round",
    "Script",
    "ScriptedApprover",
    "ScriptedModel",
    "ScriptedTool",
    "StepCount",
    "abort_sweep",
    "before_step",
    "call_chunks",
    "cancel_sweep",
    "said_chunks",
    "thought_chunks",
]
