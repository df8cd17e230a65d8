"""Tool: a function and everything the runner has to know about it before it runs it. Frozen; no state.

What is known is told at definition, in full: a tool that could not be run as declared is never registered.
"""

import hashlib
import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from tokenize import TokenError
from typing import Any, Generic, ParamSpec, TypeVar, final

from toolrunner.errors import ToolDefinitionError
from toolrunner.facts import Annotations, Isolation
from toolrunner.tools.bodies import BodyKind
from toolrunner.tools.command import Command
from toolrunner.tools.options import Compensate, ParallelSafe, Resource, Resources, RetryPolicy, resource_modes, seconds, whole
from toolrunner.tools.problems import InvalidArguments, told
from toolrunner.tools.reconcile import ReconcileFn, ReconcileFunction, check_reconcile
from toolrunner.tools.reply import Reply
from toolrunner.tools.schema import Signature

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""The names that every provider takes (OpenAI and Anthropic: exactly this; Gemini takes more)."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tool(Generic[P, R_co]):
    """One tool. Made by `@tool` and `@command_tool`; calling it calls the bare function, as its unit tests do.

    `parameters` is a JSON Schema of type object. `takes_context` names the parameter that gets the `ToolContext`. Times are
    seconds. `version` is equal for two tools with the same name, schema, source and annotations, and tells changed ones apart;
    values that a closure captured are not part of it.

    Raises:
        ToolDefinitionError: a name no provider takes, a time, count or annotation that contradicts itself.
    """

    name: str
    description: str
    kind: BodyKind
    fn: Callable[P, R_co]
    signature: Signature = field(repr=False)
    annotations: Annotations = field(default_factory=Annotations)
    parallel_safe: ParallelSafe | None = None
    resources: Resources | None = None
    timeout: float | None = None
    kill_after: float | None = None
    max_concurrency: int | None = None
    retry: RetryPolicy | None = None
    compensate: Compensate | None = None
    dedupe_by_arguments: bool | float = False
    watch: tuple[str, ...] = ()
    isolation: Isolation = Isolation.NONE
    reconciler: ReconcileFunction | None = None
    """Finds out what became of a call whose effects are unknown; set by `reconcile`."""
    version: str = field(init=False)

    def __post_init__(self) -> None:
        _check(self)
        object.__setattr__(self, "version", _version(self))

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments: a fresh copy, so that nobody can change what is validated and versioned."""
        schema: dict[str, Any] = json.loads(self.signature.schema)
        return schema

    @property
    def takes_context(self) -> str | None:
        """The parameter that gets the `ToolContext`, or None."""
        return self.signature.context

    @property
    def __wrapped__(self) -> Callable[P, R_co]:
        """The function, for `inspect.signature` and `inspect.unwrap`."""
        return self.fn

    def reconcile(self, fn: ReconcileFn) -> ReconcileFn:
        """Declare how to find out what became of a call of this tool that left its effects unknown; to be used as a decorator.

            @charge.reconcile
            async def charged(ctx, call, effects): return "completed" if await found(call) else "none"

        It is given a context (`deps` is there, nothing that changes anything is), the call as it was made and what is known of
        its effects, and answers "completed", "none" or "unknown"; whatever else comes of it counts as "unknown". Until that is
        known, later calls that write to the same `resources` are refused with IN_DOUBT. Returns the function.

        Raises:
            ToolDefinitionError: no coroutine function of three arguments, or the tool has one already.
        """
        if self.reconciler is not None:
            raise ToolDefinitionError(self.name, "has a reconcile function already")
        check_reconcile(self.name, fn)
        object.__setattr__(self, "reconciler", fn)
        return fn

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the bare function: no validation, no runner, no record."""
        return self.fn(*args, **kwargs)

    def parse(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments for the function, validated, defaults filled in; the context is not among them.

        Raises:
            InvalidArguments: naming each bad field, its value and what is expected.
        """
        return self.signature.arguments.parse(arguments)

    def dump(self, returned: object) -> Reply:
        """What the body returned, as JSON and content.

        Raises:
            InvalidOutput: it is not JSON, or not what the return annotation says.
        """
        return self.signature.output.dump(returned)

    def command(self, parsed: Mapping[str, Any]) -> Command:
        """What a command tool wants to have started, from parsed arguments.

        Its function runs before anything is decided: whatever goes wrong in it, nothing was started.

        Raises:
            InvalidArguments: the function raised, or returned no `Command`.
        """
        returned = _before_dispatch(self.name, "no command could be made from these arguments", self.fn, parsed)
        if not isinstance(returned, Command):
            raise InvalidArguments(f"{self.name}: returned {type(returned).__name__}, not a Command")
        return returned

    def is_parallel(self, parsed: Mapping[str, Any]) -> bool:
        """Whether this call may overlap others. Anything but an exact True, an error too, is a no: alone is always safe."""
        if self.parallel_safe is None:
            return self.annotations.read_only
        if not callable(self.parallel_safe):
            return self.parallel_safe is True
        try:
            return self.parallel_safe(parsed) is True
        except Exception:  # noqa: BLE001  # the tool's own code
            return False

    def locks(self, parsed: Mapping[str, Any]) -> tuple[Resource, ...]:
        """What this call reads and writes, sorted, one entry per key (a key that is also written to counts as written).

        Raises:
            InvalidArguments: the tool's `resources` raised or named something else; it cannot be run safely without its locks.
        """
        if self.resources is None:
            return ()
        kwargs = {"resources": self.resources, "parsed": parsed}
        wanted = _before_dispatch(self.name, "the resources of this call cannot be told", resource_modes, kwargs)
        return tuple(Resource(key, wanted[key]) for key in sorted(wanted))


def _before_dispatch(name: str, what: str, fn: Callable[..., Any], kwargs: Mapping[str, Any]) -> Any:
    try:
        return fn(**kwargs)
    except InvalidArguments:
        raise
    except Exception as error:
        raise InvalidArguments(f"{name}: {what}: {told(error)}") from error


def _check(tool: Tool[..., Any]) -> None:
    if not isinstance(tool.name, str) or not NAME.fullmatch(tool.name):
        raise ToolDefinitionError(str(tool.name), "has a name that providers refuse; expected 1 to 64 of a-z, A-Z, 0-9, _ and -")
    seconds(tool.name, "timeout", tool.timeout)
    seconds(tool.name, "kill_after", tool.kill_after, zero=True)
    whole(tool.name, "max_concurrency", tool.max_concurrency)
    if not isinstance(tool.dedupe_by_arguments, bool):
        seconds(tool.name, "dedupe_by_arguments", tool.dedupe_by_arguments)
    if not isinstance(tool.description, str):
        raise ToolDefinitionError(tool.name, f"description is {tool.description!r}; expected text")
    if tool.parallel_safe is not None and not isinstance(tool.parallel_safe, bool) and not callable(tool.parallel_safe):
        raise ToolDefinitionError(tool.name, f"parallel_safe is {tool.parallel_safe!r}; expected True, False or a function")
    if tool.compensate is not None and (tool.kind not in (BodyKind.ASYNC, BodyKind.SYNC) or tool.isolation is not Isolation.NONE):
        where = "its body is a process" if tool.isolation is Isolation.NONE else 'isolation="process"'
        problem = f"has compensate={str(tool.compensate)!r}, but {where}, and an undo is a function of the runner's own process"
        raise ToolDefinitionError(tool.name, problem)
    if tool.resources is not None and not callable(tool.resources):
        raise ToolDefinitionError(tool.name, f"resources is {tool.resources!r}; expected a function")


def _version(tool: Tool[..., Any]) -> str:
    parts = [tool.name, tool.signature.schema, _source(tool.fn), asdict(tool.annotations)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def _source(fn: Callable[..., object]) -> str:
    try:
        return inspect.getsource(fn)
    except (OSError, TypeError, SyntaxError, TokenError):  # from a prompt, exec, a compiled module, or edited since the import
        code = getattr(fn, "__code__", None)
        return code.co_code.hex() if code is not None else f"{fn.__module__}.{fn.__qualname__}"
