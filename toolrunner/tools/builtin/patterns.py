"""The regular expressions that `search` takes: those that mean the same to ripgrep and to Python. Pure.

ripgrep's engine has no look-around and no back-references; Python has no set operations in classes, and each reads some escapes
in its own way. What only one of the two understands is refused, so a search finds the same whichever of them is installed.
"""

import re
import warnings

from toolrunner.errors import ToolError

_ESCAPES = frozenset("dDwWsStrfv")
_OUTSIDE = frozenset("bBA")
_GROUPS = ("(?:", "(?i)", "(?i:", "(?P<")
_COUNT = re.compile(r"\{\d+(,\d*)?\}")
_HEX = re.compile(r"\\x[0-9a-fA-F]{2}")


def check_pattern(pattern: str) -> None:
    """Raise ToolError, which says what to write instead, for what the two engines do not share."""
    if "\n" in pattern:
        raise _bad("holds a line break; the search looks at one line at a time")
    _scan(pattern)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about what may change its meaning one day, all of which is refused here
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise _bad(f"is no regular expression: {error}; set literal to search for the text itself") from error


def _scan(pattern: str) -> None:
    at, inside, quantified = 0, False, False
    while at < len(pattern):
        size = _size(pattern, at, inside=inside, quantified=quantified)
        char = pattern[at]
        quantified = not inside and (char in "*+?" or (char == "{" and size > 1))
        if not inside and char == "[":
            inside = True
            # A bracket that comes first closes nothing; neither do the signs before it.
            size += len(re.match(r"\^?\]?", pattern[at + 1 :]).group())  # type: ignore[union-attr] # it always matches
        elif inside and char == "]":
            inside = False
        at += size


def _size(pattern: str, at: int, *, inside: bool, quantified: bool) -> int:
    """How many characters belong together here. Raises ToolError for what is not shared."""
    char = pattern[at]
    if char == "\\":
        return _escape(pattern, at, inside=inside)
    if inside:
        if char == "[" or pattern[at : at + 2] in ("&&", "--", "~~", "||"):
            raise _bad(f"has {pattern[at : at + 2]!r} in a class; write \\{char}")
        return 1
    if char == "+" and quantified:
        raise _bad("has a possessive quantifier; leave the second + out")
    if char == "{":
        count = _COUNT.match(pattern, at)
        if count is None:
            raise _bad("has a { that is no count; write \\{")
        return len(count.group())
    if pattern.startswith("(?", at) and not pattern.startswith(_GROUPS, at):
        raise _bad(f"has {pattern[at : at + 4]!r}; look-around, conditions and most flags are not understood")
    return 1


def _escape(pattern: str, at: int, *, inside: bool) -> int:
    char = pattern[at + 1 : at + 2]
    if hexadecimal := _HEX.match(pattern, at):
        return len(hexadecimal.group())
    if char in _ESCAPES or (char in _OUTSIDE and not inside):
        return 2
    if char.isascii() and char and not char.isalnum() and char not in "<>":
        return 2
    raise _bad(f"has {pattern[at : at + 2]!r}, which is not understood; back-references and classes by name are not")


def check_glob(glob: str) -> None:
    """Raise ToolError for what is no pattern of a file's name alone."""
    for sign, why in (("/", "path takes the folder"), ("\\", "no escapes are understood"), ("\0", "no name has it")):
        if sign in glob:
            raise ToolError(f"glob is {glob!r} and holds {sign!r}, but it is for names of files alone: {why}", kind="bad_glob")
    if glob.startswith("!"):
        raise ToolError(f"glob is {glob!r}; names cannot be left out, only asked for", kind="bad_glob")
    if (
        glob.count("{") != glob.count("}")
        or "{" in glob.partition("{")[2].partition("}")[0]
        or glob.count("[") != glob.count("]")
    ):
        raise ToolError(f"glob is {glob!r}; its brackets do not match", kind="bad_glob")


def _bad(why: str) -> ToolError:
    return ToolError(f"pattern {why}", kind="bad_pattern")
