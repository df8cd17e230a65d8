"""Calls as each provider's API sends them."""

from typing import Any

ARGUMENTS: dict[str, Any] = {"path": "a.txt", "limit": None}

ANTHROPIC: dict[str, Any] = {
    "type": "tool_use",
    "id": "toolu_1",
    "name": "read",
    "input": ARGUMENTS,
    "caller": {"type": "direct"},
    "toolset_name": "browser",
}
CHAT: dict[str, Any] = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.txt"}'}}
CHAT_SIGNED: dict[str, Any] = {**CHAT, "extra_content": {"google": {"thought_signature": "c2ln"}}}
CHAT_CUSTOM: dict[str, Any] = {"id": "call_2", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
FUNCTION: dict[str, Any] = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "read",
    "arguments": '{"path":"a.txt"}',
    "status": "completed",
    "namespace": "files",
    "caller": {"type": "program", "caller_id": "prog_1"},
}
CUSTOM: dict[str, Any] = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "sql", "input": "select 1"}
SHELL: dict[str, Any] = {
    "type": "shell_call",
    "id": "sh_1",
    "call_id": "call_3",
    "status": "in_progress",
    "action": {"commands": ["ls", "pwd"], "timeout_ms": 1000, "max_output_length": 4096},
    "environment": {"type": "local"},
}
LOCAL_SHELL: dict[str, Any] = {
    "type": "local_shell_call",
    "id": "lsh_1",
    "call_id": "call_4",
    "status": "completed",
    "action": {"type": "exec", "command": ["ls"], "env": {}, "working_directory": "/w"},
}
APPLY_PATCH: dict[str, Any] = {
    "type": "apply_patch_call",
    "id": "apc_1",
    "call_id": "call_5",
    "status": "completed",
    "operation": {"type": "update_file", "path": "a.py", "diff": "@@\n-a\n+b\n"},
}
GEMINI: dict[str, Any] = {"functionCall": {"id": "g1", "name": "read", "args": ARGUMENTS}, "thoughtSignature": "c2ln"}
INTERACTIONS: dict[str, Any] = {"type": "function_call", "id": "i1", "name": "read", "arguments": ARGUMENTS, "signature": "c2ln"}
