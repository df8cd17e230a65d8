"""The loops of this folder: trio, and asyncio without its debug mode, which notes the stack at each of many thousand steps."""

from typing import Any

import pytest


@pytest.fixture(params=[pytest.param(("asyncio", {}), id="asyncio"), pytest.param(("trio", {}), id="trio")])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    backend: tuple[str, dict[str, Any]] = request.param
    return backend
