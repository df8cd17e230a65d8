"""Sandbox: one profile, loaded and frozen, that turns plans into plans for contained processes. State: none after it is made.

A file that is edited while calls run changes nothing: what was loaded holds until somebody loads again.
"""

import os
import resource
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from toolrunner.config import Loaded
from toolrunner.errors import ProfileError
from toolrunner.process import QUIET_ENVIRONMENT, LaunchPlan, Leftovers, SpawnErrorKind, SpawnRefused, Wrapping
from toolrunner.sandbox import probing
from toolrunner.sandbox.bubblewrap import Shape, TooManyRules, start
from toolrunner.sandbox.environment import inherited
from toolrunner.sandbox.overlay import Layer, NoLayer, OpenTransaction, make_layer
from toolrunner.sandbox.places import Places, places
from toolrunner.sandbox.profile import NetworkMode, Profile, TransactionRules, load_profile, workspace_profile
from toolrunner.sandbox.promises import Promises
from toolrunner.sandbox.protect import absent, protected
from toolrunner.sandbox.terms import Terms, check_examples, terms
from toolrunner.sandbox.user import CannotDrop, User, can_reach, whom
from toolrunner.sandbox.view import Table, is_within, resolved, write_roots
from toolrunner.sandbox.words import BackendName, Guarantee, Level


@final
class Sandbox:
    """What contains the processes of a runner or of a tool.

    Args:
        profile: a name (`workspace-write`), the path of a file, or a table of values.
        require: guarantees without which nothing is started, besides those of the profile.
        transaction: have calls write into a layer, if the profile does not say so itself; by default carried over when a call
            succeeded, and discarded else.

    Raises:
        ProfileError: it does not load, its examples are not so, or a guarantee has no such name.
    """

    def __init__(
        self,
        profile: str | os.PathLike[str] | Mapping[str, Any],
        *,
        require: tuple[str, ...] = (),
        transaction: TransactionRules | None = None,
    ) -> None:
        self.loaded: Loaded[Profile] = load_profile(profile)
        check_examples(self.loaded)
        unknown = [word for word in require if word not in [str(each) for each in Guarantee]]
        if unknown:
            raise ProfileError(f"there is no guarantee {unknown[0]!r}; there are {', '.join(Guarantee)}")
        self.require = frozenset(Guarantee(word) for word in require)
        self.transaction = transaction

    @property
    def name(self) -> str:
        """The profile's name."""
        return self.loaded.name

    def terms(self, where: Places) -> Terms:
        """What holds for a call at these places, the workspace's own word included. Raises ProfileError."""
        found = terms(self.loaded, where)
        found = replace(found, require=found.require | self.require, transaction=found.transaction or self.transaction)
        narrower = workspace_profile(Path(where.cwd))
        if narrower is not None:
            check_examples(narrower)
            found = found.narrowed(terms(narrower, where))
        return found

    async def wrap(self, plan: LaunchPlan, also: "Sandbox | None" = None) -> LaunchPlan:
        """The plan of the same command, contained; with `also` by both. Not for transactions, which somebody has to end.

        Raises:
            SpawnRefused: it cannot be contained as the profile says; why, and what would help. Nothing was started.
        """
        enclosed = await self.enclose(plan, None, also)
        return enclosed.plan

    async def enclose(self, plan: LaunchPlan, name: str | None, also: "Sandbox | None" = None) -> "Enclosed":
        """The same, as a transaction of that name where one is asked for. Raises SpawnRefused."""
        where = places(os.fsdecode(plan.cwd) if plan.cwd is not None else os.getcwd())
        try:
            agreed = self.terms(where)
            if also is not None:
                agreed = agreed.both(also.terms(where))
        except ProfileError as error:
            raise SpawnRefused(SpawnErrorKind.SANDBOX, str(error)) from error
        if agreed.transaction is not None and (name is None or agreed.backend is BackendName.NONE):
            raise _refused(agreed, "only a command with a sandbox can be a transaction, no job, shell or worker")
        if agreed.backend is BackendName.NONE:
            return Enclosed(_bare(plan, agreed))
        if plan.leftovers is Leftovers.KEEP:
            raise _refused(agreed, "what a command leaves ends with its sandbox, so leftovers cannot be kept")
        try:
            user = whom(where.cwd)
        except CannotDrop as error:
            raise _refused(agreed, str(error)) from error
        found, tried = await probing.find(user, overlay=agreed.transaction is not None)
        if found is None:
            raise _refused(agreed, _why_none(tried))
        return _enclosed(plan, agreed, _Ground(where, found, user), name)


@final
@dataclass(frozen=True, slots=True)
class Enclosed:
    """A plan for a contained process, and the transaction that its end has to settle."""

    plan: LaunchPlan
    transaction: OpenTransaction | None = None


@final
@dataclass(frozen=True, slots=True)
class _Ground:
    """What one call stands on."""

    where: Places
    found: probing.Found
    user: User


def _bare(plan: LaunchPlan, agreed: Terms) -> LaunchPlan:
    promises = Promises(agreed)
    promises.lack(*agreed.require, why="the backend is none, which holds nothing")
    promises.check()
    return replace(plan, wrapping=Wrapping(agreed.name, BackendName.NONE, os.fsdecode(plan.argv[0])))


def _enclosed(plan: LaunchPlan, agreed: Terms, ground: _Ground, name: str | None) -> Enclosed:
    cwd = ground.where.cwd
    table = protected(resolved(_with_resolver(agreed)), ground.where, names=agreed.protect)
    if table.level(cwd) < Level.READ:
        raise _refused(agreed, f"the working directory {cwd!r} is hidden by it")
    promises = Promises(agreed)
    promises.hold(absent(table) if agreed.protect else [])
    promises.check()
    transaction = None
    if agreed.transaction is not None and name is not None:
        transaction = OpenTransaction(_layer(table, agreed, ground, name), agreed.transaction, agreed.network is NetworkMode.NONE)
    try:
        return Enclosed(_contained(plan, agreed, ground, table, promises, transaction), transaction)
    except BaseException:
        if transaction is not None:
            transaction.drop()
        raise


def _layer(table: Table, agreed: Terms, ground: _Ground, name: str) -> Layer:
    """Over the working directory, which has to be all that may be written: else the changes would not be known."""
    cwd = ground.where.cwd
    below = [(path, level) for path, level in table.levels.items() if is_within(path, cwd)]
    shut = tuple(os.path.relpath(path, cwd) for path, level in below if level is not Level.WRITE)
    others = [path for path in write_roots(table) if path != cwd and can_reach(path, ground.user)]
    if others or table.level(cwd) is not Level.WRITE:
        why = f"{others[0]} may be written too" if others else "it may not be written"
        raise _refused(agreed, f"a transaction is about the working directory, and {why}")
    try:
        return make_layer(name, cwd, ground.user, agreed.name, shut)
    except (OSError, NoLayer) as error:
        raise _refused(agreed, f"no layer for its changes: {error}") from error


def _contained(
    plan: LaunchPlan, agreed: Terms, ground: _Ground, table: Table, promises: Promises, transaction: OpenTransaction | None
) -> LaunchPlan:
    layer = transaction.layer if transaction is not None else None
    shape = Shape(
        agreed.network, ground.where.cwd, plan.tty is not None, ground.found.forbids_nesting, frozenset(plan.pass_fds), layer
    )
    try:
        inside = start(ground.found.path, table, ground.user, shape)
    except TooManyRules as error:
        raise _refused(agreed, "it hides more single files than one start can carry; hide their folders") from error
    wrapping = Wrapping(
        agreed.name, BackendName.BUBBLEWRAP, os.fsdecode(plan.argv[0]), generations=2, status_fd=inside.status_fd,
        enforced=promises.enforced, missing=promises.missing,
    )  # fmt: skip
    return replace(
        plan,
        argv=(*inside.words, *plan.argv),
        env=_environment(plan, agreed),
        clear_env=True,
        data_fds=inside.data,
        limits=_limits(agreed),
        become=ground.user,
        wrapping=wrapping,
    )


def _with_resolver(agreed: Terms) -> Table:
    """With a network, names are looked up by what /etc/resolv.conf leads to, which may lie among the sockets in /run."""
    resolver = os.path.realpath("/etc/resolv.conf")
    if agreed.network is NetworkMode.NONE or agreed.table.level(resolver) is not Level.EMPTY:
        return agreed.table
    return replace(agreed.table, levels={**agreed.table.levels, resolver: Level.READ})


def _refused(agreed: Terms, why: str) -> SpawnRefused:
    return SpawnRefused(SpawnErrorKind.SANDBOX, f"profile {agreed.name}: {why}")


def _why_none(tried: tuple[probing.Found, ...]) -> str:
    if not tried:
        return probing.INSTALL
    return "no bubblewrap works here: " + "; ".join(f"{each.path}: {each.problem}" for each in tried)


def _environment(plan: LaunchPlan, agreed: Terms) -> dict[str, str]:
    """All variables of the call. bwrap gets the same ones: it is the first process inside, and anybody there can read its own."""
    result: dict[str, str] = {}
    if not plan.clear_env:
        result.update(inherited(os.environ, agreed.env))
        result.update(QUIET_ENVIRONMENT if plan.tty is None else {})
    for rules in agreed.env:
        result.update(rules.set)
    for name, value in plan.env.items():
        key = os.fsdecode(name)
        if value is None:
            result.pop(key, None)
        else:
            result[key] = os.fsdecode(value)
    return result


def _limits(agreed: Terms) -> dict[int, int]:
    found = {resource.RLIMIT_AS: agreed.limits.memory, resource.RLIMIT_FSIZE: agreed.limits.file_size}
    return {which: most for which, most in found.items() if most is not None}


async def enclosed(plan: LaunchPlan, name: str, *sandboxes: Sandbox | None) -> Enclosed:
    """The plan under what there is of a runner's sandbox and a tool's. Raises SpawnRefused."""
    first, *others = [*(each for each in sandboxes if each is not None), None]
    return Enclosed(plan) if first is None else await first.enclose(plan, name, others[0])
