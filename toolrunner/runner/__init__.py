"""Runner: the front door. It owns the root of all tasks and the journal, and borrows the host process's one warden.

`front` = what users call, `assembly` = how its parts are put together, `batch` = a batch under way, `hub` = who hears of records,
`waiting` = how a caller waits and what its own cancellation means, `shelf` = where results are kept, `blocking` = without async.
"""

from toolrunner.runner.batch import Batch
from toolrunner.runner.blocking import BlockingRunner
from toolrunner.runner.front import Runner

__all__ = ["Batch", "BlockingRunner", "Runner"]
