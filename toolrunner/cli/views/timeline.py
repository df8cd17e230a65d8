"""Stretches of time as bars to scale, in characters. Pure."""

from toolrunner.cli.views.story import Stretch

FULL, LEFT_EDGE = "█", "▏"
"""A bar of less than a character still shows where it is."""

EXACT = 100
"""Seconds up to which fractions are worth saying."""

UNKNOWN = "░"
"""A stretch whose end is in no record: how long it took is not known."""


def bar(stretch: Stretch, total: float, width: int) -> str:
    """The stretch within `total` seconds, on `width` characters."""
    if total <= 0:
        return LEFT_EDGE
    scale = width / total
    start = min(width - 1, int(stretch.start * scale))
    end = width if stretch.end is None else min(width, round(stretch.end * scale))
    body = UNKNOWN if stretch.end is None else FULL
    return " " * start + (body * (end - start) or LEFT_EDGE)


def duration(seconds: float | None) -> str:
    """Seconds for people; None is not known."""
    if seconds is None:
        return "end not known"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < EXACT:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def offset(seconds: float) -> str:
    """A time within a call, aligned for a column."""
    return f"+{seconds:9.3f} s"
