"""Reading: one call, read once for all rules. State: what was read so far; it lives for one judgement."""

from collections.abc import Iterator, Mapping
from typing import Any, final

from toolrunner.policy.reading import commands, hosts, paths
from toolrunner.policy.reading.commands import Line
from toolrunner.policy.reading.hosts import Host
from toolrunner.policy.reading.subject import Names, Subject

MOST_TEXTS = 1_000
"""Texts of one call that are read. A call with more cannot be read: what forbids matches, what allows does not."""

LONGEST_LINE = 1 << 16
"""Characters of a command line that is read."""

_LEADS_OUT = ("/", "~", "file:", "FILE:")


@final
class Reading:
    """What is needed of a call is read when it is first asked for. `base` is a resolved folder, where relative paths begin."""

    __slots__ = ("_hosts", "_line", "_named", "_paths", "_texts", "_words", "base", "names", "overfull", "subject")

    def __init__(self, subject: Subject, names: Names, base: str) -> None:
        self.subject, self.names, self.base = subject, names, base
        self.overfull = False
        self._texts: list[tuple[str, str]] | None = None
        self._line: Line | None = None
        self._words: dict[str, None] | None = None
        self._paths: dict[str, None] | None = None
        self._named: list[str] | None = None
        self._hosts: list[Host | None] | None = None

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Every text in the arguments with the name it has there, the words of command lines among them."""
        if self._texts is None:
            self._texts = []
            for found in _texts("", self.subject.arguments):
                if len(self._texts) >= MOST_TEXTS:
                    self.overfull = True
                    break
                self._texts.append(found)
            self._texts += (("", word) for word in self._written())
        return self._texts

    @property
    def words(self) -> dict[str, None]:
        """Every word of the commands that would be run, as far as they can be seen."""
        if self._words is None:
            self._words = dict.fromkeys(self.line.words()) if self.line is not None else {}
        return self._words

    def _written(self) -> Iterator[str]:
        for word in self.words:
            yield word
            if "=" in word:  # --file=/etc/passwd
                yield word.partition("=")[2]

    @property
    def line(self) -> Line | None:
        """The commands that would be run; None when the call shows none."""
        if self._line is None:
            self._line = self._read_line()
        return self._line if self._line.commands or not self._line.plain else None

    def _read_line(self) -> Line:
        subject = self.subject
        if subject.argv is not None:
            return Line.of(subject.argv)
        if subject.line is not None:
            return _split(subject.line)
        found = [_line_of(subject.arguments[name]) for name in self.names.commands & subject.arguments.keys()]
        return Line(tuple(words for one in found for words in one.commands), plain=all(one.plain for one in found))

    @property
    def paths(self) -> dict[str, None]:
        """Every path that anything in the call can mean, as it is written and resolved."""
        if self._paths is None:
            self._paths = {}
            for name, text in self.texts:
                if name not in self.names.paths and (not text or "\n" in text):
                    continue
                self._paths.update(dict.fromkeys(paths.meanings(text, self.base)))
            if self.subject.cwd is not None:
                self._paths[self.base] = None
        return self._paths

    @property
    def paths_readable(self) -> bool:
        """Whether everything that is called a path can be read as one."""
        unreadable = any(not paths.is_readable(text) for name, text in self.texts if name in self.names.paths)
        return not unreadable and not self.overfull

    @property
    def named_paths(self) -> list[str]:
        """What is called a path, resolved, and whatever else looks like one that leads out of the folder. Empty: none is."""
        if self._named is None:
            called = [text for name, text in self.texts if name in self.names.paths]
            others = [text for name, text in self.texts if name not in self.names.paths and _leads_out(text)]
            found = dict.fromkeys(path for text in called + others for path in paths.resolved(text, self.base))
            self._named = list(found) if called and self.paths_readable else []
        return self._named

    @property
    def hosts(self) -> list[Host | None]:
        """Every host that is named; None for one that cannot be read."""
        if self._hosts is None:
            self._hosts = [
                hosts.read(text) for name, text in self.texts if text and (name in self.names.hosts or hosts.names_a_url(text))
            ]
            if self.overfull:
                self._hosts.append(None)
        return self._hosts


def _texts(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """In no certain order. A list's items have the name of the list."""
    left = [(name, value)]
    while left:
        name, value = left.pop()
        if isinstance(value, str):
            yield name, value
        elif isinstance(value, Mapping):
            left.extend((str(key), item) for key, item in value.items())
        elif isinstance(value, list | tuple):
            left.extend((name, item) for item in value)


def _line_of(value: Any) -> Line:
    """A text is a line for a shell, a list of texts is what execve(2) gets."""
    if isinstance(value, str):
        return _split(value)
    if isinstance(value, list | tuple) and value:
        return Line.of(tuple(word if isinstance(word, str) else "" for word in value))
    return Line((), plain=True)


def _split(text: str) -> Line:
    return commands.split(text) if len(text) <= LONGEST_LINE else Line((), plain=False)


def _leads_out(text: str) -> bool:
    return len(text) <= paths.LONGEST and "\n" not in text and (text.startswith(_LEADS_OUT) or ".." in text.split("/"))
