"""The words of a question at the terminal, and of its answer. Pure; no state.

Everything in it but our own words is foreign: chosen by a model, or by whoever it read. It is shown on lines of our own making,
with nothing in it that a terminal obeys, and nothing can be allowed of which a part was left out.
"""

import json
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, final

from toolrunner.cli.printable import printable
from toolrunner.policy import ApprovalRequest, Remember

SHOWN = 400
"""Characters of one argument in the question; all of them are shown on demand."""

MOST_SHOWN = 20
"""Arguments in the question; more is no longer read."""

WHOLE = 200_000
"""Characters that are shown on demand. A call that is larger can only be denied at a terminal."""

NAMED = 5
"""Characters other than ASCII that are called by name."""

SCOPE = "this very call (same tool, arguments, folder, program, environment)"


class Word(StrEnum):
    """What can be typed. Whole words: a key that was pressed for something else is none of them."""

    YES = "yes"
    SESSION = "session"
    ALWAYS = "always"
    NO = "no"
    STOP = "stop"
    SHOW = "show"


@final
@dataclass(frozen=True, slots=True)
class Terms:
    """What an answer may reach. `place` is the file of what is kept for good."""

    remember: Remember
    limit: float
    place: str = ""

    def words(self, *, shortened: bool) -> tuple[Word, ...]:
        """The words that are taken."""
        some = [Word.YES]
        if self.remember is not Remember.NO:
            some.append(Word.SESSION)
        if self.remember is Remember.USER:
            some.append(Word.ALWAYS)
        return (*some, Word.NO, Word.STOP, *([Word.SHOW] if shortened else []))


def question(request: ApprovalRequest, terms: Terms) -> list[str]:
    """The lines of the question, without an end of line."""
    arguments, shortened = _arguments(request.arguments)
    lines = [f"toolrunner: may {printable(request.tool, 100)} run?"]
    lines += [f"  | {line}" for line in arguments]
    lines += [f"  * {line}" for line in _remarks(request)]
    lines += [f"  {_label(word)} {text}" for word, text in _choices(terms, shortened=shortened)]
    lines.append(f"  No answer within {terms.limit:g} s, Ctrl-D and Ctrl-C deny it.")
    return lines


def is_shortened(request: ApprovalRequest) -> bool:
    """Whether the question leaves something out, so that it has to be shown before it can be allowed."""
    return _arguments(request.arguments)[1]


def whole(request: ApprovalRequest) -> list[str] | None:
    """All of the arguments; None when they are more than a person can be shown."""
    text = json.dumps(request.arguments, ensure_ascii=False, indent=2, default=str)
    return [f"  | {printable(line)}" for line in text.split("\n")] if len(text) <= WHOLE else None


def read_answer(text: str) -> tuple[Word, str] | None:
    """The word and what was typed behind it (the reason of a denial); None for anything else."""
    first, _, rest = text.strip().partition(" ")
    try:
        word = Word(first.lower())
    except ValueError:
        return None
    # A reason behind a yes would be a condition that nobody keeps.
    return (word, rest.strip()) if not rest or word in (Word.NO, Word.STOP) else None


def _label(word: Word) -> str:
    return f"{word.value:<8}"


def _choices(terms: Terms, *, shortened: bool) -> Iterator[tuple[Word, str]]:
    texts = {
        Word.YES: "run it, this once",
        Word.SESSION: f"run it, and {SCOPE} again without asking: in this session, for 8 hours at most",
        Word.ALWAYS: f"the same for 90 days, kept in {printable(terms.place, SHOWN)}",
        Word.NO: "deny it; what you type behind it is told to the model",
        Word.STOP: "deny it and stop everything that goes on",
        Word.SHOW: "show all of it; before that it cannot be allowed",
    }
    for word in terms.words(shortened=shortened):
        yield word, texts[word]


def _arguments(arguments: Any) -> tuple[list[str], bool]:
    items = list(arguments.items()) if isinstance(arguments, Mapping) else [("", arguments)]
    lines, shortened = [], len(items) > MOST_SHOWN
    for name, value in items[:MOST_SHOWN]:
        text = printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
        shortened = shortened or len(text) > SHOWN or len(str(name)) > SHOWN
        lines.append(f"{printable(name, SHOWN)}: {printable(text, SHOWN)}")
    if len(items) > MOST_SHOWN:
        lines.append(f"and {len(items) - MOST_SHOWN} more")
    return lines, shortened


def _remarks(request: ApprovalRequest) -> Iterator[str]:
    yield printable(request.text, 1000)
    text = json.dumps(request.arguments, ensure_ascii=False, default=str)
    odd = sorted({one for one in text if not one.isascii()})
    if odd:
        named = ", ".join(f"U+{ord(one):04X} {unicodedata.name(one, 'without a name')}" for one in odd[:NAMED])
        more = f" and {len(odd) - NAMED} more" if len(odd) > NAMED else ""
        yield f"not all of it is ASCII: {named}{more}"
