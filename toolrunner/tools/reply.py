"""Reply: what a body returned, as value, content and the rest. A body may build one itself for full control.

No state.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from pydantic import JsonValue

from toolrunner.facts import Content
from toolrunner.facts.quick import quick
from toolrunner.results import Error


@final
@quick
@dataclass(frozen=True, slots=True)
class Reply:
    """The parts of a result that are the body's to say.

    `value` is for programs, `content` is what the model reads; with a value, no content and no error, the value itself is shown.
    `follow_up` is for the program around the model. An `error` says that the body ran to its end and failed: unlike a raised
    `ToolError` it keeps the value and the content.
    """

    value: JsonValue = None
    content: Sequence[Content] = ()
    follow_up: Sequence[JsonValue] = ()
    error: Error | None = None
