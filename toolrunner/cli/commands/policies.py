"""`toolrunner policy list|show|check|explain`: what policies there are, what they say, and why. They change nothing. No state."""

import json as codec
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, final

import typer
from pydantic import ValidationError

from toolrunner.cli import exit_codes
from toolrunner.cli.commands.options import AsJson, group
from toolrunner.cli.help import POLICY, POLICY_CHECK, POLICY_EXPLAIN, POLICY_LIST, POLICY_SHOW
from toolrunner.cli.json_words import why_no_json
from toolrunner.cli.loading import load_tools
from toolrunner.cli.printable import printable
from toolrunner.cli.voice import complain
from toolrunner.config import POLICIES, Found, listing, load
from toolrunner.errors import PolicyError
from toolrunner.facts import Annotations
from toolrunner.policy import Opened, Policy, Rule, Subject, Verdict, load_policy, open_policy
from toolrunner.policy.documents import JOINED, AnnotationsTable, PolicyFile
from toolrunner.policy.reading.subject import NO_PROFILE
from toolrunner.tools import AnyTool
from toolrunner.tools.builtin import builtins

LONGEST = 400
"""Characters of one foreign text in a line."""

app = group(POLICY, "What may run, what is asked first, what is denied.")

_Name = Annotated[str, typer.Argument(metavar="POLICY", help="A name, or a file.")]
_Names = Annotated[
    list[str] | None, typer.Argument(metavar="[POLICY]...", help="Names or files. Default: all that policy list lists.")
]


def chosen(name: str | None, *, sandbox: bool = False) -> Policy | None:
    """The policy of `--policy`, narrowed by the workspace's file. `sandbox`: one was named, so its own is not wanted.

    Raises PolicyError.
    """
    if name is None:
        return None
    policy = load_policy(name)
    return replace(policy, profile=None) if sandbox else policy


@app.command("list", help=POLICY_LIST, short_help="Print the policies that can be named.")
def _list(*, json: AsJson = False) -> int:
    for found in listing(POLICIES):
        summary = _summary(found)
        if json:
            line = {"name": found.name, "origin": found.origin.value, "path": str(found.path), "summary": summary}
            typer.echo(codec.dumps(line, ensure_ascii=False))
        else:
            typer.echo(f"{found.name:<14} {found.origin.value:<8} {printable(summary, LONGEST)}")
    return 0


def _summary(found: Found) -> str:
    try:
        return load(POLICIES, PolicyFile, found.path, joined=JOINED).document.summary
    except PolicyError as error:
        return f"cannot be used: {error}"


@app.command("show", help=POLICY_SHOW, short_help="Print what a policy says.")
def _show(name: _Name, *, json: AsJson = False) -> int:
    opened = open_policy(name)
    if json:
        typer.echo(codec.dumps(_as_json(opened), ensure_ascii=False))
        return 0
    _print_origin(opened)
    for policy in (opened.policy, *opened.policy.also):
        typer.echo(f"\n{printable(policy.label)}: what no rule speaks about is {policy.default.value}")
        for rule in policy.rules:
            text = f"  ({rule.text})" if rule.text else ""
            typer.echo(f"  {rule.decision.value:<6} {printable(_said(rule), LONGEST)}{printable(text, LONGEST)}")
    return 0


def _print_origin(opened: Opened) -> None:
    policy = opened.policy
    typer.echo(printable(opened.loaded.document.summary))
    typer.echo(f"from     {printable(', '.join(map(str, opened.loaded.files)))}")
    if opened.workspace is not None:
        typer.echo(f"narrowed {printable(opened.workspace.files[0])}")
        if opened.unheard:
            typer.echo(f"         (its {', '.join(opened.unheard)} does not count: a workspace has no say in that)")
    typer.echo(f"digest   {policy.digest}")
    typer.echo(f"asks     {'whoever can be asked' if policy.asks else 'nobody: what would be asked is denied'}")
    typer.echo(f"remember {policy.remember.value}")
    typer.echo(f"profile  {printable(policy.profile or 'none of its own')}")


def _said(rule: Rule) -> str:
    """The rule's name and what it is about."""
    about = str(replace(rule, name="")).partition(" ")[2]
    return f"{rule.name}: {about}" if rule.name else about


def _as_json(opened: Opened) -> dict[str, Any]:
    return {
        "name": opened.policy.name,
        "summary": opened.loaded.document.summary,
        "files": [str(path) for path in opened.loaded.files],
        "digest": opened.policy.digest,
        "document": opened.loaded.document.model_dump(mode="json", by_alias=True, exclude_none=True),
        "workspace": None
        if opened.workspace is None
        else opened.workspace.document.model_dump(mode="json", by_alias=True, exclude_none=True),
        "unheard": list(opened.unheard),
    }


@app.command("check", help=POLICY_CHECK, short_help="Are they whole, and do their examples hold?")
def _check(names: _Names = None) -> int:
    bad = 0
    for name in names or [found.name for found in listing(POLICIES)]:
        try:
            opened = open_policy(name)
        except PolicyError as error:
            complain(str(error))
            bad += 1
            continue
        rules, examples = len(opened.policy.rules), len(opened.loaded.document.examples)
        typer.echo(f"{printable(name)}: good; {rules} rules, {examples} examples")
    return exit_codes.FAILED if bad else 0


@app.command("explain", help=POLICY_EXPLAIN, short_help="Say what becomes of a call, and why.")
def _explain(  # noqa: PLR0913 - each is an option people look for by name
    *,
    tool: Annotated[str, typer.Option(metavar="T", help="The tool's name.")],
    arguments: Annotated[str, typer.Option("--args", metavar="JSON", help="The call's arguments.")] = "{}",
    policy: Annotated[str | None, typer.Option("--policy", metavar="P", help="A name or a file.")] = None,
    annotations: Annotated[
        str | None, typer.Option(metavar="JSON", help="What the tool declares. Default: as it is, if we know the tool.")
    ] = None,
    profile: Annotated[str, typer.Option(metavar="NAME", help="The sandbox profile it would run in.")] = NO_PROFILE,
    cwd: Annotated[Path | None, typer.Option(metavar="DIR", help="The folder it would run in.")] = None,
    tools: Annotated[
        list[str] | None, typer.Option(metavar="MODULE:NAME", help="Tools of yours, to know what they declare.")
    ] = None,
    json: AsJson = False,
) -> int:
    where = os.path.realpath(cwd) if cwd is not None else None
    subject = Subject(tool, _declared(tool, annotations, tools or ()), _read(arguments), cwd=where, profile=profile)
    told = _Told.of(load_policy(policy) if policy is not None else None, subject)
    typer.echo(codec.dumps(told.as_json(), ensure_ascii=False) if json else told.for_people())
    return 0


def _read(text: str) -> Mapping[str, Any]:
    try:
        value = codec.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"--args is no JSON: {why_no_json(error)}") from error
    if not isinstance(value, dict):
        raise typer.BadParameter("--args is no JSON object")
    return value


def _declared(tool: str, annotations: str | None, tools: list[str] | tuple[str, ...]) -> Annotations:
    if annotations is not None:
        try:
            return AnnotationsTable.model_validate_json(annotations).annotations()
        except ValidationError as error:
            raise typer.BadParameter(f"--annotations: {error.errors(include_url=False)[0]['msg']}") from error
    known: dict[str, AnyTool] = {one.name: one for one in (*builtins(), *load_tools(tools))}
    if tool in known:
        return known[tool].annotations
    complain(f"{tool} is no tool we know; it counts as one that declares nothing")
    return Annotations()


@final
class _Told:
    """The answer to one question. Made by `of`."""

    def __init__(self, decision: Verdict, by: str, text: str, rules: list[tuple[Policy, Rule]], subject: Subject) -> None:
        self._decision, self._by, self._text, self._rules, self._subject = decision, by, text, rules, subject

    @classmethod
    def of(cls, policy: Policy | None, subject: Subject) -> "_Told":
        if policy is None:
            return cls(Verdict.ALLOW, "no policy", "without --policy every tool is allowed", [], subject)
        found = policy.judge(subject)
        return cls(found.decision, found.by, found.text, list(policy.matching(subject)), subject)

    def as_json(self) -> dict[str, Any]:
        return {
            "decision": self._decision.value,
            "by": self._by,
            "text": self._text,
            "matching": [
                {"policy": policy.label, "decision": rule.decision.value, "rule": _said(rule), "text": rule.text}
                for policy, rule in self._rules
            ],
            "advice": self._is_advice,
        }

    @property
    def _is_advice(self) -> bool:
        return any(rule.commands is not None for _, rule in self._rules)

    def for_people(self) -> str:
        lines = [f"{self._decision.value}: {printable(self._by, LONGEST)}", f"  {printable(self._text, LONGEST)}"]
        lines += [
            f"  {printable(policy.label)} would {rule.decision.value}: {printable(_said(rule), LONGEST)}"
            for policy, rule in self._rules
        ]
        if self._is_advice:
            lines.append("  Rules over commands are advice: other words can do the same. A sandbox is what holds.")
        return "\n".join(line for line in lines if line.strip())
