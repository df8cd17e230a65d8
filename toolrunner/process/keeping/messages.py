"""The wire format between host, warden and keepers: small ASCII messages over SEQPACKET sockets, at most `MESSAGE_LIMIT` bytes.

A request carries `key=value` words and, as descriptors, in this order: a sealed memfd with argv and environment, the keeper's
end of the call's control socket, the folder above its cgroup (if `cgroup` names one), the working directory, stdin, stdout,
stderr, then what else the tool is to have.
Host to keeper: `go`, `stop GRACE`, `eof`. Keeper to host: `ready`, `refused`, `killed` (at the gate), `stopping`, `exited`,
`ended`; warden: `unfit`.
"""

MESSAGE_LIMIT = 4096
"""Bytes. A 1 MB SEQPACKET message is EMSGSIZE on stock kernels, so what can be large travels in the memfd."""

FIXED_FDS = 6
"""memfd, control, cwd, stdin, stdout, stderr."""

DRAIN_BOUND = 0.1
"""Seconds ("D") that processes which outlive the leader, or hold its pipes, may go on and still have their output kept."""

REAP_BOUND = 2.0
"""Seconds ("R") after SIGKILL until a process counts as unreaped: only a task stuck inside the kernel needs longer."""

LISTED = 16
"""Processes named in one report; more are counted. Keeps the report below `MESSAGE_LIMIT`."""


def encode(kind: str, **words: object) -> bytes:
    """`kind key=value …` Values must not hold spaces; text is given as hex by `hexed`."""
    return " ".join([kind, *(f"{key}={value}" for key, value in words.items())]).encode("ascii")


def decode(message: bytes) -> tuple[str, dict[str, str]]:
    """The kind of a message and its words."""
    kind, *words = message.decode("ascii").split(" ")
    return kind, dict(word.partition("=")[::2] for word in words)


SAMPLE = encode("run", args=2, timeout="inf", grace=2.0, umask=0o77, limits="", fds="", tty=0, keep=0, own=0, user="", cgroup="")
"""A request as it looks, for those who rehearse."""


def hexed(text: str) -> str:
    """Any text as one word."""
    return text.encode("utf-8", "surrogateescape").hex()


def unhexed(word: str) -> str:
    """What `hexed` was given."""
    return bytes.fromhex(word).decode("utf-8", "replace")


def pack(argv: list[bytes], environment: list[bytes]) -> bytes:
    """The memfd's content. No part can hold a NUL, which execve(2) could not pass either."""
    return b"\0".join([*argv, *environment])


def unpack(content: bytes, arguments: int) -> tuple[list[bytes], dict[bytes, bytes]]:
    """Arguments and environment out of the memfd."""
    parts = content.split(b"\0")
    return parts[:arguments], dict(part.partition(b"=")[::2] for part in parts[arguments:])


def listing(entries: list[tuple[int, int, int, str, str]]) -> str:
    """Processes (pid, uid, starttime, name, error) as one word; the first `LISTED` of them."""
    return ",".join(f"{pid}:{uid}:{start}:{hexed(name)}:{error}" for pid, uid, start, name, error in entries[:LISTED])


def parse_listing(word: str) -> list[tuple[int, int, int, str, str]]:
    """What `listing` was given."""
    entries = []
    for entry in filter(None, word.split(",")):
        pid, uid, start, name, error = entry.split(":")
        entries.append((int(pid), int(uid), int(start), unhexed(name), error))
    return entries
