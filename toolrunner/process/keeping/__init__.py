"""What runs in the warden and its keepers: standard library only, under a bare interpreter, without importing toolrunner.

`__main__` is started by path. `warden` forks `keeper`s ahead of need; a keeper holds one call: `gate` (the child before its
exec), `ladder` (SIGTERM), `sweep` (SIGKILL until the kernel says that nobody is left). `messages` is the wire format, which
the host shares; `system` is the kernel as they see it. Nothing here imports typing, dataclasses or re: each keeper would pay.
"""
