"""Patterns over commands, and a command line as the commands that can be seen in it. Pure; no state.

Advice for asking, never enforcement: a shell has more ways to say a thing than any reader of its text knows (variables, other
interpreters, /proc/self/root, copies of a program). A rule that forbids looks for its words anywhere; a rule that allows wants
the whole line to be nothing but what it knows.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from toolrunner.errors import PolicyError
from toolrunner.policy.reading.wildcards import wildcard

ANY = "*"
NESTED = 3
"""Command lines inside words of command lines that are looked into (`sh -c 'sh -c "..."'`)."""

_SEPARATORS = frozenset(";&|\n")
_UNREAD = frozenset("$`(){}<>")
"""Unquoted, these make more of a line than words: where they stand another command may begin."""

_ORDINARY = re.compile(r"""[^\s'"\\#;&|$`(){}<>]+""")


@final
@dataclass(frozen=True, slots=True)
class Line:
    """Commands as lists of words. `plain`: the line is nothing but these, joined by ; & && || | and line ends."""

    commands: tuple[tuple[str, ...], ...]
    plain: bool

    @classmethod
    def of(cls, argv: tuple[str, ...]) -> "Line":
        """An argument list, which no shell reads."""
        return cls((argv,), plain=True)

    def sequences(self, depth: int = NESTED) -> Iterator[tuple[str, ...]]:
        """Every list of words that can be seen, also those inside words."""
        for words in self.commands:
            yield words
            for word in words if depth else ():
                if " " in word or _SEPARATORS & set(word) or _UNREAD & set(word):
                    yield from split(word).sequences(depth - 1)

    def words(self) -> Iterator[str]:
        """Every word that can be seen."""
        for words in self.sequences():
            yield from words


def split(text: str) -> Line:
    """Read a line of a POSIX shell (POSIX.1, Shell Command Language, Quoting and Token Recognition), as far as it goes."""
    reader = _Reader()
    position = 0
    while position < len(text):
        position = reader.take(text, position)
    return reader.line()


class _Reader:
    """State: the words so far of the command that is read."""

    def __init__(self) -> None:
        self._commands: list[tuple[str, ...]] = []
        self._words: list[str] = []
        self._word: list[str] | None = None
        self._plain = True

    def take(self, text: str, at: int) -> int:
        """Take one piece; where the next one begins."""
        if ordinary := _ORDINARY.match(text, at):
            self._add(ordinary[0])
            return ordinary.end()
        one = text[at]
        if one in "'\"":
            return self._quoted(text, at, one)
        if one == "\\":
            if text[at + 1 : at + 2] != "\n":
                self._add(text[at + 1 : at + 2])
            return at + 2
        if one in _UNREAD or (one == "#" and self._word is None):
            self._plain = False
            self._end_command()
        elif one in _SEPARATORS:
            self._end_command()
        elif one.isspace():
            self._end_word()
        else:
            self._add(one)
        return at + 1

    def _quoted(self, text: str, at: int, mark: str) -> int:
        end = at + 1
        self._add("")
        while end < len(text) and text[end] != mark:
            if mark == '"' and text[end] in "$`\\":
                self._plain = False
                if text[end] == "\\":
                    end += 1
            self._add(text[end : end + 1])
            end += 1
        self._plain = self._plain and end < len(text)
        return end + 1

    def _add(self, text: str) -> None:
        self._word = self._word if self._word is not None else []
        self._word.append(text)

    def _end_word(self) -> None:
        if self._word is not None:
            self._words.append("".join(self._word))
        self._word = None

    def _end_command(self) -> None:
        self._end_word()
        if self._words:
            self._commands.append(tuple(self._words))
            self._words = []

    def line(self) -> Line:
        self._end_command()
        assigns = any("=" in words[0] for words in self._commands)  # PATH=... git status is not git status
        return Line(tuple(self._commands), plain=self._plain and not assigns)


@final
class CommandPattern:
    """Words, in which `*` is anything in a word; as the last word it is any number of words, none too. Alone: every command."""

    __slots__ = ("_open", "_words", "key", "text")

    def __init__(self, text: object) -> None:
        words = text.split() if isinstance(text, str) else []
        if not words or not isinstance(text, str) or "\0" in text:
            raise PolicyError(f"{text!r} is no command; expected words such as 'git status *'")
        self.text = " ".join(words)
        self._open = words[-1] == ANY
        self._words = [wildcard(word) for word in (words[:-1] if self._open else words)]
        self.key = words[0] if "*" not in words[0] else None
        """Only a command with this word in it can match; None = any may."""

    @property
    def is_every(self) -> bool:
        """Whether it means every command, whatever else is in the line."""
        return self.text == ANY

    def fits(self, words: tuple[str, ...]) -> bool:
        """For a rule that allows: whether these words are such a command, the program as it is written."""
        enough = len(words) >= len(self._words) if self._open else len(words) == len(self._words)
        return enough and all(pattern.fullmatch(word) for pattern, word in zip(self._words, words, strict=False))

    def stands_in(self, line: Line) -> bool:
        """For a rule that asks or forbids: whether such a command can be seen anywhere, the program under any path."""
        if self.is_every:
            return True
        return any(self._begins(words, at) for words in line.sequences() for at in range(len(words) - len(self._words) + 1))

    def _begins(self, words: tuple[str, ...], at: int) -> bool:
        """Any words may follow: what stands behind a command in a wrapper's arguments is not known to be its own."""
        first, *rest = self._words or (wildcard(ANY),)
        program = words[at] if at < len(words) else ""
        if not (first.fullmatch(program) or first.fullmatch(program.rpartition("/")[2])):
            return False
        return all(pattern.fullmatch(words[at + place]) for place, pattern in enumerate(rest, 1))
