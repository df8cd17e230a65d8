"""ToolResult: the facts of one call, and the five questions people and programs ask of them."""

import signal
from dataclasses import dataclass
from typing import Any, final

from toolrunner.facts import Content
from toolrunner.facts.quick import quick
from toolrunner.results.model import CallFacts
from toolrunner.results.summary import summary
from toolrunner.results.texts import content_for_model
from toolrunner.results.words import Outcome
from toolrunner.wire import WireResult, result_item


@final
@quick
@dataclass(frozen=True, slots=True)
class ToolResult(CallFacts):
    """What is known about one call. It claims nothing else.

    `started` False is a proof that the body was never entered and no process of the tool was released. `arguments` are those it
    was executed with; `modified_by` names who changed them. `still_running`: `()` is the kernel's word that nothing is left,
    None means that nothing was found but nobody can prove it. `enforced` and `missing` are of what was asked for.

    Five questions: `retry` (may it be made again), `content_for_model()` / `to_provider()` (what does the model read),
    `summary()` (what do people read), `files_changed`, `still_running`.
    """

    def content_for_model(self, max_chars: int | None = None) -> tuple[Content, ...]:
        """The real content, then what is true of the call; `max_chars` bounds the text, head and tail kept."""
        return content_for_model(self, max_chars)

    def summary(self) -> str:
        """What happened, in one sentence."""
        return summary(self)

    def to_provider(self, provider: str, max_chars: int | None = None) -> dict[str, Any]:
        """One answer item in the provider's shape. Raises `ConfigError` for a provider nobody knows."""
        return result_item(provider, self.to_wire(max_chars))

    def to_wire(self, max_chars: int | None = None) -> WireResult:
        """The answer in the provider-neutral shape that `toolrunner.wire` turns into messages."""
        return WireResult(
            call_id=self.call_id,
            name=self.name,
            kind=self.kind,
            provider_meta=self.provider_meta,
            content=self.content_for_model(max_chars),
            is_error=self.is_error,
            exit_code=_shell_status(self),
            timed_out=self.outcome is Outcome.TIMED_OUT,
        )


def _shell_status(result: CallFacts) -> int | None:
    """The leader's exit status the way a shell tells it: 128 + n after signal n."""
    process = result.process
    if process is None or process.signal is None:
        return process.exit_code if process is not None else None
    name = process.signal
    known = signal.Signals.__members__.get(name)
    # A real-time signal without a name of its own is told by its number: "SIG35".
    return 128 + (known if known is not None else int(name.removeprefix("SIG")))
