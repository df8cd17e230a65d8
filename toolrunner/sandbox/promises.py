"""Promises: which guarantees a call has under its terms, which of those asked for it has not, and the refusal if it must."""

from typing import final

from toolrunner.process import SpawnErrorKind, SpawnRefused
from toolrunner.sandbox.profile import NetworkMode
from toolrunner.sandbox.terms import Terms
from toolrunner.sandbox.words import Guarantee


@final
class Promises:
    """One call's. Filled by `hold` or `lack`, then only read."""

    def __init__(self, agreed: Terms) -> None:
        self._agreed = agreed
        self._held: list[Guarantee] = []
        self._lacking: dict[Guarantee, str] = {}

    def hold(self, absent: list[str]) -> None:
        """What bubblewrap gives. `absent` are files that would be protected and could be made."""
        agreed = self._agreed
        self._held = [Guarantee.FS_READ, Guarantee.FS_WRITE, Guarantee.KILL_TREE, Guarantee.ENV, Guarantee.TTY]
        if not agreed.protect:
            self.lack(Guarantee.PROTECT_PATHS, why="the profile protects none")
        elif absent:
            self.lack(Guarantee.PROTECT_PATHS, why=f"{', '.join(absent)} can be made, since nothing is there yet")
        else:
            self._held.append(Guarantee.PROTECT_PATHS)
        if agreed.network is NetworkMode.NONE:
            self._held.append(Guarantee.NETWORK)
        else:
            self.lack(Guarantee.NETWORK, why="the profile leaves it the host's")
        self.lack(Guarantee.UNIX_SOCKETS, why="only the folders that a system keeps its sockets in are masked")
        self.lack(Guarantee.LIMITS_MEMORY, why="a limit holds for each process, not for all of a call together")
        self.lack(Guarantee.LIMITS_PIDS, why="this needs a cgroup of the call's own")

    def lack(self, *which: Guarantee, why: str) -> None:
        """Note what there is not."""
        self._lacking.update((each, why) for each in which)

    def check(self) -> None:
        """Raises SpawnRefused if something is lacking that must not."""
        short = [f"{each} ({self._lacking[each]})" for each in sorted(self._agreed.require) if each in self._lacking]
        if short:
            text = f"profile {self._agreed.name}: it requires what cannot be had: {', '.join(short)}"
            raise SpawnRefused(SpawnErrorKind.SANDBOX, text)

    @property
    def enforced(self) -> tuple[str, ...]:
        """In the order of `Guarantee`."""
        return tuple(each for each in Guarantee if each in self._held)

    @property
    def missing(self) -> tuple[str, ...]:
        """Of what the profile asks for; what it does not mention is no loss."""
        asked = [
            each
            for each, wanted in (
                (Guarantee.PROTECT_PATHS, self._agreed.protect),
                (Guarantee.LIMITS_MEMORY, self._agreed.limits.memory is not None),
                (Guarantee.LIMITS_PIDS, self._agreed.limits.pids is not None),
            )
            if wanted and each in self._lacking
        ]
        return tuple(f"{each}: {self._lacking[each]}" for each in asked)
