"""The command line: `toolrunner run | batch | log | show | ps | cancel | …`. It uses the library as any program would.

`app` = commands and options, `run`, `batch`, `chat`, `doctor`, `commands` = what they do, `views` = how a journal is shown,
`journals` and `sessions` = which journal is written and read, `resume` = what of a batch is settled, `stops` = signals, `asker`
and `question` = approvals at the terminal, `talk` and `keyboard` = what is typed there, `sink` = our own output, `report` = what
people read, `exit_codes` = what scripts read, `printable` = the one way by which foreign text reaches a terminal.
"""

from toolrunner.cli.app import main

__all__ = ["main"]
