"""A session as one page: `toolrunner log --html`. Pure. It needs nothing from anywhere, runs no script, and works by keyboard.

Each call is a `details` element: a row with its outcome and its place on the session's time line, and all that is known of it
when it is opened. Everything foreign is made harmless and escaped by `markup`; should that ever fail, the page's own policy
(Content-Security-Policy, Level 3) allows nothing but the one style sheet, by its digest.
"""

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import final

from toolrunner.cli.views.marks import timeline
from toolrunner.cli.views.markup import Markup, element, join, lines
from toolrunner.cli.views.steps import compact
from toolrunner.cli.views.story import Story
from toolrunner.cli.views.story_text import facts, outcome_facts
from toolrunner.cli.views.styles import OPEN, SIGNS, sign_of
from toolrunner.cli.views.timeline import duration, offset

LONGEST = 20_000
"""Characters of one text on the page; the journal has all of it."""


@final
@dataclass(frozen=True, slots=True)
class About:
    """What the page says of itself. `open_end` says whether the session's owner was at work when the page was made."""

    session: str
    journal: str
    made_at: datetime
    open_end: bool


def page(stories: Sequence[Story], about: About) -> str:
    """The whole document."""
    style = _style()
    policy = f"default-src 'none'; style-src 'sha256-{_digest(style)}'; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"toolrunner: {about.session}"),
        element("style", Markup(style)),
    )
    body = element("body", *_top(stories, about), element("main", *_rows(stories)))
    return "<!doctype html>\n" + element("html", head, body, lang="en") + "\n"


@cache
def _style() -> str:
    return (files(__package__) / "page.css").read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _top(stories: Sequence[Story], about: About) -> Iterator[Markup]:
    yield element("h1", f"Session {about.session}")
    working = "; its owner was still at work" if about.open_end else ""
    told = f"{len(stories)} calls. From {about.journal}, {about.made_at.astimezone():%Y-%m-%d %H:%M:%S %Z}{working}."
    yield element("p", told, class_="about")
    counts = Counter(one.verdict if one.verdict in SIGNS else "open" for one in stories)
    legend = [
        element("li", f"{SIGNS.get(name, OPEN)} {_words(name)}: {counts[name]}", class_=name)
        for name in [*SIGNS, "open"]
        if counts[name]
    ]
    marks = [element("li", text) for text in ("● effect", "▲ effect in doubt", "▼ stop requested")]
    yield element("ul", *legend, *marks, class_="legend")


def _rows(stories: Sequence[Story]) -> Iterator[Markup]:
    if not stories:
        yield element("p", "No call is on record.")
        return
    begin = min(one.began_at for one in stories)
    total = max(one.began_at - begin + one.ends for one in stories)
    for one in stories:
        start = one.began_at - begin
        yield element(
            "details",
            _summary(one, start, total),
            _inside(one),
            id=f"run-{one.run_id}",
            class_="child" if one.parent_run_id else None,
        )


def _summary(story: Story, start: float, total: float) -> Markup:
    return element(
        "summary",
        element("span", f"{sign_of(story)} {_words(story.verdict)}", class_=f"outcome {_kind(story)}"),
        element("b", story.name, title=story.name),
        element("span", timeline(story, start, total), class_=_kind(story)),
        element("span", duration(story.ends), class_="took"),
    )


def _inside(story: Story) -> Markup:
    steps = [
        element("tr", element("td", offset(step.offset)), element("td", step.name), element("td", step.text))
        for step in story.steps
    ]
    return element(
        "div",
        _list(outcome_facts(story)),
        element("span", timeline(story, 0.0, story.ends), class_=_kind(story)),
        _list((one.name, duration(None if one.end is None else one.end - one.start)) for one in story.stretches),
        element("table", *steps),
        _list((name, value) for name, value in facts(story) if name != "arguments"),
        *_texts(story),
        class_="inside",
    )


def _list(rows: Iterator[tuple[str, str]]) -> Markup:
    return element("dl", *(join(element("dt", name), element("dd", value)) for name, value in rows))


def _texts(story: Story) -> Iterator[Markup]:
    """Arguments, value, output: what may be long."""
    found = [("arguments", compact(story.arguments, LONGEST))]
    result = story.result
    if result is not None and result.value is not None:
        found.append(("value", compact(result.value, LONGEST)))
    if result is not None and result.process is not None:
        found += [("stdout", result.process.stdout), ("stderr", result.process.stderr)]
    for name, text in found:
        if text:
            yield element("div", name)
            yield element("pre", lines(text, LONGEST), tabindex=0)


def _kind(story: Story) -> str:
    return story.verdict if story.verdict in SIGNS else "open"


def _words(name: str) -> str:
    return name.replace("_", " ")
