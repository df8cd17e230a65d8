"""Retries of a started body: only when its effects are proven none or its tool is idempotent, never after an abort.

tenacity counts and waits; what it may count is decided here. No state.
"""

from collections.abc import AsyncIterator

import anyio
from tenacity import AsyncRetrying, AttemptManager, RetryCallState, retry_if_result, stop_after_attempt, wait_random_exponential

from toolrunner.abort import AbortSignal
from toolrunner.facts import EffectState
from toolrunner.pipeline.outcome import effects_of, verdict_of
from toolrunner.pipeline.state import ActiveCall
from toolrunner.results import Outcome
from toolrunner.tools import RetryPolicy


def will_retry(state: ActiveCall) -> bool:
    """Whether the attempt that just ended is to be followed by another."""
    assert state.registration is not None
    tool = state.registration.tool
    if tool.retry is None or state.attempts >= tool.retry.attempts or state.refusal is not None:
        return False
    # It was settled already; or an undo of the last attempt ran over its bound, and took the locks with it until its end.
    if state.left_running or state.lease is None:
        return False
    if not state.started or state.end is None or state.signal.aborted or state.end.fatal is not None:
        return False
    if verdict_of(state).outcome not in (Outcome.FAILED, Outcome.TIMED_OUT):
        return False
    return tool.annotations.idempotent or effects_of(state).state in (EffectState.NONE, EffectState.REVERTED)


async def attempts(state: ActiveCall, policy: RetryPolicy, signal: AbortSignal) -> AsyncIterator[AttemptManager]:
    """One attempt, and as many more as the tool's retry policy and the truth allow. An abort ends the wait between two."""

    def again(_: object) -> bool:
        return will_retry(state) and not signal.aborted

    async def wait(seconds: float) -> None:
        async with signal.scope():
            await anyio.sleep(seconds)

    retrying = AsyncRetrying(
        sleep=wait,
        stop=stop_after_attempt(policy.attempts),
        wait=wait_random_exponential(policy.wait_initial, policy.wait_max, min=policy.wait_initial),
        retry=retry_if_result(again),
        retry_error_callback=_give_up,
    )
    async for attempt in retrying:
        if attempt.retry_state.attempt_number > 1 and signal.aborted:
            attempt.retry_state.set_result(None)
            return
        yield attempt
        if attempt.retry_state.outcome is None or not attempt.retry_state.outcome.failed:
            attempt.retry_state.set_result(None)


def _give_up(_: RetryCallState) -> None:
    """The last attempt's end is the call's; there is nothing to raise."""
