"""How outcomes look: a colour, and a sign for whoever sees no colours. Pure."""

from collections.abc import Mapping

from toolrunner.cli.views.story import Story

SIGNS: Mapping[str, str] = {
    "succeeded": "✓",
    "failed": "✗",
    "aborted": "■",
    "timed_out": "◷",
    "denied": "⊘",
    "rejected": "⊝",
}
"""One for each outcome; `OPEN` where there is none."""

OPEN = "…"

_COLOURS: Mapping[str, str] = {
    "succeeded": "green",
    "failed": "red",
    "aborted": "yellow",
    "timed_out": "yellow",
    "denied": "red",
    "rejected": "red",
}


def sign_of(story: Story) -> str:
    """The sign of its outcome."""
    return SIGNS.get(story.verdict, OPEN)


def style_of(story: Story) -> str:
    """The colour of its outcome, in rich's words."""
    return _COLOURS.get(story.verdict, "blue")
