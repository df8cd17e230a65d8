"""What travels on the socket: one line of JSON asked, some lines answered. The bounds of both, and their reasons. No state.

Asked: `{"verb": "list"}`, `{"verb": "cancel", "run": RUN_ID or null}` (null: everything). Answered to `list`: one object. To
`cancel`: one object that says which calls were asked to stop, then one for each when its body is over, or it has settled without
one. `{"refused": why}` is the answer to whoever may not ask, and to what is no question.
"""

import json
from typing import Any

VERSION = 1

LONGEST_QUESTION = 1_024
"""Bytes of a question, which is a verb and an id."""

LONGEST_ANSWER = 1 << 20
"""Bytes of an answer; see `MOST_CALLS` and `LONGEST_TEXT`, which keep it below."""

QUESTION_BOUND = 5.0
"""Seconds for a question to come. Whoever connects has it ready."""

ANSWER_BOUND = 5.0
"""Seconds for an answer to be taken. Whoever asked reads."""

MOST_CALLS = 1_000
"""Calls listed in one answer; of more the number is told."""

LONGEST_TEXT = 500
"""Characters of one foreign text in an answer."""

MOST_CLIENTS = 16
"""Connections at once. Anybody of this user may open them, so they must not eat up our descriptors; more are closed at once."""


def encode(item: dict[str, Any]) -> bytes:
    """One line."""
    return json.dumps(item, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """A line again. Raises ValueError for what is no JSON object."""
    try:
        item = json.loads(line)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(item, dict):
        raise ValueError("no JSON object")  # noqa: TRY004
    return item


def cut(text: str) -> str:
    """A foreign text, bounded."""
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 4]} ..."
