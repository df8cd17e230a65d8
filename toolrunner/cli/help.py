r"""The texts of `--help`. No state.

`\b` (alone on a line) keeps the lines of the paragraph after it as they are.
"""

PROGRAM = """Run commands and tools, stop them with everything they started, and say truthfully what happened.

\b
  toolrunner run --timeout 10 -- make test
  toolrunner run --watch-writes . -- ./build.sh
  toolrunner run --sandbox workspace-write --policy unattended -- ./build.sh
  toolrunner batch calls.jsonl --tools mytools:toolset
  toolrunner log
  toolrunner doctor

Every command has a --help with examples.
"""

RUN = """Run one command, and end it with everything it started.

Its output passes straight through; what happened is told on standard error. Its input is ours, unless that is a terminal.

\b
  toolrunner run --timeout 10 -- make test
  toolrunner run --watch-writes src -- ./generate.sh
  toolrunner run --json -- ls -l | jq .outcome
  toolrunner run --sandbox offline --policy unattended -- make test
  toolrunner run --sandbox workspace-write --transaction -- ./migrate.sh
  seq 3 | toolrunner run --quiet -- sort -r

Ctrl-C (SIGTERM, SIGHUP) asks it to end: SIGTERM to the command, SIGKILL after --kill-after. A second one kills at once.

What the command leaves running is ended with it. With --leftovers keep the result is told when the command itself has ended, and
toolrunner stays until the rest has ended too, or is stopped: nothing outlives toolrunner. Its exit status is the command's.

With --tty the command has a terminal of its own, and all its output is one stream. Typed at our terminal, every key goes to it,
Ctrl-C too; to stop it press Ctrl-] three times within a second (again: kill it now), or send toolrunner SIGTERM. It is asked by
two SIGINT before SIGTERM.

\b
Exit status: the command's own, or
  124  it ran over its time limit
  125  it was refused, or its journal cannot be written; nothing ran
  126  it cannot be executed        127  it was not found
  128+n  signal n ended it, one that toolrunner did not send
    2  a wrong option; nothing ran
  130  stopped (Ctrl-C, a reader that left)   143  by SIGTERM   129  by SIGHUP
   70  it was lost: it ran, its end is not known
   74  the result could not be written

The command's own status may be any of these: to be sure, read "outcome" in --json or --report.
"""

BATCH = """Run calls from JSON Lines; print one line of result for each, in order.

All of the input is read first. A line is a call:

\b
  {"call_id": "1", "name": "shell", "arguments": {"command": "ls", "timeout": 5}}

It may have an "idempotency_key": of two calls with the same one the second is answered from the first.

There is the tool "shell" (command, cwd, timeout), and what --tools names. Calls run one after the other, except those of tools
that are declared safe in parallel. What a tool in Python prints goes to standard error.

\b
  toolrunner batch calls.jsonl
  echo '{"name":"shell","arguments":{"command":"date"}}' | toolrunner batch -
  toolrunner batch calls.jsonl --tools mytools:toolset --max-parallel 4

With --journal or --session its records are kept there; a key that was used there before is answered from the first call, or as
IN_DOUBT. With --resume, lines whose call_id is settled there already, with the same name and arguments, are left out; what was
stopped before it started runs. The same call_id for another call is an error line.

\b
  toolrunner batch calls.jsonl --journal calls.db
  toolrunner batch calls.jsonl --journal calls.db --resume

A line that is no call is answered by {"line": N, "error": "..."} in its place; the others still run.

Exit status: 0 when every line got a result, 2 when a line was malformed, 130, 143 or 129 when it was stopped.
"""

SCHEMA = """Print the JSON Schema of a result, as run --json, --report and batch print it.

\b
  toolrunner schema > result.schema.json
"""

DOCTOR = """Say which guarantees hold on this machine; for each that does not, why, and what to do.

\b
  toolrunner doctor
  toolrunner doctor --json | jq .

Exit status: 0 when all hold, else 1.
"""

LOG = """Print what a journal holds, a record a line, in order. Without --session or --journal: the newest session.

\b
  toolrunner log
  toolrunner log --follow --session nightly
  toolrunner log --run call_7 --json | jq .type
  toolrunner log --html session.html

With --follow it goes on until the program that owns the journal has ended. With --html the session is written to FILE as one page
with a time line, to be opened in any browser; it holds everything that the calls were given and gave back.
"""

SHOW = """Print the story of one call: when it was recorded, decided, approved, dispatched, which effects it had, when a stop was
asked for and delivered, when its body ended and its result was settled. At a terminal with bars to scale.

RUN is the beginning of a run id or a call id; if it fits several calls, they are listed.

\b
  toolrunner show 3f2a
  toolrunner show call_7 --session nightly
  toolrunner show 3f2a --json | jq .result.outcome
"""

PS = """Print the programs of this user that run calls now: `toolrunner run`, `batch`, and whatever serves a control socket. For
each its calls, with their ids and pids, and the processes that descend from it.

\b
  toolrunner ps
  toolrunner ps --json | jq .calls
"""

CANCEL = """Stop a call that runs now, or all, as Ctrl-C would: by the ladder, with everything it started. Waits until it is
over and prints what happened.

RUN is the beginning of a run id or a call id, as ps prints them; if it fits several calls, they are listed. A tool cannot cancel
its siblings: what descends from the program is refused.

\b
  toolrunner cancel 3f2a
  toolrunner cancel --all

Exit status: 0 when everything that was asked to stop has told its end, else 1.
"""

RECOVER = """Give every call its result whose program died before it had one, and end what that program left running.

A call that was not dispatched never started. One that was dispatched and whose end is not on record is LOST: what it did is not
known, and it is never run again. `run` and `batch` do the first half themselves when they open a journal; they only report what
still lives, this command ends it. At a terminal it asks first.

\b
  toolrunner recover --dry-run
  toolrunner recover --journal batch.db --json

Exit status: 1 when a process would not end, else 0.
"""

RECONCILE = """Say what became of a call whose effects are not known: it took effect, or it did not. You have looked.

It is kept in the journal, with your note. From then on the call's idempotency key is answered by it, and what waited for that
doubt may run. Refused while a program owns the journal.

\b
  toolrunner reconcile 3f2a --as completed --note "order 17 is in the shop"
  toolrunner reconcile call_7 --as none --note "no such row"
"""

JOURNAL = "Look after a journal: is it whole, and what is in it."

CHECK = """Look whether a journal is whole: the database, the numbers of its records, the order of each call's records.
Without FILE, --session or --journal: the newest session.

\b
  toolrunner journal check
  toolrunner journal check calls.db
  toolrunner journal check --session nightly --json | jq .problems

Exit status: 0 when it is, else 1.
"""

EXPORT = """Print a journal as JSON Lines, to be given to somebody: foreign texts and numbers are blanked, unless --raw is given.

\b
  toolrunner journal export > shareable.jsonl
  toolrunner journal export calls.db | jq -r .type
  toolrunner journal export --raw --session nightly > all.jsonl
"""

POLICY = "What may run, what is asked first, what is denied: policies, and what they say of a call."

POLICY_LIST = """Print the policies that can be named: yours (a file in your configuration folder) and those that are shipped.

\b
  toolrunner policy list
  toolrunner policy list --json | jq -r .name
"""

POLICY_SHOW = """Print what a policy says: its rules, what it extends, and how the workspace's .toolrunner/policy.toml narrows it.

\b
  toolrunner policy show ask
  toolrunner policy show ./mine.toml --json
"""

POLICY_CHECK = """Read policies as `run` would: every key, every rule, every example.

\b
  toolrunner policy check
  toolrunner policy check ./mine.toml

Exit status: 0 when all are good, else 1.
"""

POLICY_EXPLAIN = """Say what a policy says of a call, which rule says so, and which others speak about it. Nothing runs.

\b
  toolrunner policy explain --policy ask --tool shell --args '{"command": "git push"}'
  toolrunner policy explain --policy ci --profile offline --tool write_file --args '{"path": "../x", "content": ""}' --json
"""
