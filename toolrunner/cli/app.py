"""The commands and their options: words in, values out. Everything that is done is done elsewhere.

State: none. Bad usage is one line on standard error and status 2; whatever is about the call itself is the call's result.
"""

import json
import logging
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer

from toolrunner import starting
from toolrunner.cli import doctor as doctors
from toolrunner.cli import exit_codes
from toolrunner.cli.batch import Request, run_batch, take_stdout
from toolrunner.cli.commands import chatting, history, mending, policies, reading, running, transactions
from toolrunner.cli.commands.options import (
    OwnJournal,
    OwnPolicy,
    OwnSession,
    content_of,
    group,
    own_journal,
    print_help_alone,
)
from toolrunner.cli.commands.sandboxing import OwnGuarantees, OwnSandbox, OwnTransaction, chosen_sandbox
from toolrunner.cli.files import NotWritable
from toolrunner.cli.help import (
    BATCH,
    CANCEL,
    CHECK,
    DOCTOR,
    EXPORT,
    JOURNAL,
    LOG,
    PROGRAM,
    PS,
    RECONCILE,
    RECOVER,
    RUN,
    SCHEMA,
    SHOW,
)
from toolrunner.cli.journals import NoJournal
from toolrunner.cli.keyboard import our_size
from toolrunner.cli.lines import read_calls
from toolrunner.cli.loading import BadTools, load_tools
from toolrunner.cli.printable import printable
from toolrunner.cli.run import Form, Telling, run
from toolrunner.cli.sessions import NotFound
from toolrunner.cli.standard import NoOutput, lose_no_result, open_streams
from toolrunner.cli.voice import complain, terminal_width
from toolrunner.cli.wish import Wish
from toolrunner.control import NoPlace
from toolrunner.errors import ConfigError, JournalError, PolicyError, ProfileError
from toolrunner.process import DEFAULT_GRACE, DEFAULT_OUTPUT_LIMIT, Leftovers, Stdin, WindowSize
from toolrunner.results import schema
from toolrunner.runner.settings import DEFAULT_PARALLEL

app = typer.Typer(
    help=PROGRAM, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip

# The words after the options are the command's own, options among them: nothing after the first of them is ours.
_COMMAND_LINE = {"allow_interspersed_args": False}


USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
"""What typer raises for any bad usage; it has no public name of its own."""


def main() -> None:
    """The console script: run the command that was asked for and exit with its status."""
    starting.is_over()
    open_streams()
    _log_safely()
    try:
        status = app(prog_name="toolrunner", standalone_mode=False)
        sys.stdout.flush()
    except USAGE_ERROR as error:
        _usage(error)
        status = exit_codes.USAGE
    except (BadTools, NotFound) as error:
        complain(str(error))
        status = exit_codes.USAGE
    except (NotWritable, NoJournal, PolicyError, ProfileError) as error:
        complain(str(error))
        status = exit_codes.REFUSED
    except (JournalError, ConfigError, NoPlace) as error:  # of the commands that only look
        complain(str(error))
        status = exit_codes.FAILED
    except (KeyboardInterrupt, typer.Abort):  # before anything ran: signals are taken from then on
        status = exit_codes.ABORTED
    except NoOutput as error:  # of help, schema, doctor; results and a command's output go their own way
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the interpreter would complain when it flushes
        if not error.reader_left:
            complain(str(error))
        status = exit_codes.ABORTED if error.reader_left else exit_codes.NOT_WRITTEN
    sys.exit(status)


def _usage(error: Any) -> None:
    where = error.ctx.command_path if error.ctx is not None else "toolrunner"
    complain(f"{error.format_message().rstrip('.')}; see {where} --help")


class _OneLine(logging.Formatter):
    """Log records quote foreign text; a terminal gets them in a form that is harmless there."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(printable(line) for line in super().format(record).splitlines())


def _log_safely() -> None:
    stream = logging.StreamHandler()
    stream.setFormatter(_OneLine("toolrunner: %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[stream])


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"toolrunner {doctors.version()}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _program(
    *,
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,  # noqa: ARG001
) -> None:
    print_help_alone(context)


_OutputLimit = Annotated[int, typer.Option(metavar="N", help="Bytes of each stream kept in the result; all of it is passed on.")]


@app.command("run", help=RUN, short_help="Run one command.", context_settings=_COMMAND_LINE)
def _run(  # noqa: PLR0913 - each is an option people look for by name
    *,
    command: Annotated[list[str], typer.Argument(metavar="CMD...", help="The command and its arguments.")],
    timeout: Annotated[float | None, typer.Option(metavar="S", help="End it after S seconds.")] = None,
    kill_after: Annotated[float, typer.Option(metavar="S", help="Seconds from SIGTERM to SIGKILL.")] = DEFAULT_GRACE,
    cwd: Annotated[str | None, typer.Option(metavar="DIR", help="Folder to run it in.")] = None,
    env: Annotated[list[str] | None, typer.Option(metavar="K=V", help="Set a variable. Values are in no record.")] = None,
    watch_writes: Annotated[list[str] | None, typer.Option(metavar="DIR", help="Say which files below DIR changed.")] = None,
    output_limit: _OutputLimit = DEFAULT_OUTPUT_LIMIT,
    leftovers: Annotated[Leftovers, typer.Option(help="What becomes of processes it leaves behind.")] = Leftovers.KILL,
    stdin: Annotated[
        str | None, typer.Option(metavar="null|inherit|FILE", help="Its input. Default: ours, unless that is a terminal.")
    ] = None,
    tty: Annotated[
        bool, typer.Option("--tty", "-t", help="Give it a terminal; from ours, every key is its own, Ctrl-C too.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one line, the result as JSON, and nothing else.")] = False,
    events: Annotated[
        bool, typer.Option("--events", help="Print each record as a line of JSON when it happens; the result is the last.")
    ] = False,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result as JSON to FILE.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing when the command came to its own end.")] = False,
    policy: OwnPolicy = None,
    sandbox: OwnSandbox = None,
    require: OwnGuarantees = None,
    transaction: OwnTransaction = False,
    session: OwnSession = None,
    journal: OwnJournal = None,
) -> int:
    if json and events:
        raise typer.BadParameter("--json and --events both want standard output; choose one")
    form = Form.JSON if json else Form.EVENTS if events else Form.OUTPUT
    if form is not Form.OUTPUT:
        lose_no_result()
    wish = Wish(
        argv=tuple(command),
        timeout=timeout,
        kill_after=kill_after,
        cwd=cwd,
        env=dict(map(_variable, env or ())),
        watch=tuple(watch_writes or ()),
        output_limit=output_limit,
        stdin=_input(stdin, typed=tty and form is Form.OUTPUT),
        leftovers=leftovers,
        policy=policies.chosen(policy, sandbox=sandbox is not None),
        sandbox=chosen_sandbox(sandbox, require, transaction=transaction),
        tty=(our_size() or WindowSize()) if tty else None,
    )
    return anyio.run(run, wish, Telling(form, report, quiet), own_journal(session, journal))


def _variable(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not name or not equals:
        raise typer.BadParameter(f"--env {word!r}: expected NAME=VALUE")
    return name, value


def _input(word: str | None, *, typed: bool) -> Stdin | Path:
    """Where its input is from. `typed`: from our terminal, if ours is one, through its own."""
    if typed and word in (None, Stdin.INHERIT) and os.isatty(0):
        return Stdin.OPEN
    if word is None:
        return Stdin.NULL if os.isatty(0) else Stdin.INHERIT
    if word in (Stdin.NULL, Stdin.INHERIT):
        return Stdin(word)
    path = Path(word)
    if path.is_fifo():
        # Opening one waits for its writer. Here Ctrl-C ends that; inside, it would hold the event loop.
        os.dup2(os.open(path, os.O_RDONLY), 0)
        return Stdin.INHERIT
    return path


@app.command("batch", help=BATCH, short_help="Run calls from JSON Lines.")
def _batch(  # noqa: PLR0913 - each is an option people look for by name
    *,
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="JSON Lines of calls; - is standard input.")],
    tools: Annotated[
        list[str] | None, typer.Option(metavar="MODULE:NAME", help="Tools besides the built-in shell: one, or a Toolset.")
    ] = None,
    max_parallel: Annotated[int, typer.Option(metavar="N", min=1, help="Parallel-safe calls at once.")] = DEFAULT_PARALLEL,
    resume: Annotated[bool, typer.Option("--resume", help="Leave out calls that are settled in the journal already.")] = False,
    policy: OwnPolicy = None,
    session: OwnSession = None,
    journal: OwnJournal = None,
) -> int:
    where = own_journal(session, journal)
    if resume and session is None and journal is None:
        raise typer.BadParameter("--resume needs the --journal or --session in which calls are settled already")
    content = content_of(file)
    chosen = policies.chosen(policy)
    stdout = take_stdout()  # before anything of the user's is imported: it may print
    request = Request(tuple(read_calls(content)), load_tools(tools or ()), max_parallel, where, resume, chosen)
    return anyio.run(run_batch, request, stdout)


@app.command("schema", help=SCHEMA, short_help="Print the JSON Schema of a result.")
def _schema() -> int:
    typer.echo(json.dumps(schema(), indent=2, ensure_ascii=False))
    return 0


@app.command("doctor", help=DOCTOR, short_help="Say which guarantees hold on this machine.")
def _doctor(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> int:
    findings = anyio.run(doctors.examine)
    if as_json:
        typer.echo(doctors.as_json(findings))
    else:
        plain = not sys.stdout.isatty() or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        typer.echo(doctors.for_people(findings, terminal=not plain, width=terminal_width(1)), nl=False)
    return 0 if findings.healthy else 1


app.command("chat", help=chatting.CHAT, short_help="Talk to a model that may use the built-in tools.")(chatting.chat)
app.command("log", help=LOG, short_help="Print what a journal holds.")(reading.log)
app.command("show", help=SHOW, short_help="Print the story of one call.")(reading.show)
app.command("ps", help=PS, short_help="Print what runs now.")(running.ps)
app.command("cancel", help=CANCEL, short_help="Stop a call that runs now.")(running.cancel_call)
app.command("changes", help=transactions.CHANGES, short_help="Print changes that are kept apart.")(transactions.print_changes)
app.command("apply", help=transactions.APPLY, short_help="Carry kept changes over.")(transactions.apply)
app.command("discard", help=transactions.DISCARD, short_help="Throw kept changes away.")(transactions.discard)
app.command("recover", help=RECOVER, short_help="Settle what a dead program left open.")(mending.recover)
app.command("reconcile", help=RECONCILE, short_help="Say what became of a call in doubt.")(mending.reconcile)
_journals = group(JOURNAL, JOURNAL)
_journals.command("check", help=CHECK, short_help="Is it whole?")(mending.check_journal)
_journals.command("export", help=EXPORT, short_help="Print it as JSON Lines.")(mending.export_journal)
app.add_typer(_journals, name="journal")
app.add_typer(history.app, name="history")
app.add_typer(policies.app, name="policy")
