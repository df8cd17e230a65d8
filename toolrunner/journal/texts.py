"""Which texts of a record are foreign: given by a model, a tool or a person, and not of our own vocabulary. No state.

Works on the JSON form, where results lie inside records. What masks, cuts or blanks texts walks through here, so that all of them
agree on what a foreign text is.
"""

from collections.abc import Callable
from typing import Any

FOREIGN = frozenset({
    "arguments", "data", "detail", "error", "follow_up", "json", "message", "meta", "note", "path", "problem",
    "provider_meta", "reason", "receipt", "running", "still_running", "stderr", "stdout", "target", "text", "value",
    "violations", "conflicts", "what",
})  # fmt: skip
"""Fields with foreign text, alone or as JSON of any depth."""

_STRUCTURES = frozenset({"error", "running", "still_running", "what"})
"""Those that hold records of ours as well, in which the fields below tell what is foreign."""

_PLAIN = frozenset({"kind", "pid", "uid", "since"})
"""Fields of such a record that are our own words and numbers."""

Change = Callable[[str, Any], Any]
"""Given the name of the foreign field and one text (or number) in it, returns what is to stand there."""


def change_foreign(content: Any, change: Change) -> Any:
    """The same content with every foreign text changed; keys, ids, times and our own words stay."""
    if isinstance(content, dict):
        changed = {key: _field(key, value, change) for key, value in content.items()}
        # A job is called by the command line that it runs, anything else by a name that its host gave.
        return changed | {"name": change("name", content["name"])} if content.get("type") == "job/started" else changed
    if isinstance(content, list):
        return [change_foreign(item, change) for item in content]
    return content


def _field(key: str, value: Any, change: Change) -> Any:
    if key not in FOREIGN:
        return change_foreign(value, change)
    if key in _STRUCTURES and isinstance(value, dict | list):
        return _structure(key, value, change)
    return change_leaves(key, value, change)


def _structure(key: str, value: Any, change: Change) -> Any:
    if isinstance(value, list):
        return [_structure(key, item, change) for item in value]
    if isinstance(value, dict):
        return {name: item if name in _PLAIN else change_leaves(name, item, change) for name, item in value.items()}
    return value


def change_leaves(field: str, value: Any, change: Change) -> Any:
    """JSON of any depth with every text and number changed."""
    if isinstance(value, dict):
        return {key: change_leaves(field, item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [change_leaves(field, item, change) for item in value]
    return value if value is None or isinstance(value, bool) else change(field, value)
