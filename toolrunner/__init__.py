"""toolrunner: the tool backend for AI agents that tells the truth about what happened when a call is stopped."""

import toolrunner.alone  # the check: before the rest, which might be of another project
import toolrunner.starting  # noqa: F401  # and Ctrl-C, which may come while the rest is imported
from toolrunner.abort import AbortController, AbortError, AbortSignal
from toolrunner.calls import ToolCall
from toolrunner.errors import ToolError, ToolrunnerError
from toolrunner.journal import SqliteJournal
from toolrunner.memory import MemoryJournal
from toolrunner.pipeline.hooks import ask, block, cancel, replace
from toolrunner.policy import ApprovalRequest, Approver, Decision, Policy
from toolrunner.results import BatchResult, ToolResult
from toolrunner.runner import Runner
from toolrunner.tools import Command, Reply, ToolContext, Toolset, command_tool, shell, tool

__all__ = [
    "AbortController",
    "AbortError",
    "AbortSignal",
    "ApprovalRequest",
    "Approver",
    "BatchResult",
    "Command",
    "Decision",
    "MemoryJournal",
    "Policy",
    "Reply",
    "Runner",
    "SqliteJournal",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "ToolrunnerError",
    "Toolset",
    "ask",
    "block",
    "cancel",
    "command_tool",
    "replace",
    "shell",
    "tool",
]
