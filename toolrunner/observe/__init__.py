"""What changed in a folder while a call ran, and whether anybody else could have done it.

`scan` looks (in a worker thread), `watches` remembers who ran meanwhile (on the loop). Neither knows what a call is.
"""

from toolrunner.observe.scan import Budget, Snapshot, diff, rescan, snapshot
from toolrunner.observe.watches import Watch, Watches, Writer

__all__ = ["Budget", "Snapshot", "Watch", "Watches", "Writer", "diff", "rescan", "snapshot"]
