"""Terms: what holds for one call, out of its profile and of everything that narrows it. Frozen."""

from dataclasses import dataclass, replace
from typing import final

from toolrunner.config import Loaded
from toolrunner.errors import ProfileError
from toolrunner.sandbox.places import EXAMPLE, Places
from toolrunner.sandbox.profile import Access, Env, Expect, Limits, NetworkMode, Profile, TransactionRules
from toolrunner.sandbox.view import Table, table
from toolrunner.sandbox.words import BackendName, Guarantee, Level


@final
@dataclass(frozen=True, slots=True)
class Terms:
    """`table` is as the profiles say it; what is always taken back comes later. A variable passes if all of `env` let it."""

    name: str
    digest: str
    backend: BackendName
    require: frozenset[Guarantee]
    table: Table
    network: NetworkMode
    protect: bool
    env: tuple[Env, ...]
    limits: Limits
    transaction: TransactionRules | None = None

    def narrowed(self, other: "Terms") -> "Terms":
        """What both allow. The other's backend and its variables do not count: it may take away, not choose or add."""
        modes = {self.network, other.network}
        return replace(
            self,
            name=f"{self.name} and {other.name}",
            digest=f"{self.digest}+{other.digest}",
            require=self.require | other.require,
            table=self.table.narrowed(other.table),
            network=NetworkMode.HOST if modes == {NetworkMode.HOST} else NetworkMode.NONE,
            protect=self.protect or other.protect,
            env=(*self.env, *(each.model_copy(update={"set": {}}) for each in other.env)),
            limits=Limits(
                memory=_least(self.limits.memory, other.limits.memory),
                file_size=_least(self.limits.file_size, other.limits.file_size),
                pids=_least(self.limits.pids, other.limits.pids),
            ),
        )

    def both(self, other: "Terms") -> "Terms":
        """What both allow, where both were chosen by the host: then the other's backend counts, and it adds its variables."""
        backend = other.backend if self.backend is BackendName.NONE else self.backend
        transaction = self.transaction or other.transaction
        return replace(self.narrowed(other), backend=backend, env=(*self.env, *other.env), transaction=transaction)

    def allows(self, access: Access, path: str) -> bool:
        """Whether the profiles allow it; `path` is absolute and normal."""
        if access is Access.CONNECT:
            return self.backend is BackendName.NONE or self.network is NetworkMode.HOST
        if self.backend is BackendName.NONE:
            return True
        level = self.table.level(path)
        return level in (Level.PRIVATE, Level.WRITE) or (access is Access.READ and level is Level.READ)


def _least(one: int | None, other: int | None) -> int | None:
    given = [each for each in (one, other) if each is not None]
    return min(given) if given else None


def terms(loaded: Loaded[Profile], places: Places) -> Terms:
    """What one profile says about a call at these places."""
    profile = loaded.document
    return Terms(
        name=loaded.name,
        digest=loaded.digest,
        backend=profile.backend,
        require=frozenset(profile.require),
        table=table(profile.filesystem, profile.network, places),
        network=profile.network.mode,
        protect=profile.filesystem.protect,
        env=(profile.env,),
        limits=profile.limits,
        transaction=profile.transaction,
    )


def check_examples(loaded: Loaded[Profile]) -> None:
    """Hold a profile to what its author says of it. Raises ProfileError, naming the first example that is not so."""
    found = terms(loaded, EXAMPLE)
    for number, example in enumerate(loaded.document.examples, 1):
        allowed = found.allows(example.access, EXAMPLE.absolute(example.path))
        if allowed != (example.expect is Expect.ALLOW):
            what = example.access if example.access is Access.CONNECT else f"{example.access} {example.path}"
            answer = Expect.ALLOW if allowed else Expect.DENY
            raise ProfileError(f"profile {loaded.name}: example {number} ({what}) expects {example.expect}, and it is {answer}")
