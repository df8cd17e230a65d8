"""Bodies in a process of their own: `isolation="process"`.

Host: `body` (the Body of one attempt), `conversation` (the host's end of the channel), `verdict` (what the end means).
Worker, under `python -I`: `__main__` (entry), `worker` (runs the one body), `inside` (its context), `channel` (its end).
Both: `messages`.
"""
