"""Provider messages taken apart into atoms, and put together again. Pure; no state.

An atom is the smallest thing that a provider's rules speak of: a text, a thought, a call, a result. Rules, repairs, importers and
projections work on atoms; only a `ConversationShape` knows how its provider nests them. A message whose atoms were not touched is
put together as the very object it was, so what a provider has cached stays byte for byte the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from typing import Any, Protocol, final

from toolrunner.facts import Content
from toolrunner.wire import Item, MalformedItem, Provider, WireCall

__all__ = ["Atom", "ConversationShape", "Kind", "Side", "grouped", "is_blank", "joined", "opened_messages", "take_apart"]


class Side(StrEnum):
    """Whose turn an atom belongs to. Results are the user's side everywhere."""

    USER = "user"
    MODEL = "model"
    SYSTEM = "system"


class Kind(StrEnum):
    """What an atom is, as far as rules care."""

    TEXT = "text"
    BLANK = "blank"
    """A text without a visible character, a part without content, a message without parts."""
    THINKING = "thinking"
    CALL = "call"
    RESULT = "result"
    SERVER_CALL = "server_call"
    """A call that the provider runs itself; its result stands in the same message."""
    SERVER_RESULT = "server_result"
    HEAD = "head"
    """The fields of a message that has calls only."""
    OTHER = "other"
    """Media, and everything newer than this version: sent back as it came."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """One atom. Compared by identity: the same bytes may stand in two places."""

    side: Side
    kind: Kind
    item: Item
    """The provider's own object: block, part, item or message. Never changed."""
    unit: int
    """Index of the message it is in; atoms that are not in any message yet count on from the last one."""
    index: int | None = None
    """Its place among the message's parts; None where it is the message, or all of its content."""
    call_id: str | None = None
    name: str = ""
    signed: bool = True
    """A thought: its signature is whole. A call: it has one of its own (where the provider signs calls)."""


class ConversationShape(Protocol):
    """How one provider writes a conversation. Every method is a pure function; nothing handed in is kept or changed."""

    provider: Provider
    field: str
    """Name of the list in a request: messages, input, contents."""
    inner: str
    """Name of the list within a message; "" where a message is one item."""
    adjacent: bool
    """Whether the answers must directly follow the message that made the calls."""
    merges: bool
    """Whether neighbours of one side are one message."""
    unique_ids: bool
    """Whether a call's id may not come again in a later message. (Twice in one message is refused everywhere.)"""

    def atoms(self, message: Mapping[str, Any], unit: int) -> list[Atom]:
        """Take one message apart; at least one atom. Raises MalformedItem."""
        ...

    def message(self, atoms: Sequence[Atom]) -> Item:
        """Put one message together."""
        ...

    def user(self, content: Sequence[Content]) -> Item:
        """Build one message of the user's side."""
        ...

    def wire_call(self, atom: Atom) -> WireCall:
        """Read a call, also one whose arguments are bad. Raises MalformedItem."""
        ...


def is_blank(text: object) -> bool:
    """Whether a text has no visible character; what is no text is not blank."""
    return isinstance(text, str) and not text.strip()


def opened_messages(shape: ConversationShape, messages: Sequence[object]) -> list[Item]:
    """The messages as dicts. Raises MalformedItem: one of them is no object."""
    for unit, message in enumerate(messages):
        if not isinstance(message, dict):
            raise MalformedItem(shape.provider, f"{shape.field}[{unit}]", f"is a {type(message).__name__}; expected an object")
    return list(messages)  # type: ignore[arg-type]


def take_apart(shape: ConversationShape, messages: Sequence[object], first: int = 0) -> list[Atom]:
    """All atoms of these messages, in order; units count from `first`."""
    opened = opened_messages(shape, messages)
    return [atom for unit, message in enumerate(opened, start=first) for atom in shape.atoms(message, unit)]


def grouped(shape: ConversationShape, atoms: Sequence[Atom]) -> list[list[Atom]]:
    """The atoms as the messages they make: by unit, neighbours of one side together where the provider takes turns."""

    def key(atom: Atom) -> object:
        return (atom.side,) if shape.merges and atom.side is not Side.SYSTEM else (atom.side, atom.unit)

    return [list(group) for _, group in groupby(atoms, key=key)]


def joined(shape: ConversationShape, atoms: Sequence[Atom], originals: "Originals | None" = None) -> list[Item]:
    """The messages that these atoms make. One whose atoms are exactly those of an original is that original."""
    known = originals if originals is not None else Originals((), ())
    return [known.same(group) or shape.message(group) for group in grouped(shape, atoms)]


@final
@dataclass(frozen=True, slots=True)
class Originals:
    """Messages as they came, and their atoms."""

    messages: Sequence[Item]
    atoms: Sequence[Atom]
    _by_unit: dict[int, list[Atom]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Index the atoms by their message."""
        for atom in self.atoms:
            self._by_unit.setdefault(atom.unit, []).append(atom)

    def same(self, group: Sequence[Atom]) -> Item | None:
        """The message that has exactly these atoms, or None."""
        unit = group[0].unit
        own = self._by_unit.get(unit)
        if own is None or len(own) != len(group) or any(left is not right for left, right in zip(own, group, strict=True)):
            return None
        return self.messages[unit]


def place(shape: ConversationShape, atom: Atom) -> str:
    """Where an atom stands, as a path that a reader can follow."""
    base = f"{shape.field}[{atom.unit}]"
    if atom.index is None:
        return base
    inner = "tool_calls" if shape.provider is Provider.OPENAI_CHAT and atom.kind is Kind.CALL else shape.inner
    return f"{base}.{inner}[{atom.index}]"
