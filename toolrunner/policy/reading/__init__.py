"""What a call is about, as far as its arguments show it: paths, hosts, commands. Patterns over each, and how they are read.

Everything here is pure but `paths`, which follows symbolic links. What cannot be read is said to be so: a rule that forbids
counts it as its own, a rule that allows never does.
"""

from toolrunner.policy.reading.subject import NAMES, Names, Subject

__all__ = ["NAMES", "Names", "Subject"]
