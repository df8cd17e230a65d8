"""Texts in which `*` stands for any characters, and nothing else is special. No state."""

import re


def wildcard(text: str) -> re.Pattern[str]:
    """To be matched against a whole text."""
    return re.compile(".*".join(map(re.escape, re.split(r"\*+", text))), re.DOTALL)
