"""What one body may ask of its runner: the pipeline's side of ToolContext. No state of its own; everything is the call's."""

import codecs
import logging
import threading
from collections.abc import Awaitable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal, final

from pydantic import JsonValue

from toolrunner.effects import EffectScope, Undo, UndoFunction
from toolrunner.facts.frozen import freeze
from toolrunner.pipeline.cleanup import cleanup
from toolrunner.pipeline.jobs import CallJobs
from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall
from toolrunner.records import Output, Progress, Record
from toolrunner.results import ToolResult
from toolrunner.tools import ContextServices, ToolContext

_logger = logging.getLogger("toolrunner")


@final
class BodyServices:
    """Implements `ContextServices` for one call. Usable from the body's own thread where the protocol says so."""

    def __init__(self, state: ActiveCall, services: Services) -> None:
        self._state = state
        self._services = services
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}
        """One per stream that said something: a character may be cut in two by the border of a chunk."""

    def effect(self, kind: str, target: str, shield: bool, undo: Undo | UndoFunction | None) -> EffectScope:
        """An effect of the body."""
        return self._state.ledger.declare(kind, target, shield=shield, undo=undo)

    def run(self, name: str, arguments: Mapping[str, Any]) -> Awaitable[ToolResult]:
        """A child call: this call's merged signal, its locks, and it does not end before its child."""
        return self._services.run_child(self._state, name, arguments)

    def output(self, text: str) -> None:
        """Show a chunk to observers."""
        self._transient(Output(run_id=self._state.run_id, stream="output", text=str(text)))

    def progress(self, message: str, done: float | None, total: float | None) -> None:
        """Show how far the body is."""
        self._transient(Progress(run_id=self._state.run_id, message=message, done=done, total=total))

    def follow_up(self, value: JsonValue) -> None:
        """Keep a value for the result. Raises `FreezeError` for what JSON cannot say."""
        self._state.follow_up.append(freeze(value, "follow_up"))

    def cleanup(self) -> AbstractContextManager[object]:
        """Hold cancels back for the block."""
        return cleanup(self._state.ledger)

    @property
    def jobs(self) -> CallJobs:
        """Processes that may outlive the call."""
        return CallJobs(self._state, self._services)

    def process_output(self, stream: str, data: bytes) -> None:
        """Show a chunk of a command's output."""
        kind: Literal["stdout", "stderr"] = "stderr" if stream == "stderr" else "stdout"
        decoder = self._decoders.get(kind)
        if decoder is None:
            decoder = self._decoders[kind] = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(data)
        if text:
            self._services.emit(Output(run_id=self._state.run_id, stream=kind, text=text))

    def _transient(self, record: Record) -> None:
        if threading.get_ident() == self._services.loop_thread:
            self._services.emit(record)
            return
        try:
            self._services.post(lambda: self._services.emit(record))
        except RuntimeError:  # the loop is gone, and with it everybody who could have looked
            _logger.debug("output of %s came after its loop had closed", self._state.name)


def body_arguments(state: ActiveCall, services: ContextServices) -> dict[str, Any]:
    """Keyword arguments for the body's function, its context among them. A fresh mapping for each attempt."""
    assert state.registration is not None
    tool = state.registration.tool
    # Parsed anew for another attempt: a body may have changed the objects it was given.
    kwargs = dict(state.kwargs) if not state.attempts or not isinstance(state.arguments, dict) else tool.parse(state.arguments)
    if tool.takes_context is not None:
        kwargs[tool.takes_context] = ToolContext(
            signal=state.shown_signal,
            deps=state.deps,
            call=state.call,
            run_id=state.run_id,
            attempt=state.attempts + 1,
            kind=tool.kind,
            services=services,
            call_jobs=services.jobs if isinstance(services, BodyServices) else None,
        )
    return kwargs
