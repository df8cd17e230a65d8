"""The variables that a contained call gets of its host's. Pure."""

import fnmatch
import functools
import re
from collections.abc import Mapping

from toolrunner.sandbox.profile import Env, Inherit

CORE = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLORTERM", "COLUMNS", "LINES")
"""What programs need to find each other and to speak the user's language."""


def inherited(host: Mapping[str, str], rules: tuple[Env, ...]) -> dict[str, str]:
    """What every one of the rules lets through."""
    return {name: value for name, value in host.items() if all(_passes(name, each) for each in rules)}


def _passes(name: str, rules: Env) -> bool:
    if rules.inherit is Inherit.NONE or _is_one_of(name, rules.exclude):
        return False
    return rules.inherit is Inherit.ALL or _is_one_of(name, CORE)


def _is_one_of(name: str, patterns: tuple[str, ...]) -> bool:
    return _any_of(patterns).fullmatch(name) is not None


@functools.cache  # bounded by the profiles that are loaded
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns) or "(?!)", re.IGNORECASE)
