"""What runs in the warden and its keepers: standard library only, under a bare interpreter, without importing toolrunner.

`__main__` is started by path. `warden` forks keepers ahead of need (`pool`), which wait (`idle`) after a `rehearsal`; a `keeper`
holds one call: `gate` and `leader` (the child before its exec, from both sides), `ladder` (SIGTERM), `sweep` (SIGKILL until the
kernel says that nobody is left). `messages` is the wire format, which the host shares; `system` is the kernel as they see it.
Nothing here imports typing, dataclasses or re: each keeper would pay. `signal` and `socket` are only their C halves in here:
signals are plain numbers, and no socket is a context manager.
"""
