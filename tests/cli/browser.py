"""A page in headless Chromium, spoken to over its own pipe (DevTools protocol): no driver, no port, no network."""

import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, final

import pytest

BOUND = 60.0
"""Seconds for any answer: a first start of Chromium on a busy machine takes many."""

NAMES = ("chromium", "chromium-browser", "google-chrome")

FLAGS = (
    "--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--no-zygote",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-breakpad",
    "--disable-crash-reporter", "--host-resolver-rules=MAP * ~NOTFOUND", "--no-proxy-server", "--no-sandbox",
)  # fmt: skip
"""No sandbox: it needs a user namespace or a helper that is setuid, and the page is our own."""


def chromium() -> str:
    """Its path; skips the test where there is none."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    pytest.skip(f"no browser here: none of {', '.join(NAMES)} is in PATH")


_ON_3_AND_4 = """import fcntl, os, sys
copies = [fcntl.fcntl(int(word), fcntl.F_DUPFD, 10) for word in sys.argv[1:3]]
for number, fd in enumerate(copies, start=3):
    os.dup2(fd, number)
os.execv(sys.argv[3], sys.argv[3:])"""
"""The protocol is spoken on these two descriptors. (Copies first: one of the pipe's own may be 3 or 4.)"""


@final
class Browser:
    """One page. Use `opened`."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._ids = itertools.count(1)
        self._rest = b""
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def open(self, url: str) -> None:
        """Load it, and wait until that is done."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask("Page.navigate", url=url)
        self._until(lambda item: item.get("method") == "Page.loadEventFired")

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page. (By the debugger, which the page's policy does not bind.)"""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        """A key, down and up."""
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text)

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._ids)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        answer = self._until(lambda item: item.get("id") == number)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _until(self, wanted: Any) -> dict[str, Any]:
        end = time.monotonic() + BOUND
        while True:
            item = self._next(end)
            if "method" in item:
                self.events.append(item)
            if wanted(item):
                return item

    def _next(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._from], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser did not answer")
            chunk = os.read(self._from, 1 << 16)
            if not chunk:
                raise EOFError("the browser ended")
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\0")
        item: dict[str, Any] = json.loads(line)
        return item


@contextmanager
def opened(path: Path, folder: Path) -> Iterator[Browser]:
    """The page at `path`; the browser keeps its things in `folder`."""
    program = chromium()
    to_browser, ours = os.pipe()
    theirs, from_browser = os.pipe()[::-1]
    words = [
        sys.executable,
        "-c",
        _ON_3_AND_4,
        str(to_browser),
        str(theirs),
        program,
        *FLAGS,
        f"--user-data-dir={folder / 'profile'}",
    ]
    # The browser binds a socket in its TMPDIR, and ends without a word where its path has more than 107 bytes (unix(7)).
    short = tempfile.mkdtemp(prefix="page-", dir="/tmp")
    with (folder / "browser.log").open("wb") as log:
        process = subprocess.Popen(
            words,
            pass_fds=(to_browser, theirs),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "HOME": str(folder), "TMPDIR": short},
            start_new_session=True,
        )
    os.close(to_browser)
    os.close(theirs)
    browser = Browser(ours, from_browser)
    try:
        browser.open(path.as_uri())
        yield browser
        browser._session = None
        with suppress(EOFError):
            browser.ask("Browser.close")
    finally:
        os.close(ours)
        os.close(from_browser)
        _end(process)
        shutil.rmtree(short)


def _end(process: subprocess.Popen[bytes]) -> None:
    """It ends with its pipe; what of its group is left then goes with it."""
    try:
        process.wait(BOUND)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(BOUND)
    end = time.monotonic() + BOUND
    while time.monotonic() < end:
        try:
            os.killpg(process.pid, 9)
        except ProcessLookupError:
            return
        time.sleep(0.02)
