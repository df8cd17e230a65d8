"""Finds, reads, extends and checks the files that people write: profiles and policies, as TOML or JSON. No state.

A name is searched among the user's files, then among those that are shipped; a path is taken as it is. Nothing in a workspace
ever takes a name's place: `of_workspace` reads its one file, for the engine to narrow with. What cannot be trusted, read or
understood is an error that says where and what to do; no rule is ever ignored.
"""

from toolrunner.config.documents import POLICIES, SANDBOXES, Document, Found, Kind, Loaded, Origin, Strict
from toolrunner.config.loading import given, load, of_workspace
from toolrunner.config.search import config_home, find, listing, near, shipped_folder, user_folder

__all__ = [
    "POLICIES",
    "SANDBOXES",
    "Document",
    "Found",
    "Kind",
    "Loaded",
    "Origin",
    "Strict",
    "config_home",
    "find",
    "given",
    "listing",
    "load",
    "near",
    "of_workspace",
    "shipped_folder",
    "user_folder",
]
