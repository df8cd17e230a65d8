"""Why a text is no JSON, in words for people who do not know Python's parser. Pure."""

import json
from collections.abc import Mapping

_WORDS: Mapping[str, str] = {
    "Expecting value": "there is no JSON value",
    "Extra data": "there is something behind its end",
    "Expecting property name enclosed in double quotes": "a name in double quotes is missing",
    "Expecting ',' delimiter": "a comma is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Unterminated string starting at": "a string has no end, which begins",
    "Invalid control character at": "a control character is not written as \\u0000",
    "Invalid \\escape": "a backslash is followed by what is no escape",
    "Invalid \\uXXXX escape": "\\u is not followed by four hexadecimal digits",
}


def why_no_json(error: Exception, *, one_line: bool = False) -> str:
    """What is wrong and where, of what `json.loads` raised. `one_line`: the text was one, so only the column is told."""
    match error:
        case json.JSONDecodeError():
            said = _WORDS.get(error.msg, error.msg)
            return f"{said} at {'' if one_line else f'line {error.lineno}, '}column {error.colno}"
        case UnicodeDecodeError():
            return f"byte {error.start + 1} is no UTF-8"
        case RecursionError():
            return "it is nested too deeply"
        case _:
            return str(error)
