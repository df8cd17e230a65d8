"""The worker's ear: a thread that reads what the host says, and what SIGTERM says, also while the body holds the loop.

State: none but its descriptors. A latch may be set from any thread, so `ctx.signal` flips in a body that never yields; everything
else is posted to the loop.
"""

import os
import select
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import final

from pydantic import ValidationError

from toolrunner.abort import AbortController
from toolrunner.facts import Source
from toolrunner.pipeline.isolation.channel import Channel, ChannelLost, file_identity
from toolrunner.pipeline.isolation.messages import FROM_HOST, Abort, BadFrame, ChildResult, Frames, Planned


@final
class Orders:
    """Listens until the host is gone. `post` runs a callback on the worker's loop."""

    def __init__(self, channel: Channel, over_at: float | None) -> None:
        self.controller = AbortController()
        self._channel = channel
        self._over_at = over_at
        self._wake, self._woken = os.pipe()
        self._pipe = file_identity(self._woken)
        self._answer: Callable[[Planned | ChildResult], object] | None = None
        self._gone: Callable[[str], object] | None = None
        self._ready = threading.Event()
        os.set_blocking(self._woken, False)
        self._pid = os.getpid()
        signal.signal(signal.SIGTERM, self._on_term)
        # Daemon: a worker whose body is over does not wait for a host that says nothing.
        threading.Thread(target=self._listen, name="toolrunner-orders", daemon=True).start()

    def connect(self, answer: Callable[[Planned | ChildResult], object], gone: Callable[[str], object]) -> None:
        """From now on the host's answers can be taken. Both callbacks are called in the listening thread."""
        self._answer, self._gone = answer, gone
        self._ready.set()

    def silence(self) -> None:
        """The body is over: SIGTERM ends this process like any other."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _on_term(self, number: int, _: object) -> None:
        if os.getpid() != self._pid:  # a child that the body forked, and that kept this function
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        if file_identity(self._woken) == self._pipe:
            with suppress(BlockingIOError):  # full of earlier ones
                os.write(self._woken, b"t")
        else:  # the tool closed it, and the number may be a file of its own by now
            self.controller.abort("SIGTERM", source=Source.HOST)

    def _listen(self) -> None:
        why = "the host is gone"
        try:
            self._hear()
        except ChannelLost as lost:
            why = str(lost)
        except (BadFrame, ValidationError, OSError, ValueError) as error:
            why = f"the host cannot be understood: {error}"
        self._ready.wait()
        if self._gone is not None:
            self._gone(why)

    def _hear(self) -> None:
        frames = Frames()
        while True:
            readable, _, _ = select.select([self._channel.fileno(), self._wake], [], [])
            # The channel first: an abort that came with its reason must not be told as a bare SIGTERM.
            if self._channel.fileno() in readable:
                data = self._channel.receive()
                if not data:
                    return
                for body in frames.feed(data):
                    self._take(body)
            elif self._wake in readable:
                os.read(self._wake, 64)
                self._terminated()

    def _take(self, body: bytes) -> None:
        message = FROM_HOST.validate_json(body)
        if isinstance(message, Abort):
            self.controller.abort(message.text, source=message.source)
        elif isinstance(message, Planned | ChildResult):
            self._ready.wait()
            assert self._answer is not None
            self._answer(message)

    def _terminated(self) -> None:
        """SIGTERM without a reason: the keeper's own clock, or somebody else."""
        if self._over_at is not None and time.monotonic() >= self._over_at:
            self.controller.abort("the time limit is over", source=Source.TIMEOUT)
        else:
            self.controller.abort("SIGTERM", source=Source.HOST)
