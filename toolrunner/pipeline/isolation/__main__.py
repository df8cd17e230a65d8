"""Entry of a worker: `python -I __main__.py CHANNEL_FD`.

-I keeps the environment, the user's site and the working directory out of `sys.path`; the host's own path comes in the first
message, so that the worker imports exactly what its host would. Until then there is nothing but the standard library.
"""

import importlib
import json
import os
import sys


def read_exactly(fd: int, count: int) -> bytes:
    """So many bytes, or an end of the process: a host that is gone needs no worker."""
    parts = bytearray()
    while len(parts) < count:
        part = os.read(fd, count - len(parts))
        if not part:
            sys.exit("toolrunner: the host is gone")
        parts += part
    return bytes(parts)


if __name__ == "__main__":
    channel = int(sys.argv[1])
    first = read_exactly(channel, int.from_bytes(read_exactly(channel, 4), "big"))
    start = json.loads(first)
    sys.path[:] = start["path"]
    sys.dont_write_bytecode = not start["write_bytecode"]
    sys.argv[1:] = []
    importlib.import_module("toolrunner.pipeline.isolation.worker").main(channel, first)
