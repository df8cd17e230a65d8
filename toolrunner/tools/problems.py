"""What reading a call's arguments and a body's return value can find wrong. The pipeline turns both into results.

No state. They are exceptions because the code that finds them cannot build a result; they never leave a runner.
"""

from toolrunner.errors import ToolrunnerError


class InvalidArguments(ToolrunnerError):
    """The arguments of a call do not fit the tool (result: rejected, `INVALID_ARGUMENTS`). Nothing was started.

    Raised by `Tool.parse`, `Tool.command` and `Tool.locks`; the function of a command tool may raise it too.
    `message` is for the model: it names each bad field, what was given and what is expected.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidOutput(ToolrunnerError):
    """What the body returned is no JSON, or not what its annotation says (result: failed, `INVALID_OUTPUT`). It did run."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def told(error: BaseException) -> str:
    """What an exception of foreign code says. Never raises: its `__str__` is foreign too."""
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001
        return type(error).__name__


class ToolDefinitionWarning(UserWarning):
    """A tool was declared in a way that works, but not as its author may expect."""
