"""The closed vocabularies of a result. Each word is used everywhere: fields, JSON, texts, command line."""

from enum import StrEnum


class Outcome(StrEnum):
    """Why a call is over."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ABORTED = "aborted"
    TIMED_OUT = "timed_out"
    DENIED = "denied"
    REJECTED = "rejected"


class Code(StrEnum):
    """The exact case within an outcome; None on plain success."""

    ABORTED_BEFORE_DISPATCH = "ABORTED_BEFORE_DISPATCH"
    ABORTED = "ABORTED"
    TIMED_OUT = "TIMED_OUT"
    TOOL_ERROR = "TOOL_ERROR"
    INVALID_OUTPUT = "INVALID_OUTPUT"
    EXIT_STATUS = "EXIT_STATUS"
    KILLED_BY_SIGNAL = "KILLED_BY_SIGNAL"
    LOST = "LOST"
    KEEPER_LOST = "KEEPER_LOST"
    HOOK_ERROR = "HOOK_ERROR"
    HOOKS_LOST = "HOOKS_LOST"
    UNKNOWN_TOOL = "UNKNOWN_TOOL"
    INVALID_ARGUMENTS = "INVALID_ARGUMENTS"
    TOOL_CHANGED = "TOOL_CHANGED"
    ENVIRONMENT_GONE = "ENVIRONMENT_GONE"
    SPAWN_REFUSED = "SPAWN_REFUSED"
    SANDBOX_UNAVAILABLE = "SANDBOX_UNAVAILABLE"
    IN_DOUBT = "IN_DOUBT"
    DENIED = "DENIED"
    GRANT_EXPIRED = "GRANT_EXPIRED"


class Ended(StrEnum):
    """How far the body got. `stopped`: a signal of ours, or a cancellation, ended it; `lost`: nobody saw its end."""

    RETURNED = "returned"
    RAISED = "raised"
    STOPPED = "stopped"
    LOST = "lost"


class Retry(StrEnum):
    """What a caller may do next with the same call."""

    SAFE = "safe"
    FIX_FIRST = "fix_first"
    CHECK_FIRST = "check_first"
    NO = "no"


class ErrorKind(StrEnum):
    """Kinds of `error` that toolrunner itself gives; a tool, hook or wrapper may give others of its own."""

    UNKNOWN_TOOL = "unknown_tool"
    TOOL_CHANGED = "tool_changed"
    IN_DOUBT = "in_doubt"
    EXCEPTION = "exception"
    EXIT_STATUS = "exit_status"
    KILLED_BY_SIGNAL = "killed_by_signal"
    KEEPER_LOST = "keeper_lost"
    INTERNAL = "internal"
    TOOL_ERROR = "tool_error"
    INVALID_ARGUMENTS = "invalid_arguments"
    INVALID_OUTPUT = "invalid_output"
    NOT_FOUND = "not_found"
    NOT_EXECUTABLE = "not_executable"
    TOO_LONG = "too_long"
    SETUP = "setup"
    SANDBOX = "sandbox"
    LIMIT = "limit"
    HOOK = "hook"
    HOOK_TIMEOUT = "hook_timeout"
    POLICY = "policy"
    APPROVER = "approver"
    APPROVAL_TIMEOUT = "approval_timeout"
    APPROVER_UNAVAILABLE = "approver_unavailable"
    GUARD = "guard"


class Transaction(StrEnum):
    """What became of a sandboxed call's changes."""

    NONE = "none"
    COMMITTED = "committed"
    KEPT = "kept"
    DISCARDED = "discarded"
    HALF_COMMITTED = "half_committed"
