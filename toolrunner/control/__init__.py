"""The private socket of a running program: what runs here, and a request to stop it. Two verbs, `list` and `cancel`, no more.

`serve(runner)` = the program's side, `runners()` and `request_cancel()` = that of `toolrunner ps` and `cancel`. `place` = where
the sockets lie, `peers` = who may ask, `board` = what is under way, `lines` = what travels, with its bounds.
Approving and reconciling never travel here: a peer of the same user is not the person at the terminal.
"""

from toolrunner.control.client import Answer, Found, NotReached, request_cancel, runners
from toolrunner.control.place import NoPlace
from toolrunner.control.server import Controlled, serve

__all__ = ["Answer", "Controlled", "Found", "NoPlace", "NotReached", "request_cancel", "runners", "serve"]
