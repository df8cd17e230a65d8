"""What a configuration file is: its kind, its origin, the keys that every one has, and what reading it gives. No state."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Generic, Literal, TypeVar, final

from pydantic import BaseModel, ConfigDict, Field

from toolrunner.errors import PolicyError, ProfileError, ToolrunnerError

SUFFIXES = (".toml", ".json")


@final
@dataclass(frozen=True, slots=True)
class Kind:
    """One sort of file: its data folder, its file in a workspace, what people call it, and the error it raises."""

    folder: str
    noun: str
    error: type[ToolrunnerError]


SANDBOXES = Kind("sandboxes", "profile", ProfileError)
POLICIES = Kind("policies", "policy", PolicyError)


class Origin(StrEnum):
    """Where a document came from, which says how far it is trusted."""

    GIVEN = "given"
    """Values in the host's own code."""
    EXPLICIT = "explicit"
    USER = "user"
    SHIPPED = "shipped"
    WORKSPACE = "workspace"
    """May only narrow what the others say."""


class Strict(BaseModel):
    """Base of every table: unknown keys are errors, words are not numbers, and nothing changes once it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, validate_by_name=True, validate_by_alias=True)


class Document(Strict):
    """What every file has. `summary` is one sentence for people who choose; `extends` a name, or a path beside the file."""

    schema_version: Literal[1] = Field(alias="schema")
    summary: str = Field(min_length=1, max_length=200)
    extends: str | None = None


D_co = TypeVar("D_co", bound=Document, covariant=True)
D = TypeVar("D", bound=Document)


@final
@dataclass(frozen=True, slots=True)
class Found:
    """A file that can be loaded. The same name found later in the search is not listed."""

    name: str
    path: Path
    origin: Origin


@final
@dataclass(frozen=True, slots=True)
class Loaded(Generic[D_co]):
    """A document with the files it was made of (its own first, then what it extends) and the SHA-256 over their contents."""

    name: str
    document: D_co
    origin: Origin
    files: tuple[Path, ...]
    digest: str
