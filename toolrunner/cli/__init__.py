"""The command line: `toolrunner run | batch | schema | doctor`. It uses the library as any program would.

`app` = commands and options, `run`, `batch`, `doctor` = what they do, `stops` = signals, `sink` = our own output, `report` = what
people read, `exit_codes` = what scripts read, `printable` = the one way by which foreign text reaches a terminal.
"""

from toolrunner.cli.app import main

__all__ = ["main"]
