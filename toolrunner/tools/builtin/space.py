"""What all built-in tools of one set have in common. Frozen; no state."""

from dataclasses import dataclass
from typing import final

from toolrunner.errors import ConfigError
from toolrunner.tools.builtin.roots import Roots

DEFAULT_SHOWN = 30_000
"""Bytes of text that one result shows the model: about 8,000 tokens, ten of which still leave room for thought."""

LEAST_SHOWN = 1_000
"""Less than this has no room for a line and the sentence about what is left out."""


@final
@dataclass(frozen=True, slots=True)
class Space:
    """`roots`: where the tools work. `shown`: bytes of text in one result, of each stream for a command.

    `watch`: whether the folder of a command is looked at before and after. `undo_on_abort`: whether changes of a call that was
    stopped are taken back. `ripgrep`: the program that `search` uses if it is there; None = only our own.

    Raises:
        ConfigError: `shown` is too small, or no number.
    """

    roots: Roots
    shown: int = DEFAULT_SHOWN
    watch: bool = True
    undo_on_abort: bool = False
    ripgrep: str | None = "rg"

    def __post_init__(self) -> None:
        if not isinstance(self.shown, int) or isinstance(self.shown, bool) or self.shown < LEAST_SHOWN:
            raise ConfigError("shown", self.shown, f"a number of bytes, {LEAST_SHOWN} or more")
