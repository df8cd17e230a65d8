"""Registering: the part of a Runner by which tools, hooks and observers come and go, and stops of single calls.

State: the catalogue, the hooks, the hub and the stops, each changed only by what it offers itself. They may change while calls
run; a call sees them as they are at its own rows.
"""

from collections.abc import Callable, Iterable
from typing import Any

from toolrunner.abort import AbortSignal
from toolrunner.pipeline.hooks import Guard, Hooks, PostHook, PreHook, Wrapper
from toolrunner.records import Journal, Observer
from toolrunner.runner.hub import Hub
from toolrunner.runner.stopping import OwnStops
from toolrunner.tools import AnyTool, Catalogue, Tools, Toolset
from toolrunner.wire import ToolSpec, tools_for


class Registering:
    """What `Runner` is built on. Works before it is entered, and while it is open."""

    def __init__(self, tools: Iterable[Tools], journal: Journal) -> None:
        self._catalogue = Catalogue(Toolset(tools))
        self._hooks = Hooks()
        self._hub = Hub(journal)
        self._stops = OwnStops()

    @property
    def _journal(self) -> Journal:
        return self._hub.journal

    def register(self, tool: AnyTool) -> Callable[[], bool]:
        """Add a tool; returns the way to take it out again. Raises `DuplicateTool`."""
        take_out = self._catalogue.register(tool)
        self._knows(tool)
        return take_out

    def replace(self, tool: AnyTool) -> Callable[[], bool]:
        """Put a tool in the place of the one with its name. Calls decided on for the old one are not run with the new one."""
        take_out = self._catalogue.replace(tool)
        self._knows(tool)
        return take_out

    def _knows(self, tool: AnyTool) -> None:
        """What has to be done before the first call of a tool that came after the runner was entered. Nothing before that."""

    def tools_for(self, provider: str) -> list[dict[str, Any]]:
        """The tool list to send to a provider."""
        specs = [ToolSpec(one.tool.name, one.tool.description, one.tool.parameters) for one in self._catalogue]
        return tools_for(provider, specs)

    def use(self, wrapper: Wrapper) -> Callable[[], None]:
        """Wrap the execution of every call: `async def wrap(call, next): return await next(call, signal=mine)`."""
        return self._hooks.add("wrappers", wrapper)

    def pre_execute(self, hook: PreHook) -> Callable[[], None]:
        """Have every call looked at before it may run: `async (call, signal) -> None | Decision | ask(text) | cancel(text)`."""
        return self._hooks.add("pre", hook)

    def post_execute(self, hook: PostHook) -> Callable[[], None]:
        """Have every result looked at: `async (call, result, signal) -> None | replace(content) | block(text)`."""
        return self._hooks.add("post", hook)

    def guard(self, guard: Guard) -> Callable[[], None]:
        """A last word before the waits: `(call) -> None | text`; a text denies."""
        return self._hooks.add("guards", guard)

    def on_record(self, observer: Observer) -> Callable[[], None]:
        """Hear of every record of this runner."""
        return self._hub.listen(observer)

    def take_stops(self) -> Callable[[str, str], bool]:
        """Have every call from now on stoppable by itself; returns the way: `stop(run_id, text)`, True if it was under way."""
        self._stops.enable()
        return self._stops.stop

    def _adopt(self, run_id: str, parent_run_id: str) -> AbortSignal | None:
        self._hub.adopt(run_id, parent_run_id)
        return self._stops.begin(run_id)

    def _detach(self, run_id: str) -> None:
        self._hub.detach(run_id)
        self._stops.over(run_id)
