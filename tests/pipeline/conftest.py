"""Fixtures of these tests: what their bodies and hooks write down is empty when a test begins."""

from typing import Any

import pytest
from pipeline import asking, entering, failing, limited, wrapped

from toolrunner.testing import Gate

LOGS: tuple[list[Any], ...] = (
    asking.entered,
    entering.entered,
    failing.entered,
    failing.raised,
    limited.signals,
    wrapped.order,
    wrapped.signals,
)


@pytest.fixture(autouse=True)
def nothing_written_down_yet() -> None:
    for log in LOGS:
        log.clear()


@pytest.fixture
async def gate(anyio_backend: object) -> Gate:
    """The gate that `wrapped.wait` waits for in this test."""
    wrapped.gates.append(Gate())
    return wrapped.gates[-1]
