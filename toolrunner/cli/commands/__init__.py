"""The commands besides `run`, `batch`, `schema` and `doctor`: each takes its options, prints, and returns its exit status.

`reading` = log and show, `running` = ps and cancel, `mending` = recover, reconcile, journal check and export, `transactions` =
changes, apply and discard, `history` and `policies` = their groups, `chatting` = chat; `options` and `sandboxing` = options that
they share.
"""
