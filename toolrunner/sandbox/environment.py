"""The variables that a contained call gets of its host's. Pure."""

import fnmatch
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
    return any(fnmatch.fnmatchcase(name.upper(), pattern.upper()) for pattern in patterns)
