"""A repair under way: the atoms as they stand, and what was done to them. State: its own, of one call of `repair`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import final

from toolrunner.facts import Text
from toolrunner.history.atoms import Atom, ConversationShape, Kind, grouped, place, take_apart
from toolrunner.wire import Item, Provider, WireCall, WireResult, result_item

UNKNOWN_ANSWER = "No result of this call is on record, so what became of it is not known. It may have taken effect."
"""Answers a call of which a plain list of messages says nothing: neither that it ran nor that it did not."""


ADDED = 1_000_000_000
"""Units from here on are of messages that were added: no message has such a number, so nothing is taken for a part of one."""


@final
@dataclass(frozen=True, slots=True)
class Repair:
    """One thing that was mended: for which rule, where it had stood, what was done, and what was left out of the history."""

    rule: str
    position: str
    text: str
    removed: Item | None = None


RULE_IDS: dict[Provider, dict[str, str]] = {
    Provider.ANTHROPIC: {
        "missing": "AN1", "orphan": "AN2", "repeated": "AN3", "first": "AN4", "unsigned": "AN5", "trailing": "AN6",
        "blank": "AN7", "end": "AN8", "turns": "AN9", "order": "AN10", "server": "AN12",
    },
    Provider.OPENAI_CHAT: {
        "missing": "CH1", "orphan": "CH2", "repeated": "CH1", "blank": "CH3", "arguments": "CH4", "thought": "CH5",
    },
    Provider.OPENAI_RESPONSES: {
        "missing": "RS1", "orphan": "RS2", "repeated": "RS1", "trailing": "RS3", "ids": "RS4", "unsigned": "RS5",
        "unfinished": "RS6", "nameless": "RS7",
    },
    Provider.GEMINI: {
        "missing": "GM1", "orphan": "GM2", "repeated": "GM1", "first": "GM2", "sorted": "GM3", "signature": "GM4",
        "arguments": "GM5", "begin": "GM6", "blank": "GM6", "turns": "GM6", "end": "GM6",
    },
    Provider.GEMINI_INTERACTIONS: {
        "missing": "GI1", "orphan": "GI2", "repeated": "GI3", "unsigned": "GI4", "result": "GI5", "arguments": "GI6",
        "nameless": "GI6", "blank": "GI8", "end": "GI8",
    },
}  # fmt: skip
"""What is mended, by the rule it is mended for. What is not named here, that provider does not mind."""


@final
@dataclass(slots=True)
class Work:
    """What the steps of a repair hand on to each other."""

    shape: ConversationShape
    atoms: list[Atom]
    repairs: list[Repair] = field(default_factory=list)
    _fresh: int = 0

    def minds(self, what: str) -> bool:
        """Whether the provider has a rule about it."""
        return what in RULE_IDS[self.shape.provider]

    def tell(self, what: str, atom: Atom, text: str, *, removed: bool = False) -> None:
        rule = RULE_IDS[self.shape.provider][what]
        self.repairs.append(Repair(rule, place(self.shape, atom), text, atom.item if removed else None))

    def leave_out(self, what: str, unwanted: Callable[[Atom], bool], text: str) -> None:
        """Leave out every atom that is unwanted, telling each."""
        for atom in self.atoms:
            if unwanted(atom):
                self.tell(what, atom, text, removed=True)
        self.atoms = [atom for atom in self.atoms if not unwanted(atom)]

    def change(self, what: str, atom: Atom, item: Item, text: str) -> None:
        """Put another item in an atom's place."""
        self.tell(what, atom, text)
        self.atoms = [replace(one, item=item) if one is atom else one for one in self.atoms]

    @property
    def groups(self) -> list[list[Atom]]:
        return grouped(self.shape, self.atoms)

    def added(self, message: Item) -> list[Atom]:
        """The atoms of a message that was not there before."""
        self._fresh += 1
        return take_apart(self.shape, [message], first=ADDED + self._fresh)

    def unknown_answer(self, call: Atom) -> list[Atom]:
        """An answer that claims nothing, of the call's own kind."""
        item = result_item(self.shape.provider, unknown_result(self.shape.wire_call(call)))
        role = {Provider.ANTHROPIC: ("user", "content"), Provider.GEMINI: ("user", "parts")}.get(self.shape.provider)
        return self.added({"role": role[0], role[1]: [item]} if role is not None else item)


def unknown_result(call: WireCall) -> WireResult:
    """The answer that claims nothing, of the call's own kind."""
    return WireResult(call.call_id, call.name, call.kind, call.provider_meta, (Text(UNKNOWN_ANSWER),), is_error=True)


def kinds(group: Sequence[Atom], kind: Kind) -> list[Atom]:
    """The atoms of one kind."""
    return [atom for atom in group if atom.kind is kind]
