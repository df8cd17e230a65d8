"""What a rule looks at, what it finds, and the rules that several providers share. Pure; no state."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

from toolrunner.history.atoms import Atom, ConversationShape, Kind, Side, grouped, opened_messages, place, take_apart
from toolrunner.history.pairing import Pairing, paired
from toolrunner.wire import Item


@final
@dataclass(frozen=True, slots=True)
class Violation:
    """One breach of one rule. `position` is a path into the list that was checked, `messages[3].content[0]` say."""

    rule: str
    position: str
    text: str


@final
@dataclass(frozen=True, slots=True)
class View:
    """One conversation, taken apart once for all rules."""

    shape: ConversationShape
    messages: Sequence[Item]
    atoms: Sequence[Atom]
    groups: Sequence[list[Atom]]
    pairing: Pairing
    sent: Sequence[object] | None = None

    def at(self, rule: str, atom: Atom, text: str) -> Violation:
        return Violation(rule, place(self.shape, atom), text)

    def at_unit(self, rule: str, unit: int, text: str) -> Violation:
        return Violation(rule, f"{self.shape.field}[{unit}]", text)


Rule = Callable[[View], Iterator[Violation]]


def viewed(shape: ConversationShape, messages: Sequence[object], sent: Sequence[object] | None = None) -> View:
    """Take a conversation apart. Raises MalformedItem."""
    atoms = take_apart(shape, messages)
    groups = grouped(shape, atoms)
    return View(shape, opened_messages(shape, messages), atoms, groups, paired(shape, groups), sent)


def called(atom: Atom) -> str:
    """A call or result in words, by what it is paired on."""
    return f"{atom.name or 'call'!r} ({atom.call_id})" if atom.call_id else f"{atom.name or 'call'!r}"


def unanswered(rule: str) -> Rule:
    """Every call has its result in the place where the provider looks for it."""

    def find(view: View) -> Iterator[Violation]:
        where = "right behind it" if view.shape.adjacent else "behind it"
        for call in view.pairing.missing:
            yield view.at(rule, call, f"the call {called(call)} has no result {where}")

    return find


def orphaned(rule: str) -> Rule:
    """Every result has its call in the place where the provider looks for it."""

    def find(view: View) -> Iterator[Violation]:
        where = "right before it" if view.shape.adjacent else "before it"
        for result in view.pairing.orphans:
            yield view.at(rule, result, f"the result {called(result)} answers no call {where}")

    return find


def repeated(rule: str) -> Rule:
    """A call has one result, and an id one call."""

    def find(view: View) -> Iterator[Violation]:
        for result in view.pairing.repeated:
            yield view.at(rule, result, f"a second result for {called(result)}")
        for call in view.pairing.reused:
            yield view.at(rule, call, f"the id {call.call_id} belongs to an earlier call")

    return find


def all_of(*rules: Rule) -> Rule:
    """Several findings under one id."""

    def find(view: View) -> Iterator[Violation]:
        for rule in rules:
            yield from rule(view)

    return find


def unsigned_thinking(rule: str, what: str) -> Rule:
    """A thought is sent back whole and signed, or not at all."""

    def find(view: View) -> Iterator[Violation]:
        for atom in view.atoms:
            if atom.kind is Kind.THINKING and not atom.signed:
                yield view.at(rule, atom, f"a thought without {what}")

    return find


def blank(rule: str) -> Rule:
    """Nothing blank is sent."""

    def find(view: View) -> Iterator[Violation]:
        for atom in view.atoms:
            if atom.kind is Kind.BLANK:
                yield view.at(rule, atom, "it holds no visible content")

    return find


def ends_on_user(rule: str) -> Rule:
    """A request ends with something for the model to answer."""

    def find(view: View) -> Iterator[Violation]:
        if view.atoms and view.atoms[-1].side is Side.MODEL:
            yield view.at_unit(rule, view.atoms[-1].unit, "the conversation ends with the model's own words")

    return find


def begins_with_user(rule: str) -> Rule:
    """A conversation begins with the user."""

    def find(view: View) -> Iterator[Violation]:
        first = next((atom for atom in view.atoms if atom.side is not Side.SYSTEM), None)
        if first is not None and first.side is Side.MODEL:
            yield view.at_unit(rule, first.unit, "the conversation begins with the model's words")

    return find


def takes_turns(rule: str) -> Rule:
    """User and model take turns."""

    def find(view: View) -> Iterator[Violation]:
        before: Atom | None = None
        for atom in view.atoms:
            if before is not None and atom.unit != before.unit and atom.side is before.side is not Side.SYSTEM:
                yield view.at_unit(rule, atom.unit, f"two messages of the {atom.side} in a row")
            before = atom

    return find


def results_first(rule: str) -> Rule:
    """In the message that answers calls, the answers come first."""

    def find(view: View) -> Iterator[Violation]:
        for group in view.groups:
            kinds = [atom.kind is Kind.RESULT for atom in group]
            for number, atom in enumerate(group):
                if kinds[number] and not all(kinds[:number]):
                    yield view.at(rule, atom, f"the result {called(atom)} stands behind other content")

    return find


def in_call_order(rule: str) -> Rule:
    """Answers stand in the order of their calls."""

    def find(view: View) -> Iterator[Violation]:
        order = {atom: number for number, atom in enumerate(view.atoms)}
        last = -1
        for call in (atom for atom in view.atoms if atom in view.pairing.answers):
            number = order[view.pairing.answers[call]]
            if number < last:
                yield view.at(
                    rule, view.pairing.answers[call], f"the result {called(call)} stands before that of an earlier call"
                )
            last = max(last, number)

    return find


def has_text(item: Item, key: str) -> bool:
    """Whether a field is a text with something in it."""
    return isinstance(item.get(key), str) and bool(item[key])
