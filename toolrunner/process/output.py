"""What is kept of one stream: its head, its tail, a count of everything, and a spill file once there is more than that.

The amount of work and memory per chunk does not grow with what came before: a capture whose bookkeeping did starved the loop
so that the call's own timeout never fired.
"""

import codecs
import os
from collections import deque
from pathlib import Path
from typing import final


@final
class Capture:
    """Bytes of one stream. Kept: the first half of `limit`, and at least the last half (whole chunks, trimmed when read)."""

    def __init__(self, name: str, limit: int, spill_dir: Path | None = None, spill_limit: int = 0) -> None:
        self.name = name
        self.total = 0
        self.spill: str | None = None
        self.spill_error: str | None = None
        self._head_room = limit - limit // 2
        self._tail_limit = limit // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._spill_dir, self._spill_limit = spill_dir, spill_limit
        self._file = -1

    @property
    def truncated(self) -> bool:
        """Whether `text` leaves something out."""
        return self.total > self._head_room + self._tail_limit

    def add(self, data: bytes) -> None:
        """Keep a chunk."""
        before = self.truncated
        self.total += len(data)
        if self.truncated and self._spill_dir is not None:
            self._to_file(data if before else bytes(self._head) + b"".join(self._tail) + data)
        if len(self._head) < self._head_room:
            taken = self._head_room - len(self._head)
            self._head += data[:taken]
            data = data[taken:]
        if data:
            self._tail.append(data)
            self._tail_size += len(data)
            while self._tail_size - len(self._tail[0]) >= self._tail_limit:
                self._tail_size -= len(self._tail.popleft())
                if not self._tail:
                    break

    def _to_file(self, data: bytes) -> None:
        """Append to the spill file, up to its limit. A disk that is full costs the spill, never the call."""
        try:
            if self.spill is None and self._spill_dir is not None:
                self._spill_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
                path = self._spill_dir / f"{self.name}-{os.urandom(6).hex()}"
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                self.spill = str(path)
            if self._file >= 0:
                room = self._spill_limit - os.lseek(self._file, 0, os.SEEK_CUR)
                os.write(self._file, data[: max(0, room)])
                if room < len(data):
                    self._stop_spill(f"holds the first {self._spill_limit} bytes only")
        except OSError as exc:
            self._stop_spill(f"is not complete: {exc.strerror}")

    def _stop_spill(self, why: str) -> None:
        self.spill_error = f"spill: the file of {self.name} {why}"
        self._spill_dir = None
        self.close()

    def close(self) -> None:
        """Close the spill file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def text(self) -> str:
        """What is kept, decoded with replacement; a line in the middle says how much is left out."""
        tail = b"".join(self._tail)
        if not self.truncated:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        tail = tail[len(tail) - self._tail_limit :]
        # A character cut by our own limits is left out, not shown as damaged output.
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._head))
        skip = next((i for i, byte in enumerate(tail[:4]) if not _continues(byte)), 0)
        omitted = self.total - len(self._head) - len(tail)
        return f"{head}\n[... {omitted} bytes left out ...]\n{tail[skip:].decode('utf-8', 'replace')}"


def _continues(byte: int) -> bool:
    """Whether this byte is inside a UTF-8 character: 10xxxxxx."""
    return bool(byte & 0x80) and not byte & 0x40
