"""ActiveCall: the one mutable state of a call on its way through the rows; every field says who writes it.

`prepare` writes what is decided before anything runs, `act` what happens while it runs, `finish` the result. Nobody else writes.
Changes are synchronous: whoever checks a field and acts on it does both without an await in between.
"""

import contextvars
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

from pydantic import JsonValue

from toolrunner.abort import AbortSignal
from toolrunner.calls import ToolCall
from toolrunner.effects import EffectLedger, Scan
from toolrunner.facts import AbortReason, GrantKey, Isolation, Note, Source, StillRunning, StopPhase
from toolrunner.pipeline.ends import BodyEnd, CallWatch, Refusal, code_of
from toolrunner.pipeline.environment import NOWHERE, Environment
from toolrunner.pipeline.leases import Lease
from toolrunner.pipeline.stop_trace import StopTrace
from toolrunner.policy import Grant
from toolrunner.process import Job
from toolrunner.results import Code, Error, ErrorKind, Outcome, ToolResult
from toolrunner.tasks import Happening
from toolrunner.tools import Command, Registration, Reply, Resource, ShellLine


@final
@dataclass(eq=False, slots=True, kw_only=True)
class ActiveCall:
    """One accepted call until its result is published."""

    # Set once, at acceptance.
    call: ToolCall
    """What was asked for. Its arguments are frozen in row 0; an approver may have them replaced."""
    run_id: str
    deps: Any
    ledger: EffectLedger
    signal: AbortSignal
    """Everything that may keep the call from starting, drains included."""
    stop_batch: Callable[[AbortReason], object]
    """Aborts the rest of the batch: a hook's cancel, an approver's stop."""
    parent: "ActiveCall | None" = None
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    moved: Callable[[], object] = lambda: None
    """Tells its batch that it began or ceased to wait for an approval."""
    index: int = 0
    """Its place in its batch."""
    previous: "ActiveCall | None" = None
    """The call before it there, after which it settles."""
    has_task: bool = False
    """Its own task has begun, so that task and nobody else settles it."""

    # Written by prepare.
    arguments: JsonValue = None
    problem: str | None = None
    """Why the arguments could not be frozen. It wins over everything else, an abort at entry included."""
    registration: Registration | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    resources: tuple[Resource, ...] = ()
    command: Command | None = None
    line: ShellLine | None = None
    """What is to be run in a living shell."""
    environment: Environment = NOWHERE
    ask_text: str | None = None
    """What somebody is to be asked; None = nobody need be."""
    waiting_for_approval: bool = False
    decided: Happening = field(default_factory=Happening)
    """Set when hooks have had their say, so that the next call's may be asked; an approval may still be pending."""
    grant_key: GrantKey | None = None
    grant: Grant | None = None
    """The approval it carries; row 8 asks whether that still fits. None = nobody had to be asked."""
    modified_by: str | None = None

    # Written by act.
    refusal: Refusal | None = None
    """Set at most once, by whoever refuses; a started call has none."""
    started: bool = False
    """Invariant: True from the moment of action on, never before, and never taken back without proof (a failed exec)."""
    attempts: int = 0
    """How often the body was entered, so the next one has number `attempts + 1`. An attempt that came no further is none."""
    end_before: "BodyEnd | None" = None
    """How the attempt before the one under way ended; it stays the call's end if that one proves never to have run."""
    claimed_key: str | None = None
    """The idempotency key that this call took and has to finish."""
    replay: ToolResult | None = None
    """The recorded result of an earlier call with the same key."""
    about_run_id: str | None = None
    """The other call that this one's answer is about: replayed, in doubt, or handed in by a wrapper."""
    lease: Lease | None = None
    grant_is_stale: bool = False
    approved_again: bool = False
    watch: CallWatch | None = None
    scan: Scan | None = None
    """What the scans of the watched folders showed; None = nobody looked."""
    body_signal: AbortSignal = field(init=False)
    """Caller, every wrapper and the deadline, merged; without drains. The runner's own reading copy."""
    shown_signal: AbortSignal = field(init=False)
    """The same for the body: an object of its own, so that it tells whether the body has noticed an abort."""
    end: BodyEnd | None = None
    ended_result: tuple[tuple[object, ...], ToolResult] | None = None
    """The result as the body left it, and what it was told by; written by `finish.body_result`, and only a shortcut."""
    stop_before: StopTrace = field(default_factory=StopTrace)
    """The stop of the attempt before, if that one was ended by its time limit."""
    cause: AbortReason | None = None
    """What had asked the body to stop when it ended, or what a later check of row 10 found."""
    lives: bool = False
    """Its body's task is at work: whatever it holds is given back by that task and by nobody else."""
    published_early: Happening = field(default_factory=Happening)
    """Set when the body's task is done with it, or when the result is to be published although it still runs."""
    left_running: tuple[StillRunning, ...] = ()
    """The body, if it still ran when the result was published."""
    takes_children: bool = False
    """From the moment of action until its body and all its child calls are over."""
    children: "set[ActiveCall]" = field(default_factory=set)
    """Child calls that have not settled; written by `ctx.run`."""
    records_before: int = 0
    """How many effects were recorded before the attempt under way; written by `begin`."""
    undo_resources: tuple[Resource, ...] = ()
    """What the undos of its child calls need, beside its own resources; written by `ctx.run`."""
    undos_running: tuple[StillRunning, ...] = ()
    """Undos that have not ended: the one under way, or one that ran over its bound; written by `compensate`."""
    doubts: dict[str, frozenset[str]] = field(default_factory=dict)
    """Records that stand for what a child may have done beside its own records, and the ids of those; written by `ctx.run`."""
    silent_children: bool = False
    """A child call may have changed something that none of its records tells of; written by `ctx.run`."""
    jobs: list[Job] = field(default_factory=list)
    """Jobs that it started or left; those that live when it settles are listed, or ended if it was stopped."""
    children_running: tuple[StillRunning, ...] | None = ()
    """What its child calls left running, told here as well; None = nothing was found, and one of them could not prove it."""
    answered: bool = False
    """A wrapper answered in the body's place, maybe with the result of the call `about_run_id`."""
    wrapped: Reply | None = None
    """What wrappers and post hooks made of the answer; None = the body's own."""
    wrapper_error: Error | None = None
    stop: StopTrace = field(default_factory=StopTrace)
    notes: list[Note] = field(default_factory=list)
    follow_up: list[JsonValue] = field(default_factory=list)

    # Written by finish.
    post_error: Error | None = None
    result: ToolResult | None = None
    settled: Happening = field(default_factory=Happening)

    def __post_init__(self) -> None:
        """Before anything is known of wrappers and deadlines, the body's signal is the caller's without drains."""
        self.arguments = self.call.arguments if isinstance(self.call.arguments, str) else None
        self.body_signal = self.shown_signal = self.signal.immediate()

    @property
    def name(self) -> str:
        """The name the call was made by."""
        return self.call.name

    @property
    def in_process(self) -> bool:
        """Whether its body runs in this process, so that nobody can end it."""
        isolated = self.registration is not None and self.registration.tool.isolation is Isolation.PROCESS
        return not self.has_exit_status and not isolated

    @property
    def has_exit_status(self) -> bool:
        """Whether its body is a command, which reports by its exit status."""
        return self.command is not None or self.line is not None

    @property
    def saw_abort(self) -> bool:
        """Whether the body has noticed an abort through its signal."""
        return self.shown_signal.observed

    def modify(self, arguments: dict[str, Any], by: str) -> None:
        """Take other arguments, already frozen; everything decided so far was about the old ones."""
        self.arguments = arguments
        self.call = replace(self.call, arguments=arguments)
        self.modified_by = by
        self.grant = None

    def refuse(self, outcome: Outcome, code: Code, error: Error | None = None) -> None:
        """Close the way to the moment of action. The first refusal stays; a call that has started cannot be refused any more.

        (A second attempt can: then the first one's end is what the call is told by.)
        """
        if self.refusal is None and not self.started:
            self.refusal = Refusal(outcome, code, error)

    def refuse_because(self, reason: AbortReason) -> None:
        """An abort or a deadline came before the moment of action. A refusal that came first stays; the stop is noted."""
        if self.started:
            return
        self.stop.request(reason, StopPhase.BEFORE_DISPATCH)
        outcome = Outcome.TIMED_OUT if reason.source == Source.TIMEOUT else Outcome.ABORTED
        self.refuse(outcome, Code.ABORTED_BEFORE_DISPATCH)

    def begin(self) -> None:
        """The moment of action. Only row 8 calls it, in the same stretch as the body's first step."""
        self.started = self.takes_children = True
        self.attempts += 1
        self.records_before = self.ledger.count
        self.end_before, self.end = self.end, None
        # A call that is tried again was not stopped: what is on record is the time limit of the attempt before.
        self.stop_before, self.stop = self.stop, StopTrace()

    def never_ran(self, error: Error | None) -> None:
        """The release was made, and the exec answer proves that the command never ran: the one way to take `started` back.

        Without an error it was a stop that came first.
        """
        self.attempts -= 1
        self.end = self.end_before
        if self.stop.reason is None:
            self.stop = self.stop_before
        if not self.attempts:
            self.started = False
            if error is None and self.stop.reason is not None:
                self.refuse_because(self.stop.reason)
            error = error or Error(ErrorKind.SETUP, "the command never ran")
            self.refuse(Outcome.REJECTED, code_of(error.kind), error)

    def refuse_if_aborted(self) -> bool:
        """The check between two steps before dispatch: an abort, or the batch's deadline, closes the way.

        It closes it for another attempt of a started call too, which is not refused by that: its last end is what it is told by.
        """
        reason = self.signal.reason
        if reason is not None:
            self.refuse_because(reason)
        return reason is not None or self.refusal is not None

    def ancestors(self) -> "list[ActiveCall]":
        """The calls in whose bodies this one was made, nearest first."""
        chain: list[ActiveCall] = []
        call = self.parent
        while call is not None:
            chain.append(call)
            call = call.parent
        return chain
