"""What profiles mean: the shipped ones' own examples, the table of levels, and that narrowing never widens."""

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandbox.running import profile

from toolrunner.config import SANDBOXES, Origin, listing, load
from toolrunner.errors import ProfileError
from toolrunner.process.wrapped import command_ran
from toolrunner.sandbox import Guarantee, Sandbox, load_profile
from toolrunner.sandbox.places import EXAMPLE
from toolrunner.sandbox.profile import Access, Profile
from toolrunner.sandbox.terms import check_examples, terms
from toolrunner.sandbox.view import Table, pins
from toolrunner.sandbox.words import Level

SHIPPED = [found.name for found in listing(SANDBOXES) if found.origin is Origin.SHIPPED]


def test_the_names_that_people_know_are_there() -> None:
    assert SHIPPED == ["danger-full-access", "offline", "read-only", "strict", "workspace-write"]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_profile_is_what_its_examples_say(name: str) -> None:
    loaded = load(SANDBOXES, Profile, name)
    assert loaded.document.examples
    check_examples(loaded)


def test_an_example_that_is_not_so_is_an_error_that_names_it() -> None:
    bad = profile(examples=[{"access": "write", "path": "/etc/passwd", "expect": "allow"}])
    with pytest.raises(ProfileError, match=r"example 1 \(write /etc/passwd\) expects allow, and it is deny"):
        Sandbox(bad)


@pytest.mark.parametrize(
    "tables, complaint",
    [
        ({"filesystem": {"allow_write": ["src/*"]}}, "not a pattern"),
        ({"filesystem": {"allow_write": ["~bob/x"]}}, "only ~ itself is known"),
        ({"filesystem": {"allow_writes": ["x"]}}, "did you mean 'allow_write'"),
        ({"limits": {"memory": "2 gigabytes"}}, "is no size"),
        ({"limits": {"memory": -1}}, "greater than 0"),
        ({"require": ["fs_rite"]}, "'fs_write'"),
        ({"network": {"mode": "proxy"}}, "'none' or 'host'"),
    ],
)
def test_a_rule_that_cannot_be_kept_is_refused_when_it_is_read(tables: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ProfileError) as caught:
        Sandbox(profile(**tables))
    assert complaint in str(caught.value)


def test_a_guarantee_with_no_such_name_is_an_error() -> None:
    with pytest.raises(ProfileError, match="there is no guarantee 'everything'"):
        Sandbox("strict", require=("everything",))


def test_an_empty_list_allows_nothing() -> None:
    found = terms(load_profile(profile(filesystem={"allow_write": [], "private_tmp": False})), EXAMPLE)
    assert not any(found.allows(Access.WRITE, path) for path in ("/", "/workspace/x", "/tmp/x"))


@pytest.mark.parametrize("word, size", [("1 GiB", 1 << 30), ("512MiB", 512 << 20), (4096, 4096)])
def test_a_size_is_a_number_or_has_a_unit(word: object, size: int) -> None:
    assert load_profile(profile(limits={"memory": word})).document.limits.memory == size


PATHS = st.sampled_from(["/", "/a", "/a/b", "/a/b/c", "/a/x", "/d", "/d/e", "/tmp", "/workspace", "/workspace/s"])
TABLES = st.dictionaries(PATHS, st.sampled_from(Level)).map(lambda levels: Table({"/": Level.READ, **levels}))


@given(TABLES, TABLES, PATHS)
def test_narrowing_never_opens_anything(one: Table, other: Table, path: str) -> None:
    both = one.narrowed(other)
    for each in (path, os.path.join(path, "deeper")):
        assert both.level(each) == min(one.level(each), other.level(each))


@given(TABLES, st.lists(PATHS, max_size=3), st.sampled_from(Level), PATHS)
def test_a_cap_holds_at_its_path_and_below_and_opens_nothing(given_: Table, capped: list[str], most: Level, path: str) -> None:
    result = given_.capped(capped, most)
    assert result.level(path) <= given_.level(path)
    for top in capped:
        if path == top or path.startswith(top.rstrip("/") + "/"):
            assert result.level(path) <= most


@given(TABLES, PATHS)
def test_rules_that_say_nothing_new_can_be_left_out(given_: Table, path: str) -> None:
    assert Table(dict(given_.rules())).level(path) == given_.level(path)


NAMES = st.sampled_from(SHIPPED)


@given(NAMES, NAMES, st.sampled_from(Access), PATHS)
def test_two_profiles_together_allow_what_both_allow(one: str, other: str, access: Access, path: str) -> None:
    first, second = (terms(load(SANDBOXES, Profile, name), EXAMPLE) for name in (one, other))
    both = first.both(second)
    assert not both.allows(access, path) or (first.allows(access, path) and second.allows(access, path))


def test_every_folder_between_a_write_root_and_a_protected_file_is_pinned() -> None:
    table = Table({"/": Level.READ, "/w": Level.WRITE, "/w/a/b/c": Level.READ, "/w/d": Level.HIDDEN})
    assert pins(table) == ["/w/a", "/w/a/b"]


@pytest.mark.parametrize(
    "status, alone, ran",
    [
        (b'{ "child-pid": 7 }\n{ "exit-code": 1 }\n', True, True),
        (b'{ "child-pid": 7 }\n', True, False),
        (b'{ "child-pid": 7 }\n', False, None),
        (b'{ "child-pid": 7 }\n{ "exit-c', False, None),
        (b'{ "chil', False, False),
        (b"", False, False),
        (b"", True, False),
    ],
)
def test_what_a_wrapper_said_proves_or_does_not(status: bytes, alone: bool, ran: bool | None) -> None:
    assert command_ran(status, ended_by_itself=alone) is ran


def test_the_words_of_guarantees_are_those_of_the_design() -> None:
    words = "fs_read fs_write protect_paths network unix_sockets kill_tree limits_memory limits_pids env tty"
    assert {str(each) for each in Guarantee} == set(words.split())
