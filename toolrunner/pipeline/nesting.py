"""In whose bodies the current code runs, so that a runner refuses to be run or closed from inside itself.

State: one context variable, set in the context of each body and each undo.
"""

import contextvars

from toolrunner.pipeline.services import Services
from toolrunner.pipeline.state import ActiveCall

_INSIDE: contextvars.ContextVar[tuple[Services, ...]] = contextvars.ContextVar("toolrunner_inside", default=())
"""The runners in one of whose bodies the current code runs, outermost first."""


def inside_body_of(services: Services) -> bool:
    """Whether the current code runs in a body of this runner."""
    return any(one is services for one in _INSIDE.get())


def inside(services: Services) -> contextvars.Context:
    """The current context, marked as code that runs inside this runner."""
    context = contextvars.copy_context()
    context.run(_enter, services)
    return context


def _enter(services: Services) -> None:
    _INSIDE.set((*_INSIDE.get(), services))


def body_context(state: ActiveCall, services: Services) -> contextvars.Context:
    """The submitter's context variables, for one body, or for an undo of what it did."""
    context = state.context.copy()
    context.run(_enter, services)
    return context
