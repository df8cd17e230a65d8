"""WorkerThreads: the runner's own threads for sync bodies.

Not anyio's default limiter: forty stuck bodies must not starve the host's own threads. Threads are daemons, because a body that
never returns must not keep the interpreter from exiting. State: the idle workers, changed on the loop only.
"""

import queue
import threading
from collections.abc import Callable
from typing import final

from toolrunner.loops import Post

_Job = Callable[[], None]

JOIN_BOUND = 1.0
"""Seconds that `close` waits for an idle thread to leave its loop; it has nothing left to do but return."""


@final
class _Worker:
    """One thread. Takes a job at a time; tells the loop when it is free again."""

    __slots__ = ("_jobs", "thread")

    def __init__(self, number: int) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._work, name=f"toolrunner-{number}", daemon=True)
        self.thread.start()

    def give(self, job: _Job | None) -> None:
        self._jobs.put(job)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            del job  # else the last body's arguments live as long as the idle thread


@final
class WorkerThreads:
    """Runs functions in threads of its own. How many at once is the lease desk's business."""

    def __init__(self) -> None:
        self._idle: list[_Worker] = []
        self._closed = False
        self._count = 0

    def start(self, fn: Callable[[], None], post: Post, done: Callable[[], None]) -> None:
        """Run `fn` (which lets nothing out) in a thread, then `done` on the loop. Raises RuntimeError if no thread starts."""
        worker = self._idle.pop() if self._idle else self._new()

        def job() -> None:
            fn()
            try:
                post(lambda: self._finished(worker, done))
            except RuntimeError:  # the loop is gone; nobody is left to tell, and the thread has no more use
                worker.give(None)

        worker.give(job)

    def close(self) -> None:
        """Let idle threads go; a busy one goes when its body ends."""
        self._closed = True
        idle, self._idle = self._idle, []
        for worker in idle:
            worker.give(None)
        for worker in idle:
            worker.thread.join(JOIN_BOUND)

    def _new(self) -> _Worker:
        self._count += 1
        return _Worker(self._count)

    def _finished(self, worker: _Worker, done: Callable[[], None]) -> None:
        if self._closed:
            worker.give(None)
        else:
            self._idle.append(worker)
        done()
