"""The commands about what has been run: each reads a journal or asks a running program, prints, and returns its exit status.

`reading` = log and show, `running` = ps and cancel, `mending` = recover, reconcile, journal check and export, `options` = options
that they share.
"""
