"""In-process tools of the load. Each leaves what it does in files, so that what a result says can be compared with what was.

`TAG.inside` is there exactly while the body runs, `TAG.entered` from its first step on, `TAG.done` from its effect on. No state.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.lowlevel

from toolrunner import ToolContext, ToolError, tool


@contextmanager
def _inside(folder: str, tag: str) -> Iterator[Path]:
    entered, inside = Path(folder, f"{tag}.entered"), Path(folder, f"{tag}.inside")
    inside.touch()
    entered.touch()
    try:
        yield Path(folder, f"{tag}.done")
    finally:
        inside.unlink()


@tool(parallel_safe=True)
async def cooperative(ctx: ToolContext[None], folder: str, tag: str, seconds: float) -> str:
    """Wait, then write, then wait again."""
    with _inside(folder, tag) as done:
        await anyio.sleep(seconds / 2)
        async with ctx.effect("file", str(done)):
            await anyio.lowlevel.checkpoint()
            done.touch()
        await anyio.sleep(seconds / 2)
    return "done"


@tool(parallel_safe=True)
async def cleaning(ctx: ToolContext[None], folder: str, tag: str, seconds: float) -> str:
    """Write while cleaning up after a cancel, behind a shield."""
    with _inside(folder, tag) as done:
        try:
            await anyio.sleep(seconds)
        finally:
            with ctx.cleanup():
                await anyio.sleep(seconds / 4)
                async with ctx.effect("file", str(done)):
                    done.touch()
    return "done"


@tool(parallel_safe=True)
async def swallowing(ctx: ToolContext[None], folder: str, tag: str, seconds: float) -> str:
    """Swallow every cancel and finish."""
    with _inside(folder, tag) as done:
        end = time.monotonic() + seconds
        while (rest := end - time.monotonic()) > 0:
            try:
                await anyio.sleep(rest)
            except anyio.get_cancelled_exc_class():
                continue
        async with ctx.effect("file", str(done)):
            done.touch()
    return "done"


@tool(parallel_safe=True)
async def raising(folder: str, tag: str, seconds: float) -> str:
    """Fail."""
    with _inside(folder, tag):
        await anyio.sleep(seconds)
        raise ToolError("it did not work")


@tool(parallel_safe=True)
def blocking(ctx: ToolContext[None], folder: str, tag: str, seconds: float) -> str:
    """Look at the signal half-way only, then write."""
    with _inside(folder, tag) as done:
        threading.Event().wait(seconds / 2)
        ctx.signal.raise_if_aborted()
        threading.Event().wait(seconds / 2)
        with ctx.effect("file", str(done)):
            done.touch()
    return "done"


BODIES = (cooperative, cleaning, swallowing, raising, blocking)
