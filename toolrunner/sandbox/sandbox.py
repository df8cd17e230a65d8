"""Sandbox: one profile, loaded and frozen, that turns plans into plans for contained processes. State: none after it is made.

A file that is edited while calls run changes nothing: what was loaded holds until somebody loads again.
"""

import os
import resource
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, final

from toolrunner.config import Loaded
from toolrunner.errors import ProfileError
from toolrunner.process import QUIET_ENVIRONMENT, LaunchPlan, Leftovers, SpawnErrorKind, SpawnRefused, Wrapping
from toolrunner.sandbox import probing
from toolrunner.sandbox.bubblewrap import ARGS_FD, STATUS_FD, TooManyRules, argv, options, packed
from toolrunner.sandbox.environment import inherited
from toolrunner.sandbox.places import Places, places
from toolrunner.sandbox.profile import NetworkMode, Profile, load_profile, workspace_profile
from toolrunner.sandbox.promises import Promises
from toolrunner.sandbox.protect import absent, protected
from toolrunner.sandbox.terms import Terms, check_examples, terms
from toolrunner.sandbox.user import CannotDrop, User, whom
from toolrunner.sandbox.view import Table, resolved
from toolrunner.sandbox.words import BackendName, Guarantee, Level


@final
class Sandbox:
    """What contains the processes of a runner or of a tool.

    Args:
        profile: a name (`workspace-write`), the path of a file, or a table of values.
        require: guarantees without which nothing is started, besides those of the profile.

    Raises:
        ProfileError: it does not load, its examples are not so, or a guarantee has no such name.
    """

    def __init__(self, profile: str | os.PathLike[str] | Mapping[str, Any], *, require: tuple[str, ...] = ()) -> None:
        self.loaded: Loaded[Profile] = load_profile(profile)
        check_examples(self.loaded)
        unknown = [word for word in require if word not in [str(each) for each in Guarantee]]
        if unknown:
            raise ProfileError(f"there is no guarantee {unknown[0]!r}; there are {', '.join(Guarantee)}")
        self.require = frozenset(Guarantee(word) for word in require)

    @property
    def name(self) -> str:
        """The profile's name."""
        return self.loaded.name

    def terms(self, where: Places) -> Terms:
        """What holds for a call at these places, the workspace's own word included. Raises ProfileError."""
        found = terms(self.loaded, where)
        found = replace(found, require=found.require | self.require)
        narrower = workspace_profile(Path(where.cwd))
        if narrower is not None:
            check_examples(narrower)
            found = found.narrowed(terms(narrower, where))
        return found

    async def wrap(self, plan: LaunchPlan, also: "Sandbox | None" = None) -> LaunchPlan:
        """The plan of the same command, contained; with `also` by both.

        Raises:
            SpawnRefused: it cannot be contained as the profile says; why, and what would help. Nothing was started.
        """
        where = places(os.fsdecode(plan.cwd) if plan.cwd is not None else os.getcwd())
        try:
            agreed = self.terms(where)
            if also is not None:
                agreed = agreed.both(also.terms(where))
        except ProfileError as error:
            raise SpawnRefused(SpawnErrorKind.SANDBOX, str(error)) from error
        if agreed.backend is BackendName.NONE:
            return self._bare(plan, agreed)
        if plan.leftovers is Leftovers.KEEP:
            raise _refused(agreed, "what a command leaves ends with its sandbox, so leftovers cannot be kept")
        try:
            user = whom(where.cwd)
        except CannotDrop as error:
            raise _refused(agreed, str(error)) from error
        found, tried = await probing.find(user)
        if found is None:
            raise _refused(agreed, _why_none(tried))
        return self._contained(plan, agreed, where, found, user)

    @staticmethod
    def _bare(plan: LaunchPlan, agreed: Terms) -> LaunchPlan:
        promises = Promises(agreed)
        promises.lack(*agreed.require, why="the backend is none, which holds nothing")
        promises.check()
        return replace(plan, wrapping=Wrapping(agreed.name, BackendName.NONE, os.fsdecode(plan.argv[0])))

    @staticmethod
    def _contained(plan: LaunchPlan, agreed: Terms, where: Places, found: probing.Found, user: User) -> LaunchPlan:
        table = protected(resolved(_with_resolver(agreed)), where, names=agreed.protect)
        if table.level(where.cwd) < Level.READ:
            raise _refused(agreed, f"the working directory {where.cwd!r} is hidden by it")
        promises = Promises(agreed)
        promises.hold(absent(table) if agreed.protect else [])
        promises.check()
        try:
            mounts = options(
                table, user, agreed.network, where.cwd, has_terminal=plan.tty is not None, nests=not found.forbids_nesting
            )
        except TooManyRules as error:
            raise _refused(agreed, "it hides more single files than one start can carry; hide their folders") from error
        wrapping = Wrapping(
            agreed.name, BackendName.BUBBLEWRAP, os.fsdecode(plan.argv[0]), generations=2, status_fd=STATUS_FD,
            enforced=promises.enforced, missing=promises.missing,
        )  # fmt: skip
        return replace(
            plan,
            argv=argv(found.path, plan.argv),
            env=_environment(plan, agreed),
            clear_env=True,
            data_fds={ARGS_FD: packed(mounts.options), **mounts.data},
            limits=_limits(agreed),
            become=user,
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


async def contained(plan: LaunchPlan, *sandboxes: Sandbox | None) -> LaunchPlan:
    """The plan under what there is of a runner's sandbox and a tool's. Raises SpawnRefused."""
    first, *others = [*(each for each in sandboxes if each is not None), None]
    return plan if first is None else await first.wrap(plan, also=others[0])
