"""Policies out of files and out of values that look like files: read, checked against their own examples, narrowed. No state.

The workspace's file never stands for a policy. It is evaluated too, and the strictest of both counts; so it can forbid more and
have more asked, and nothing it says allows anything.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from toolrunner.config import POLICIES, Loaded, Origin, given, load, of_workspace
from toolrunner.errors import PolicyError
from toolrunner.policy.documents import HOST_ONLY, JOINED, Example, PolicyFile
from toolrunner.policy.policies import Policy
from toolrunner.policy.reading.subject import NAMES, Subject

NEUTRAL = "/a/workspace"
"""Where examples begin: they are claims about the rules, and have to hold wherever somebody works."""

WORKSPACE_NAME = "the workspace's policy"


@final
@dataclass(frozen=True, slots=True)
class Opened:
    """A policy with the files it was made of. `unheard` are keys of the workspace's file in which it has no say."""

    policy: Policy
    loaded: Loaded[PolicyFile]
    workspace: Loaded[PolicyFile] | None = None
    unheard: tuple[str, ...] = ()


def load_policy(policy: str | os.PathLike[str] | Mapping[str, Any], workspace: str | Path | None = None) -> Policy:
    """The policy of this name or in this file (a path), or the one that is written here as a mapping.

    `workspace` (default: the current folder) is where relative paths begin, and whose `.toolrunner/policy.toml` narrows it.

    Raises:
        PolicyError: with the file, the key and what to do. Nothing is run under a policy that does not load.
    """
    return open_policy(policy, workspace).policy


def open_policy(policy: str | os.PathLike[str] | Mapping[str, Any], workspace: str | Path | None = None) -> Opened:
    """The same, with where it came from."""
    if isinstance(policy, Mapping):
        loaded = given(POLICIES, PolicyFile, policy, joined=JOINED)
    else:
        loaded = load(POLICIES, PolicyFile, policy, joined=JOINED)
    made = _made(loaded, workspace)
    place = Path(workspace if workspace is not None else os.curdir).absolute()
    narrower = of_workspace(POLICIES, PolicyFile, place, joined=JOINED)
    if narrower is None:
        return Opened(made, loaded)
    unheard = tuple(name for name in HOST_ONLY if name in narrower.document.model_fields_set)
    return Opened(replace(made, also=(_made(narrower, workspace),)), loaded, narrower, unheard)


def _made(loaded: Loaded[PolicyFile], workspace: str | Path | None) -> Policy:
    file, where = loaded.document, str(loaded.files[0]) if loaded.files else loaded.name
    try:
        rules = file.rules()
        policy = Policy(
            rules,
            name=WORKSPACE_NAME if loaded.origin is Origin.WORKSPACE else loaded.name,
            default=file.default,
            workspace=workspace,
            names=NAMES | file.names.names(),
            digest=loaded.digest,
        )
        _check_examples(policy, file.examples)
    except PolicyError as error:
        raise PolicyError(f"policy {where}: {error}") from error
    if loaded.origin is Origin.WORKSPACE:
        return policy
    own = {name: getattr(file, name) for name in HOST_ONLY}
    return replace(policy, **own)


def _check_examples(policy: Policy, examples: tuple[Example, ...]) -> None:
    neutral = replace(policy, workspace=NEUTRAL)
    for number, example in enumerate(examples, 1):
        subject = Subject(
            example.tool, example.annotations.annotations(), example.arguments, profile=example.profile, env=example.env
        )
        found = neutral.judge(subject)
        if found.decision is not example.expect:
            raise PolicyError(
                f"its example {number} ({example.tool}) expects {example.expect.value}, "
                f"and the rules say {found.decision.value} (by {found.by}); one of the two is wrong"
            )
