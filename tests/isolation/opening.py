"""A runner for the tests of worker processes, and the bound on them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from toolrunner import Runner
from toolrunner.tools import Tools

BOUND = 60.0
"""Seconds for a test. A worker imports the package, which takes half a second here and several on a machine that is busy."""


@asynccontextmanager
async def opened(*tools: Tools, **settings: Any) -> AsyncIterator[Runner]:
    with anyio.fail_after(BOUND):
        async with Runner(tools, **settings) as runner:
            yield runner
