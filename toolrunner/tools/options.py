"""What a tool is declared with beside its function: the options of `@tool`, checked when the tool is defined.

No state.
"""

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, TypedDict, final

from toolrunner.errors import ToolDefinitionError
from toolrunner.facts import Annotations, Isolation

ParallelSafe = bool | Callable[[Mapping[str, Any]], object]
"""Whether a call may overlap others: always or never, or told from its arguments. Only an exact True means yes."""


class ResourceMode(StrEnum):
    """How a call uses a resource. Readers share it; a writer has it alone."""

    READ = "read"
    WRITE = "write"


@final
@dataclass(frozen=True, slots=True, order=True)
class Resource:
    """A thing that calls must not use against each other, named by a key that means the same to all tools of the runner."""

    key: str
    mode: ResourceMode | Literal["read", "write"] = ResourceMode.WRITE


Resources = Callable[[Mapping[str, Any]], Iterable[Resource | str]]
"""From the validated arguments to what the call uses; a bare str is written to."""


def resource_modes(resources: Resources, parsed: Mapping[str, Any]) -> dict[str, ResourceMode]:
    """What `resources` names, by key. Raises TypeError for what is no resource, and whatever the function raises."""
    wanted: dict[str, ResourceMode] = {}
    for one in resources(parsed):
        resource = Resource(one) if isinstance(one, str) else one
        if not isinstance(resource, Resource) or not isinstance(resource.key, str):
            raise TypeError(f"{one!r} is no Resource and no str")
        # A key that is read and written counts as written: one lock per key, or a call would wait for itself.
        if wanted.get(resource.key) is not ResourceMode.WRITE:
            wanted[resource.key] = ResourceMode(resource.mode)
    return wanted


class Compensate(StrEnum):
    """When the recorded effects of a call are undone."""

    ON_ABORT = "on_abort"
    """When an abort or a time limit reached it after it had started and before its result was published."""


@final
@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Try again after a failure, if its effects are proven none or the tool is idempotent; an aborted call is never retried.

    `attempts` counts the first one. Waits grow exponentially with jitter from `wait_initial` to `wait_max` seconds.
    """

    attempts: int
    wait_initial: float = 0.5
    wait_max: float = 10.0

    def problem(self) -> str | None:
        """What is wrong with it, or None."""
        if not _is_whole(self.attempts) or self.attempts < 1:
            return f"retry attempts are {self.attempts!r}; expected a whole number, 1 or more"
        if not (_is_number(self.wait_initial) and _is_number(self.wait_max) and 0 <= self.wait_initial <= self.wait_max):
            return f"retry waits are {self.wait_initial!r} to {self.wait_max!r}; expected seconds, the first not above the last"
        return None


class ToolOptions(TypedDict, total=False):
    """The keyword arguments of `tool` and `command_tool`.

    name: what the model calls it; default: the function's name. One to 64 of letters, digits, `_`, `-`.
    description: what the model reads; default: the docstring without its sections.
    read_only, destructive, idempotent, open_world: what the tool declares of itself, as in MCP. Nobody checks that it is true.
    parallel_safe: default: read-only tools are, others are not.
    resources: what a call reads and writes, so that the runner can lock it.
    timeout: seconds from the start of the body.
    kill_after: seconds between the request to end and the kill; default: the runner's.
    max_concurrency: calls of this tool at the same time, over all batches of a runner.
    retry: a `RetryPolicy`, or just the number of attempts.
    compensate: "on_abort" undoes the effects that declare an undo when the call was stopped, in reverse, before its result is
        published. A body that fails without being stopped keeps what it did. Not for command tools and isolated ones.
    dedupe_by_arguments: an equal call of the session is answered from the first one: always, or for so many seconds.
    watch: folders to scan for changes, before and after.
    isolation: "process" runs the body in a supervised Python process of its own, one per call, which can be killed. For
        module-level functions; arguments and value travel as JSON; `ctx.deps`, context variables and what of `call.meta` is no
        JSON stay behind. `timeout` counts from the start of that process; `kill_after` after the request to end it is killed.
    """

    name: str | None
    description: str | None
    read_only: bool
    destructive: bool | None
    idempotent: bool
    open_world: bool | None
    parallel_safe: ParallelSafe | None
    resources: Resources | None
    timeout: float | None
    kill_after: float | None
    max_concurrency: int | None
    retry: RetryPolicy | int | None
    compensate: Compensate | Literal["on_abort"] | None
    dedupe_by_arguments: bool | float
    watch: "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"
    isolation: Isolation | Literal["none", "process"]


NAMES = frozenset(ToolOptions.__annotations__)

_DECLARATIONS = {"read_only": False, "destructive": None, "idempotent": False, "open_world": None}
"""The options that become `Annotations`, with what they are when undeclared."""


def known_options(tool: str, options: Mapping[str, object]) -> None:
    """Refuse an option nobody knows: `TypedDict` is checked by type checkers only."""
    unknown = sorted(set(options) - NAMES)
    if unknown:
        raise ToolDefinitionError(tool, f"has no option {', '.join(map(repr, unknown))}; there are: {', '.join(sorted(NAMES))}")


def annotations(tool: str, options: ToolOptions) -> Annotations:
    """What the tool declares of itself."""
    for key, undeclared in _DECLARATIONS.items():
        value = options.get(key, undeclared)
        if not isinstance(value, bool) and value is not undeclared:
            raise ToolDefinitionError(tool, f"{key} is {value!r}; expected True or False")
    found = Annotations(
        read_only=options.get("read_only", False),
        destructive=options.get("destructive"),
        idempotent=options.get("idempotent", False),
        open_world=options.get("open_world"),
    )
    if found.read_only and found.destructive:
        raise ToolDefinitionError(tool, "is declared read_only and destructive; it can be one of them at most")
    return found


def seconds(tool: str, what: str, value: float | None, *, zero: bool = False) -> None:
    """Refuse what is no finite number of seconds above 0 (or 0, where that has a meaning)."""
    if value is None or (_is_number(value) and (value > 0 or (zero and value == 0))):
        return
    least = "of 0 or more" if zero else "above 0"
    raise ToolDefinitionError(tool, f"{what} is {value!r}; expected a finite number of seconds {least}, or None")


def whole(tool: str, what: str, value: int | None) -> None:
    """Refuse what is no whole number above 0."""
    if value is not None and not (_is_whole(value) and value >= 1):
        raise ToolDefinitionError(tool, f"{what} is {value!r}; expected a whole number, 1 or more, or None")


def retry_policy(tool: str, retry: RetryPolicy | int | None) -> RetryPolicy | None:
    """The policy meant by `retry`."""
    if retry is None:
        return None
    policy = retry if isinstance(retry, RetryPolicy) else RetryPolicy(retry)
    problem = policy.problem()
    if problem is not None:
        raise ToolDefinitionError(tool, problem)
    return policy


def compensation(tool: str, value: Compensate | str | None) -> Compensate | None:
    """When to undo. Raises `ToolDefinitionError`."""
    try:
        return None if value is None else Compensate(value)
    except ValueError:
        expected = " or ".join(repr(str(one)) for one in Compensate)
        raise ToolDefinitionError(tool, f"compensate is {value!r}; expected {expected}, or None") from None


def watched(tool: str, watch: object) -> tuple[str, ...]:
    """The folders meant by `watch`."""
    roots = (watch,) if isinstance(watch, str | os.PathLike) else watch
    if not isinstance(roots, Iterable):
        raise ToolDefinitionError(tool, f"watch is {watch!r}; expected folders")
    found: list[str] = []
    for root in roots:
        path = os.fspath(root) if isinstance(root, str | os.PathLike) else None
        if not isinstance(path, str) or not path:
            raise ToolDefinitionError(tool, f"watch names {root!r}; expected the path of a folder")
        found.append(path)
    return tuple(found)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
