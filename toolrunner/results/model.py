"""The facts of one call that is over: frozen, and checked against the table of legal rows when they are built."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from toolrunner.errors import UntrueResult
from toolrunner.facts import Content, Effects, Note, Process, StillRunning, Stop
from toolrunner.results.rows import illegal
from toolrunner.results.words import Code, Ended, Outcome, Retry, Transaction


@dataclass(frozen=True, slots=True)
class Error:
    """What went wrong: `kind` for programs (`ErrorKind`, or the tool's own word), `message` for readers."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What contained the call and what became of its changes. A call without a sandbox has None in its place."""

    profile: str
    backend: str
    violations: tuple[str, ...] = ()
    transaction: Transaction = Transaction.NONE
    conflicts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallFacts:
    """The fields of a result. Texts are made from these alone, so they cannot know more than is told here.

    `started` False is a proof that the body was never entered and no process of the tool was released. `arguments` are those it
    was executed with; `modified_by` names who changed them. `still_running`: `()` is the kernel's word that nothing is left,
    None means that nothing was found but nobody can prove it. `enforced` and `missing` are of what was asked for.
    """

    run_id: str
    name: str
    outcome: Outcome
    started: bool
    effects: Effects
    code: Code | None = None
    ended: Ended | None = None
    call_id: str | None = None
    kind: str = "function"
    provider_meta: Mapping[str, JsonValue] = field(default_factory=dict)
    arguments: JsonValue = None
    modified_by: str | None = None
    parent_run_id: str | None = None
    value: JsonValue = None
    content: tuple[Content, ...] = ()
    follow_up: tuple[JsonValue, ...] = ()
    error: Error | None = None
    attempts: int = 0
    replayed: bool = False
    about_run_id: str | None = None
    retry: Retry = Retry.NO
    stop: Stop | None = None
    process: Process | None = None
    sandbox: Sandbox | None = None
    still_running: tuple[StillRunning, ...] | None = ()
    enforced: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a combination that no row of the table allows: it would be a lie, so building it is a bug of ours."""
        why = illegal(self.outcome, self.code, self.started, self.ended, self.effects)
        if why is None and self.started and self.ended is None and not self.still_running:
            why = "it has not ended, and nothing is listed that still runs"
        if why is not None:
            raise UntrueResult(self.run_id, why)

    @property
    def is_error(self) -> bool:
        """Whether the model should read this as an error: False iff the body returned and reported no error of its own.

        A call answered without its body (a wrapper's own answer) is no error when it succeeded; one that failed always is.
        """
        if self.outcome in (Outcome.SUCCEEDED, Outcome.FAILED):
            return self.outcome is Outcome.FAILED
        return not (self.ended is Ended.RETURNED and self.error is None)

    @property
    def files_changed(self) -> tuple[str, ...] | None:
        """Paths seen to have changed while it ran; None = nobody looked, () = looked, nothing seen.

        `effects.changes` says of each whether only this call can have changed it.
        """
        if self.effects.changes is None:
            return None
        return tuple(change.path for change in self.effects.changes)
