"""A program: the search of a machine without ripgrep. Started by path, in a process of its own; imports nothing of ours.

A process, because a regular expression can keep Python busy for ever and only a process can be ended. It prints `./path NUL
line-number : LF` for every line that matches, as `search` has ripgrep print it. It walks by descriptors and follows no symlink.

    python own_search.py REGEX IGNORE_CASE MOST_PER_FILE MOST_DEEP GLOB SKIPPED TARGET
"""

import fnmatch
import os
import re
import stat
import sys
from collections.abc import Iterator

FIRST_LOOK = 1 << 16
"""Bytes in which a NUL makes a file a binary one; ripgrep looks at its first buffer, of the same size."""

UNREADABLE = re.compile("[\udc80-\udcff]")
"""Bytes that are no UTF-8, as Python keeps them (PEP 383)."""

LONGEST_LINE = 1 << 24
"""Bytes of a line that are looked at: more is no text."""


def main(arguments: list[str]) -> int:
    """0 = found, 1 = not, 2 = something could not be read."""
    regex, ignore_case, most, deep, glob, skipped, target = arguments
    pattern = re.compile(regex, re.IGNORECASE if ignore_case == "1" else 0)
    search = Search(
        pattern, int(most), [re.compile(fnmatch.translate(one)) for one in alternatives(glob)], set(skipped.split("/"))
    )
    if os.path.isdir(target):
        search.folder(os.open(target, os.O_RDONLY | os.O_DIRECTORY), "./", int(deep))
    else:
        search.file(os.path.basename(target), os.open(os.path.dirname(target) or ".", os.O_RDONLY | os.O_DIRECTORY), target)
    sys.stdout.buffer.flush()
    return 2 if search.unread else int(not search.found)


def alternatives(glob: str) -> Iterator[str]:
    """`*.{ts,tsx}` as `*.ts` and `*.tsx`; nothing for no glob."""
    before, brace, rest = glob.partition("{")
    if not brace:
        if glob:
            yield glob
        return
    inside, _, after = rest.partition("}")
    for one in inside.split(","):
        yield from alternatives(before + one + after)


class Search:
    """One search, and what came of it so far."""

    def __init__(self, pattern: re.Pattern[str], most: int, names: list[re.Pattern[str]], skipped: set[str]) -> None:
        self.pattern, self.most, self.names, self.skipped = pattern, most, names, skipped
        self.found = self.unread = 0

    def folder(self, fd: int, path: str, deep: int) -> None:
        """Everything in a folder, whose descriptor is closed at the end."""
        try:
            with os.scandir(fd) as entries:
                here = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
            for name, is_folder in here:
                if name in self.skipped:
                    continue
                if is_folder and deep > 1:
                    self._inner(name, fd, path, deep - 1)
                elif not is_folder and (not self.names or any(one.match(name) for one in self.names)):
                    self.file(name, fd, path + name)
        except OSError:
            self.unread += 1
        finally:
            os.close(fd)

    def _inner(self, name: str, folder: int, path: str, deep: int) -> None:
        try:
            fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
        except OSError:
            self.unread += 1
        else:
            self.folder(fd, f"{path}{name}/", deep)

    def file(self, name: str, folder: int, path: str) -> None:
        """One file, if it is a regular one."""
        try:
            if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                return
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
            with open(fd, "rb") as file:
                if b"\0" not in os.pread(fd, FIRST_LOOK, 0):
                    self._lines(iter(lambda: file.readline(LONGEST_LINE), b""), path)
        except OSError:
            self.unread += 1

    def _lines(self, lines: Iterator[bytes], path: str) -> None:
        left = self.most
        for number, line in enumerate(lines, 1):
            text, nul, _ = line.removesuffix(b"\n").partition(b"\0")
            if self._matches(text.decode("utf-8", "surrogateescape")):
                sys.stdout.buffer.write(os.fsencode(path) + b"\0%d:\n" % number)
                self.found += 1
                left -= 1
            if nul or not left:  # at a NUL ripgrep stops too; that it makes the file a binary one is told by who shows the lines
                return

    def _matches(self, text: str) -> bool:
        """As ripgrep has it, what is no UTF-8 is no character, so nothing matches across it."""
        return any(not UNREADABLE.search(found.group()) for found in self.pattern.finditer(text))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
