"""Tools: functions with everything the runner must know of them, told once, when they are defined.

`tool` and `command_tool` make them, `Toolset` combines them, `Catalogue` is where a runner looks them up, `ToolContext` is what a
running body may ask for, `Reply` and `Command` are what it may return, `shell` is built in,
`persistent_shell` makes one that lives on between calls.
"""

from toolrunner.effects import Undo, Undoing
from toolrunner.tools.bodies import BodyKind
from toolrunner.tools.catalogue import Catalogue, Registration
from toolrunner.tools.command import Command
from toolrunner.tools.context import AsyncOnly, ContextServices, Effect, EffectScope, Jobs, NoJobs, ToolContext
from toolrunner.tools.decorator import command_tool, tool
from toolrunner.tools.options import Compensate, Resource, ResourceMode, RetryPolicy, ToolOptions
from toolrunner.tools.persistent_shell import ShellLine, ShellSpec, persistent_shell
from toolrunner.tools.problems import InvalidArguments, InvalidOutput, ToolDefinitionWarning
from toolrunner.tools.reconcile import Reconciled
from toolrunner.tools.reply import Reply
from toolrunner.tools.shell import shell
from toolrunner.tools.tool import Tool
from toolrunner.tools.toolset import AnyTool, Tools, Toolset

__all__ = [
    "AnyTool",
    "AsyncOnly",
    "BodyKind",
    "Catalogue",
    "Command",
    "Compensate",
    "ContextServices",
    "Effect",
    "EffectScope",
    "InvalidArguments",
    "InvalidOutput",
    "Jobs",
    "NoJobs",
    "Reconciled",
    "Registration",
    "Reply",
    "Resource",
    "ResourceMode",
    "RetryPolicy",
    "ShellLine",
    "ShellSpec",
    "Tool",
    "ToolContext",
    "ToolDefinitionWarning",
    "ToolOptions",
    "Tools",
    "Toolset",
    "Undo",
    "Undoing",
    "command_tool",
    "persistent_shell",
    "shell",
    "tool",
]
