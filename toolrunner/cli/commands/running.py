"""`toolrunner ps` and `toolrunner cancel`: what the programs of this user run now, and a request to stop it. No state."""

import json as codec
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, final

import typer

from toolrunner import control
from toolrunner.cli import exit_codes
from toolrunner.cli.commands.options import AsJson
from toolrunner.cli.printable import printable
from toolrunner.cli.sessions import NotFound, ambiguous
from toolrunner.cli.views.trees import Tree, forest
from toolrunner.cli.voice import complain
from toolrunner.control import Answer, Found
from toolrunner.process.identity import starttime_of

LONGEST = 100
"""Characters of one foreign text in a line."""


def ps(*, json: AsJson = False) -> int:
    """Print the programs that run calls now, the calls, and the processes of each."""
    programs = control.runners()
    if not programs and not json:
        complain("nothing runs now")  # on standard error: a script counts the lines of the other
    for found in programs:
        if found.answer is None:
            complain(found.problem)
        elif json:
            typer.echo(codec.dumps(_as_json(found.answer), ensure_ascii=False, separators=(",", ":")))
        else:
            _print_program(found.answer)
    return 0


def _as_json(answer: Answer) -> dict[str, Any]:
    return {**answer.model_dump(mode="json"), "processes": [_node(one) for one in _processes(answer)]}


def _node(tree: Tree) -> dict[str, Any]:
    return {"pid": tree.pid, "name": tree.name, "children": [_node(one) for one in tree.children]}


def _print_program(answer: Answer) -> None:
    where = answer.about.get("session") or answer.about.get("journal", "")
    typer.echo(f"{answer.pid}  {printable(where, LONGEST)}  {len(answer.calls) + answer.more_calls} calls")
    for call in answer.calls:
        id_ = f"  call {printable(call.call_id, LONGEST)}" if call.call_id is not None else ""
        pid = f"  pid {call.pid}" if call.pid is not None else ""
        typer.echo(
            f"  {printable(call.run_id[:8])}  {printable(call.name, LONGEST)}  {printable(call.standing, LONGEST)}{id_}{pid}"
        )
    if answer.more_calls:
        typer.echo(f"  and {answer.more_calls} more calls")
    for tree in _processes(answer):
        for depth, one in _flat(tree, 0):
            typer.echo(f"  {'  ' * depth}{one.pid}  {printable(one.name, LONGEST)}")


def _processes(answer: Answer) -> tuple[Tree, ...]:
    """What descends from the program, unless its number is another's by now."""
    if starttime_of(answer.pid) != answer.starttime:
        return ()
    return forest(answer.pid)


def _flat(tree: Tree, depth: int) -> Iterator[tuple[int, Tree]]:
    yield depth, tree
    for one in tree.children:
        yield from _flat(one, depth + 1)


def cancel_call(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="A prefix of the call's run id or call id.")] = None,
    *,
    all_: Annotated[bool, typer.Option("--all", help="Everything that runs.")] = False,
    json: AsJson = False,
) -> int:
    """Stop a call, or everything; wait until it is over and print what happened."""
    if (run is None) is not all_:
        raise typer.BadParameter("give a call, or --all")
    programs = control.runners()
    for one in programs:
        if one.answer is None:
            complain(one.problem)
    wanted = [_Wanted(one, None) for one in programs if one.answer is not None] if run is None else [_find(programs, run)]
    if not wanted:
        complain("nothing runs")
    return max((_cancel_one(one, json=json) for one in wanted), default=0)


@final
@dataclass(frozen=True, slots=True)
class _Wanted:
    """A call of a program, or all of them."""

    program: Found
    run_id: str | None


def _find(programs: list[Found], prefix: str) -> _Wanted:
    """Raises `NotFound`."""
    fitting = [
        (one, call)
        for one in programs
        for call in (one.answer.calls if one.answer is not None else ())
        if prefix and (call.run_id.startswith(prefix) or (call.call_id or "").startswith(prefix))
    ]
    exact = [(one, call) for one, call in fitting if prefix in (call.run_id, call.call_id)]
    chosen = exact or fitting
    if not chosen:
        raise NotFound(f"no call that runs now has an id that begins with {prefix!r}; see toolrunner ps")
    if len(chosen) > 1:
        raise NotFound(ambiguous(prefix, [(call.run_id, call.call_id) for _, call in chosen]))
    program, call = chosen[0]
    return _Wanted(program, call.run_id)


def _cancel_one(wanted: _Wanted, *, json: bool) -> int:
    """Ask, and print results as they come; 0 if all that were asked to stop have told their end."""
    left = 0
    try:
        for answer in control.request_cancel(wanted.program.path, wanted.run_id):
            left += int(answer.get("number", 0)) - ("result" in answer)
            if "result" in answer:
                _print_result(answer["result"], json=json)
            elif not answer.get("number") and wanted.run_id is not None:
                complain(f"call {wanted.run_id} was over before it could be stopped")
    except control.NotReached as error:
        complain(str(error))
        return exit_codes.FAILED
    if left:
        complain(f"the program ended before it told of {left} of them; see toolrunner show")
    return exit_codes.FAILED if left else 0


def _print_result(result: dict[str, Any], *, json: bool) -> None:
    if json:
        typer.echo(codec.dumps(result, ensure_ascii=False, separators=(",", ":")))
    else:
        typer.echo(f"{printable(str(result.get('run_id'))[:8])}  {printable(result.get('summary', ''), 1000)}")
    sys.stdout.flush()
