"""Bodies that raise what the test wants, and an exception that cannot be looked at.

State: what they raise and which were entered; conftest.py empties both at the start of each test.
"""

from typing import Any

from toolrunner import tool

raised: list[BaseException] = []
entered: list[str] = []


@tool
async def fail() -> str:
    """Raise what the test wants, or return."""
    entered.append("fail")
    if raised:
        raise raised[0]
    return "done"


@tool
def fail_in_thread() -> str:
    """Do the same in a thread."""
    entered.append("fail_in_thread")
    if raised:
        raise raised[0]
    return "done"


def boom(*_: object) -> Any:
    raise RuntimeError("looked at")


class NoAttributes(Exception):
    def __getattribute__(self, name: str) -> Any:
        boom()
