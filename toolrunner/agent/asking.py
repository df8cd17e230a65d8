"""Asking: one step's request, made again as long as that may help. Each request and each failed attempt is on record by itself.

No state but what it was made with. tenacity counts and waits; a stop ends the wait.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, final

import anyio
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from toolrunner.abort import AbortSignal
from toolrunner.agent.hooks import StepView
from toolrunner.agent.model import ModelError, ModelRequest
from toolrunner.agent.parts import Parts
from toolrunner.agent.streaming import Ending, Exchange, Received, Route
from toolrunner.records import RequestSent

__all__ = ["Asking"]


class _Again(Exception):
    """The request failed and is made once more."""

    def __init__(self, error: ModelError) -> None:
        super().__init__(error)
        self.error = error


@final
class Asking:
    """The requests of one turn."""

    def __init__(self, parts: Parts, turn_id: str, signal: AbortSignal) -> None:
        self._parts, self._turn_id, self._signal = parts, turn_id, signal

    async def options(self, step: int) -> Mapping[str, Any]:
        """What the host wants of this step's request."""
        hook = self._parts.hooks.request
        options: Mapping[str, Any] | None = None
        if hook is not None and not self._signal.aborted:
            async with self._signal.scope():
                options = await hook(StepView(self._turn_id, step), self._signal)
        return options or {}

    async def reply(self, step: int, system: str, options: Mapping[str, Any]) -> Received | None:
        """Ask until there is a reply; None: it was stopped before it was asked (again). Raises what the last one failed with."""
        retries = self._parts.retries
        retrying = AsyncRetrying(
            sleep=self._wait,
            stop=stop_after_attempt(retries.attempts),
            wait=_wait_of(
                wait_random_exponential(retries.first_wait, retries.longest_wait, min=retries.first_wait), retries.longest_wait
            ),
            retry=retry_if_exception_type(_Again),
            reraise=True,
        )
        try:
            async for attempt in retrying:
                with attempt:
                    return None if self._signal.aborted else await self._exchange(step, system, options)
        except _Again as last:
            raise last.error from None
        raise AssertionError("tenacity ends with a result or an error")

    async def _exchange(self, step: int, system: str, options: Mapping[str, Any]) -> Received:
        """One request. Raises `_Again`: it failed, and another may not."""
        parts, session = self._parts, self._parts.session
        provider, name = parts.model.provider, parts.model.name
        tools = parts.runner.tools_for(provider)
        request = ModelRequest(system=system, messages=session.messages(), tools=tools, options=options)
        seq = session.append(
            RequestSent(
                run_id=self._turn_id,
                step=step,
                provider=provider,
                model=name,
                upto_seq=session.seq,
                system_digest=_digest(system),
                tools_digest=_digest(tools),
            )
        )
        await session.durable()
        route = Route(self._turn_id, step, provider, name, seq)
        reply = await Exchange(session, route, self._signal, parts.shows).run(parts.model, request)
        if reply.error is not None:
            await self._failed(step, reply.ending, reply.error)
        return reply

    async def _failed(self, step: int, ending: Ending, error: BaseException) -> None:
        """Its attempt is on record. Raises `_Again` or the error; nothing when the hook stopped the turn."""
        if ending is Ending.THROWN or not isinstance(error, ModelError):
            raise error
        hook, again = self._parts.hooks.request_error, None
        if hook is not None:
            async with self._signal.scope():
                again = await hook(StepView(self._turn_id, step), error, self._signal)
        if self._signal.aborted:
            return
        longest = self._parts.retries.longest_wait
        as_told = error.retryable and (error.retry_after is None or error.retry_after <= longest)
        if as_told if again is None else again:
            raise _Again(error)
        raise error

    async def _wait(self, seconds: float) -> None:
        async with self._signal.scope():
            await anyio.sleep(seconds)


def _wait_of(usual: Any, longest: float) -> Any:
    """A provider that says how long it wants to be left alone is believed, up to `longest`: a host may insist on asking again."""

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        told = error.error.retry_after if isinstance(error, _Again) else None
        return min(float(told if told is not None else usual(state)), longest)

    return wait


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode(errors="replace")).hexdigest()
