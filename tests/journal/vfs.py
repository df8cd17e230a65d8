"""SQLite's own way to the disk, watched: every write, sync, truncation and deletion in order, and failures on demand.

SQLite takes a VFS (https://www.sqlite.org/vfs.html): a table of functions that open files, whose files have tables of functions
in turn. A copy of the default one is made the default, in which opening puts our functions into each file's table; those tell
and then do what the original does. No tracer and no compiler is needed, only that the library can be reached by name.
"""

import _sqlite3
import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

FULL, IOERR_WRITE, IOERR_FSYNC = 13, 10 | 3 << 8, 10 | 4 << 8
"""Results of SQLite (https://www.sqlite.org/rescode.html)."""

_POINTER = ctypes.c_void_p
_Open = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER, _POINTER, ctypes.c_int, _POINTER)
_Delete = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, ctypes.c_char_p, ctypes.c_int)
_Write = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER, ctypes.c_int, ctypes.c_int64)
_Truncate = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, ctypes.c_int64)
_Sync = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, ctypes.c_int)


class _Vfs(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("path_size", ctypes.c_int),
        ("next", _POINTER),
        ("name", ctypes.c_char_p),
        ("data", _POINTER),
        ("open", _POINTER),
        ("delete", _POINTER),
        ("others", _POINTER * 20),
    )


class _Methods(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_int),
        ("close", _POINTER),
        ("read", _POINTER),
        ("write", _POINTER),
        ("truncate", _POINTER),
        ("sync", _POINTER),
        ("others", _POINTER * 13),
    )


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was done. `op` is write, sync, truncate or delete, or `ack`, which tests put in; `name` is the file's."""

    op: str
    name: str
    at: int = 0
    data: bytes = b""


@dataclass(slots=True)
class Disk:
    """What was done. `fail` may answer a step with a result of SQLite's other than 0; then it is not done."""

    steps: list[Step] = field(default_factory=list)
    fail: Callable[[Step], int] = lambda _: 0

    def step(self, step: Step, act: Callable[[], int]) -> int:
        code = self.fail(step) or act()
        if code == 0:
            self.steps.append(step)  # after the act: a sync counts from when it has returned
        return code

    def ack(self, seq: int) -> None:
        """Somebody was told that this record is durable."""
        self.steps.append(Step("ack", "", seq))


def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(_sqlite3.__file__)
    try:
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    except AttributeError:
        pytest.skip("the SQLite of this interpreter cannot be reached by name; test_trace.py shows the same with strace")
    return library


class _Watch:
    """Everything that C code points to lives here."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.library = _library()
        self.original = self.library.sqlite3_vfs_find(None)
        self.names: dict[int, str] = {}
        self.kept: list[object] = []
        self.tables: dict[int, _Methods] = {}
        self.vfs = _Vfs()
        ctypes.memmove(ctypes.byref(self.vfs), self.original, ctypes.sizeof(_Vfs))
        self.vfs.name = b"watched"
        self.vfs.open = self._function(_Open, self._open)
        self.vfs.delete = self._function(_Delete, self._delete)

    def _function(self, kind: type, fn: Callable[..., int]) -> int | None:
        made = kind(fn)
        self.kept.append(made)
        return ctypes.cast(made, _POINTER).value

    def _open(self, _vfs: int, name: int | None, file: int, flags: int, out: int | None) -> int:
        code: int = _Open(self.original.contents.open)(ctypes.addressof(self.original.contents), name, file, flags, out)
        methods = _POINTER.from_address(file)
        if code == 0 and name and methods.value:
            self.names[file] = Path(ctypes.string_at(name).decode()).name
            methods.value = ctypes.addressof(self._table(methods.value))
        return code

    def _delete(self, _vfs: int, name: bytes, sync: int) -> int:
        original = _Delete(self.original.contents.delete)
        step = Step("delete", Path(name.decode()).name)
        return self.disk.step(step, lambda: original(ctypes.addressof(self.original.contents), name, sync))

    def _table(self, address: int) -> _Methods:
        if address not in self.tables:
            own = self.tables[address] = _Methods()
            size = ctypes.sizeof(_Methods) if ctypes.c_int.from_address(address).value >= 3 else 8 * 17
            ctypes.memmove(ctypes.byref(own), address, size)
            write, truncate, sync = _Write(own.write), _Truncate(own.truncate), _Sync(own.sync)

            def watched_write(file: int, data: int, amount: int, at: int) -> int:
                step = Step("write", self.names[file], at, ctypes.string_at(data, amount))
                return self.disk.step(step, lambda: write(file, data, amount, at))

            def watched_truncate(file: int, size: int) -> int:
                return self.disk.step(Step("truncate", self.names[file], size), lambda: truncate(file, size))

            def watched_sync(file: int, flags: int) -> int:
                return self.disk.step(Step("sync", self.names[file]), lambda: sync(file, flags))

            own.write = self._function(_Write, watched_write)
            own.truncate = self._function(_Truncate, watched_truncate)
            own.sync = self._function(_Sync, watched_sync)
        return self.tables[address]


@contextmanager
def watched_disk() -> Iterator[Disk]:
    """Watch every database that is opened inside. All of them must be closed inside, too."""
    disk = Disk()
    watch = _Watch(disk)
    assert watch.library.sqlite3_vfs_register(ctypes.byref(watch.vfs), 1) == 0
    try:
        yield disk
    finally:
        watch.library.sqlite3_vfs_unregister(ctypes.byref(watch.vfs))
        watch.library.sqlite3_vfs_register(watch.original, 1)


Files = dict[str, bytes]


def images(steps: list[Step], before: Files) -> Iterator[tuple[int, Files]]:
    """After every step: (last acknowledged number, the files that a loss of power leaves if nothing unsynced was written)."""
    live: Files = dict(before)
    synced: Files = dict(before)
    acknowledged = 0
    for step in steps:
        if step.op == "write":
            old = live.get(step.name, b"").ljust(step.at, b"\0")
            live[step.name] = old[: step.at] + step.data + old[step.at + len(step.data) :]
        elif step.op == "truncate":
            live[step.name] = live.get(step.name, b"")[: step.at].ljust(step.at, b"\0")
        elif step.op == "sync":
            synced[step.name] = live.get(step.name, b"")
        elif step.op == "delete":
            live.pop(step.name, None)
            synced.pop(step.name, None)
        else:
            acknowledged = step.at
        yield acknowledged, dict(synced)
