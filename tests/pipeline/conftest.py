"""Fixtures of these tests: what their bodies and hooks write down is empty when a test begins."""

import pytest
from pipeline import asking, wrapped

from toolrunner.testing import Gate


@pytest.fixture(autouse=True)
def nothing_written_down_yet() -> None:
    wrapped.signals.clear()
    wrapped.order.clear()
    asking.entered.clear()


@pytest.fixture
async def gate(anyio_backend: object) -> Gate:
    """The gate that `wrapped.wait` waits for in this test."""
    wrapped.gates.append(Gate())
    return wrapped.gates[-1]
