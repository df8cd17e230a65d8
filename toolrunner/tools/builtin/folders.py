"""The folder that a new file is to be in: made when it is missing, each one an effect of its own. No state."""

import contextlib
import os
from collections.abc import Iterator

from toolrunner.effects import Undo, Undoing
from toolrunner.errors import ToolError
from toolrunner.tools.builtin.atomic import NotFlushed, flush, look
from toolrunner.tools.builtin.attempt import Attempt
from toolrunner.tools.builtin.problems import refused
from toolrunner.tools.builtin.roots import Roots, printable
from toolrunner.tools.builtin.walking import Place, follow, open_folder

KIND = "folder_make"
"""The kind of effect that a new folder is."""


@contextlib.contextmanager
def folder_of(attempt: Attempt, roots: Roots, place: Place) -> Iterator[tuple[int, str]]:
    """The folder of the file at a place, as a descriptor, and the file's name in it.

    Raises:
        ToolError: a folder could not be made; those before it were.
    """
    *missing, name = (place.name, *place.below)
    fd = os.dup(place.folder)
    real = os.path.dirname(place.real.removesuffix("/".join(place.below)).rstrip("/"))
    try:
        for one in missing:
            real = os.path.join(real, one)
            inner = _made(attempt, roots, (one, fd), real)
            os.close(fd)
            fd = inner
        if place.below and look(name, fd) is not None:
            raise ToolError(f"{roots.shown(place.real)} was made by somebody else meanwhile; read it first", kind="changed")
        yield fd, name
    finally:
        os.close(fd)


def _made(attempt: Attempt, roots: Roots, at: tuple[str, int], real: str) -> int:
    name, folder = at
    shown = roots.shown(real)
    with attempt.effect(KIND, printable(real), _undo_of(roots, real)) as effect:
        try:
            os.mkdir(name, dir_fd=folder)
            _flushed(folder)
        except FileExistsError:  # somebody else was faster, which is as good
            effect.not_applied()
        except NotFlushed as error:
            raise ToolError(f"{shown} was made, but the disk did not confirm it: {error.strerror}", kind="not_flushed") from error
        except OSError as error:
            effect.not_applied()
            raise refused(shown, error) from error
    try:
        return open_folder(name, folder)
    except OSError as error:
        raise refused(shown, error) from error


def _flushed(folder: int) -> None:
    try:
        directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:  # it may be passed and not listed, so nobody can have it flushed either
        raise NotFlushed(error.errno, error.strerror) from error
    try:
        flush(directory)
    finally:
        os.close(directory)


def _undo_of(roots: Roots, real: str) -> Undo:
    """Only an empty one goes: what others put into it meanwhile is theirs."""

    def undo(effect: Undoing) -> None:
        parent, name = os.path.split(real)
        with follow(roots, parent) as place:
            fd = open_folder(place.name, place.folder)
            try:
                os.rmdir(name, dir_fd=fd)
                _flushed(fd)
            except FileNotFoundError:
                pass
            except NotFlushed:
                raise
            except OSError as error:
                effect.not_applied()
                raise refused(roots.shown(real), error) from error
            finally:
                os.close(fd)

    return Undo(undo, idempotent=True)
