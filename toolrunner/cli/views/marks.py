"""A call's stretches of time and its marks (effects, stops) as a picture in SVG, to scale. Pure.

Places are attributes of the shapes, not styles: the page allows no style but its sheet. Each shape says in its title what it is.
"""

from collections.abc import Iterator

from toolrunner import records
from toolrunner.cli.views.markup import Markup, element
from toolrunner.cli.views.steps import Step
from toolrunner.cli.views.story import Story
from toolrunner.cli.views.timeline import duration

WIDTH = 1000.0
HEIGHT = 20.0

NARROWEST = 2.0
"""Width of a stretch of no length, so that it can be seen."""

_DOUBT = (records.EffectUnknown,)
_EFFECT = (records.EffectApplied, records.EffectUndone, records.EffectNotApplied)

_ROUND = "M{0},5 a5,5 0 1 0 0.01,0 z"
_UP = "M{0},3 l6,12 h-12 z"
_DOWN = "M{0},17 l6,-12 h-12 z"


def timeline(story: Story, start: float, total: float) -> Markup:
    """The call on a line of `total` seconds, on which it begins at `start`."""
    scale = WIDTH / total if total > 0 else 0.0
    label = f"{story.name}: " + ", ".join(
        f"{one.name} {duration(None if one.end is None else one.end - one.start)}" for one in story.stretches
    )
    return element(
        "svg",
        *_stretches(story, start, scale),
        *_marks(story, start, scale),
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
    )


def _stretches(story: Story, start: float, scale: float) -> Iterator[Markup]:
    for one in story.stretches:
        end = one.end if one.end is not None else story.ends
        x = min((start + one.start) * scale, WIDTH - NARROWEST)
        width = max(NARROWEST, (end - one.start) * scale)
        thin = one.name in ("stopping", "approval")
        kind = one.name if one.end is not None else f"{one.name} unknown"
        yield element(
            "g",
            element("title", f"{one.name}: {duration(None if one.end is None else one.end - one.start)}"),
            element("rect", x=f"{x:.2f}", y=6 if thin else 3, width=f"{width:.2f}", height=8 if thin else 14, class_=kind),
        )


def _marks(story: Story, start: float, scale: float) -> Iterator[Markup]:
    for step in story.steps:
        found = _mark(step)
        if found is not None:
            kind, shape = found
            x = f"{min(max((start + step.offset) * scale, 6.0), WIDTH - 6.0):.2f}"
            title = f"{step.name}: {step.text}" if step.text else step.name
            yield element("g", element("title", title), element("path", d=shape.format(x), class_=kind))


def _mark(step: Step) -> tuple[str, str] | None:
    if isinstance(step.record, _DOUBT):
        return "doubt", _UP
    if isinstance(step.record, _EFFECT):
        return "effect", _ROUND
    if isinstance(step.record, records.CallStopRequested):
        return "stop", _DOWN
    return None
