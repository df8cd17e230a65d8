"""The shapes of cases/supervision.md as one program: `python -I -S program.py SHAPE FOLDER TOKEN`. Standard library only.

Every process holds a FIFO of FOLDER (its lifeline) open for writing, and has written one byte once it is where it should be. One
that holds none is found by TOKEN in its arguments. Nothing lives longer than LIFETIME, whoever forgets it.
"""

import os
import signal
import sys
import time
from collections.abc import Callable

LIFETIME = 60.0
"""Seconds after which a victim ends by itself."""

CHAINS = 8
CROWD = 200
HOP = 0.001
"""Seconds between two hops of a moving target: it moves faster than anybody can list it, and leaves the machine usable."""

CHAIN_LIFETIME = 4.0
"""Seconds a moving target moves: long enough to outlast every wait for it, short enough to be bounded if nothing stops it."""

FOLDER, TOKEN = sys.argv[2], sys.argv[3]


def lifeline(number: int) -> None:
    """Tie this process, and what it forks from now on, to a FIFO, and say that it is there."""
    fd = os.open(f"{FOLDER}/{number}", os.O_WRONLY)
    os.write(fd, b"x")


def wait() -> None:
    """Live until killed."""
    end = time.monotonic() + LIFETIME
    while (rest := end - time.monotonic()) > 0:
        time.sleep(rest)


def child(act: Callable[[], None]) -> int:
    """Fork; the child does `act` and ends."""
    pid = os.fork()
    if pid:
        return pid
    try:
        act()
    finally:
        os._exit(0)


def live(number: int, *, session: bool = False) -> Callable[[], None]:
    """What a plain victim does."""

    def act() -> None:
        if session:
            os.setsid()
        lifeline(number)
        wait()

    return act


def orphan(act: Callable[[], None]) -> None:
    """Fork twice: what does `act` has lost its parent."""
    os.waitpid(child(lambda: _ignore(child(act))), 0)


def _ignore(_: object) -> None:
    pass


def hidden() -> None:
    """Own session, no lifeline, no environment, no descriptors: only the kernel's own membership sees it."""
    os.setsid()
    os.closerange(0, 3)  # what else this program has open closes itself at exec; one of it announces the exec
    os.execve("/bin/sleep", ["sleep", TOKEN], {})  # noqa: S606 - the point of it


def orphan_hidden() -> None:
    """Make the hidden one and return once it has been exec'd."""
    read_end, write_end = os.pipe()  # close-on-exec
    orphan(hidden)
    os.close(write_end)
    os.read(read_end, 1)


def moving(number: int, *, session: bool) -> None:
    """Fork and let the parent go, again and again."""
    lifeline(number)
    end = time.monotonic() + CHAIN_LIFETIME
    while time.monotonic() < end and os.path.exists(f"{FOLDER}/{number}"):
        if os.fork():
            os._exit(0)
        if session:
            os.setsid()
        time.sleep(HOP)


def growing(left: int) -> None:
    """Each process starts the next, in a session of its own, and stays."""
    os.setsid()
    if left:
        time.sleep(HOP)
        child(lambda: growing(left - 1))
    wait()


def grow() -> None:
    lifeline(1)
    growing(CROWD - 1)


def stubborn(number: int) -> None:
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
    lifeline(number)
    while True:
        wait()


def stopped(number: int) -> None:
    lifeline(number)
    os.kill(os.getpid(), signal.SIGSTOP)
    wait()


def crowd(*, session: bool) -> None:
    for number in range(1, CROWD + 1):
        child(live(number, session=session))


def chains(*, session: bool) -> None:
    for number in range(1, CHAINS + 1):
        child(lambda number=number: moving(number, session=session))  # type: ignore[misc]


def leave(*, session: bool) -> None:
    """The leader goes; its child stays. The child is there first: it says so through a pipe."""
    child(live(0, session=session))
    while not os.path.exists(f"{FOLDER}/go"):
        time.sleep(HOP)


LEAD: dict[str, Callable[[], object]] = {
    "a": lambda: child(live(1)),
    "b": lambda: child(live(1, session=True)),
    "c0": lambda: orphan(live(1)),
    "c": lambda: orphan(live(1, session=True)),
    "d": orphan_hidden,
    "e1": lambda: crowd(session=False),
    "e2": lambda: crowd(session=True),
    "e3": lambda: chains(session=False),
    "e4": lambda: chains(session=True),
    "e5": lambda: child(grow),
    "f": lambda: child(lambda: stubborn(1)),
    "g": lambda: child(lambda: stopped(1)),
}
LEADER: dict[str, Callable[[], None]] = {"f": lambda: stubborn(0), "g": lambda: stopped(0)}


def main(shape: str) -> None:
    if shape in ("h", "h2"):
        leave(session=shape == "h2")
        return
    LEAD[shape]()
    LEADER.get(shape, live(0))()


main(sys.argv[1])
