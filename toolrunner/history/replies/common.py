"""What the replies of all providers share. Pure; no state."""

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from toolrunner.history.entries import Replied
from toolrunner.records import Block, CallBlock, ReasoningBlock, RedactedBlock, TextBlock, UnknownBlock
from toolrunner.wire import CallKind, Provider, WireCall

_SIGNATURES = frozenset({"thoughtSignature", "thought_signature", "signature"})


def made_up_id(seq: int, number: int) -> str:
    """An id for a call that came without one, the same whenever it is asked for."""
    return f"call_{seq}_{number}"


def is_own(reply: Replied, provider: Provider, model: str | None) -> bool:
    """Whether what is sealed in a reply may be sent: its maker is asked again."""
    return reply.provider == provider and (model is None or reply.model == model)


def sendable(reply: Replied, provider: Provider) -> Iterator[tuple[int, Block]]:
    """The blocks that may be sent at all, numbered by their place: blanks, half calls and half thoughts go.

    Whether a sealed thought may be sent is the provider's module to say; another provider's own objects are never.
    """
    for number, block in enumerate(reply.blocks):
        match block:
            case TextBlock(text=text, signature=signature) if text.strip() or (signature and reply.provider == provider):
                yield number, block
            case CallBlock(closed=True, name=name) if name.strip():
                yield number, block
            case ReasoningBlock(closed=True) | RedactedBlock(closed=True) | UnknownBlock(closed=True) if (
                reply.provider == provider
            ):
                yield number, block
            case _:
                pass


def wire_call(reply: Replied, call: CallBlock, provider: Provider, model: str | None) -> WireCall:
    """The call as it is sent back: its maker gets all of it, others a function call and nothing that they did not make."""
    if reply.provider != provider:
        call_id = call.call_id
        if call_id is None and provider is not Provider.GEMINI:
            # By identity: two calls without an id may be equal.
            call_id = made_up_id(reply.seq, next(number for number, one in enumerate(reply.calls) if one is call))
        return WireCall(call.name, call.arguments, call_id)
    arguments = call.arguments
    custom = call.kind == CallKind.CUSTOM
    meta = call.provider_meta if is_own(reply, provider, model) else _unsigned(call.provider_meta)
    return WireCall(call.name, {"input": arguments} if custom else arguments, call.call_id, call.kind, meta)


def _unsigned(meta: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {key: value for key, value in meta.items() if key not in _SIGNATURES and key != "id"}
