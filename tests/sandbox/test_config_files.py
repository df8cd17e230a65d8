"""The files that people write: found, trusted, extended and checked, or refused with what to do about it."""

import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from toolrunner.config import SANDBOXES, Document, Origin, Strict, find, given, listing, load, of_workspace, user_folder
from toolrunner.errors import ProfileError
from toolrunner.sandbox import Profile


class Inner(Strict):
    allow_write: tuple[str, ...] = ()
    mode: str = "none"


class Sheet(Document):
    filesystem: Inner = Inner()
    rules: tuple[Inner, ...] = ()
    most: int | None = Field(default=None, alias="maximum")


HEAD = 'schema = 1\nsummary = "for a test"\n'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = user_folder(SANDBOXES)
    folder.mkdir(parents=True, mode=0o755)
    return folder


def write(path: Path, text: str, mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + text)
    path.chmod(mode)
    return path


def refusal(name: str | Path) -> str:
    with pytest.raises(ProfileError) as caught:
        load(SANDBOXES, Sheet, name)
    return str(caught.value)


def test_a_path_is_taken_before_a_name_and_a_users_file_before_a_shipped_one(home: Path, tmp_path: Path) -> None:
    write(home / "strict.toml", "maximum = 7")
    explicit = write(tmp_path / "strict.toml", "maximum = 3")
    assert load(SANDBOXES, Sheet, str(explicit)).document.most == 3
    assert load(SANDBOXES, Sheet, "strict").document.most == 7
    assert find(SANDBOXES, "strict").origin is Origin.USER
    (home / "strict.toml").unlink()
    assert find(SANDBOXES, "strict").origin is Origin.SHIPPED


def test_tables_are_merged_and_everything_else_is_replaced(home: Path) -> None:
    write(home / "low.toml", 'maximum = 1\n[filesystem]\nallow_write = ["a"]\nmode = "host"')
    write(home / "high.toml", 'extends = "low"\n[filesystem]\nallow_write = ["b"]')
    loaded = load(SANDBOXES, Sheet, "high")
    assert loaded.document.filesystem == Inner(allow_write=("b",), mode="host")
    assert loaded.document.most == 1
    assert [path.name for path in loaded.files] == ["high.toml", "low.toml"]


def test_a_list_that_is_joined_stands_in_front_of_the_extended_one(home: Path) -> None:
    write(home / "low.toml", '[filesystem]\nallow_write = ["a"]')
    write(home / "high.toml", 'extends = "low"\n[filesystem]\nallow_write = ["b"]')
    loaded = load(SANDBOXES, Sheet, "high", joined=frozenset({"filesystem.allow_write"}))
    assert loaded.document.filesystem.allow_write == ("b", "a")


def test_the_hash_changes_with_any_file_of_the_chain(home: Path) -> None:
    low = write(home / "low.toml", "maximum = 1")
    write(home / "high.toml", 'extends = "low"')
    before = load(SANDBOXES, Sheet, "high")
    assert load(SANDBOXES, Sheet, "high").digest == before.digest
    write(low, "maximum = 1 # a word")
    assert load(SANDBOXES, Sheet, "high").digest != before.digest


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("[filesystem]\nalow_write = []", "unknown key 'filesystem.alow_write'; did you mean 'allow_write'?"),
        ("[[rules]]\nmod = 'x'", "unknown key 'rules.0.mod'; did you mean 'mode'?"),
        ("maximun = 1", "unknown key 'maximun'; did you mean 'maximum'?"),
        ("zzz = 1", "unknown key 'zzz'; known here: extends, filesystem, maximum, rules, schema, summary"),
        ('maximum = "7"', "maximum: Input should be a valid integer"),
        ("maximum = ", "Invalid value (at "),
        ('extends = "me"', "`extends` leads in a circle"),
        ('extends = "nobody"', "there is no profile named 'nobody'"),
    ],
)
def test_a_mistake_says_where_it_is_and_what_was_meant(text: str, complaint: str, home: Path) -> None:
    write(home / "me.toml", text)
    assert complaint in refusal("me")


def test_a_file_says_its_schema_and_what_it_is_for(home: Path) -> None:
    (home / "bare.toml").write_text("schema = 2\n")
    text = refusal("bare")
    assert "schema: Input should be 1" in text
    assert "summary: Field required" in text


def test_a_name_that_nobody_has_names_the_nearest_one(home: Path) -> None:
    write(home / "homework.toml", "")
    assert "did you mean 'homework'?" in refusal("homewrok")
    assert "small letters" in refusal("../x".replace("/", "%"))


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_file_that_others_may_write_is_refused(mode: int, tmp_path: Path) -> None:
    assert f"others may write it (mode {mode:o}); chmod go-w" in refusal(write(tmp_path / "p.toml", "", mode))


def test_a_file_in_a_folder_that_others_may_write_is_refused_unless_only_owners_can_replace_there(tmp_path: Path) -> None:
    path = write(tmp_path / "open" / "p.toml", "")
    path.parent.chmod(0o777)
    assert "others may write it (mode 777)" in refusal(path)
    path.parent.chmod(0o1777)
    assert load(SANDBOXES, Sheet, path).document.summary == "for a test"


def test_a_link_is_judged_by_where_it_leads(tmp_path: Path) -> None:
    path = write(tmp_path / "open" / "p.toml", "")
    path.parent.chmod(0o777)
    (tmp_path / "q.toml").symlink_to(path)
    assert "others may write it" in refusal(tmp_path / "q.toml")


@pytest.mark.root
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "p.toml", "")
    os.chown(path, 4321, 4321)
    assert "it belongs to user 4321" in refusal(path)


def test_what_is_no_file_of_a_sane_size_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    assert "no regular file" in refusal(tmp_path / "pipe.toml")
    assert "larger than 1,048,576 bytes" in refusal(write(tmp_path / "huge.toml", "#" * (1 << 20)))
    (tmp_path / "folder.toml").mkdir()
    assert "no regular file" in refusal(tmp_path / "folder.toml")
    assert "a file's name ends in .toml or .json" in refusal(tmp_path / "profile.yaml")
    assert "No such file" in refusal(tmp_path / "none.toml")


def test_json_is_read_as_toml_is(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text('{"schema": 1, "summary": "x", "filesystem": {"allow_write": ["a"]}}')
    path.chmod(0o600)
    assert load(SANDBOXES, Sheet, path).document.filesystem.allow_write == ("a",)
    path.write_text("[1]")
    assert "it holds no table of keys" in refusal(path)


def test_a_workspaces_file_takes_no_name_and_extends_no_path(tmp_path: Path, home: Path) -> None:
    assert of_workspace(SANDBOXES, Sheet, tmp_path) is None
    write(home / "low.toml", "maximum = 1")
    path = write(tmp_path / ".toolrunner" / "profile.toml", 'extends = "low"')
    loaded = of_workspace(SANDBOXES, Sheet, tmp_path)
    assert loaded is not None
    assert (loaded.origin, loaded.document.most) == (Origin.WORKSPACE, 1)
    write(path, 'extends = "./other.toml"')
    with pytest.raises(ProfileError, match="extends names only"):
        of_workspace(SANDBOXES, Sheet, tmp_path)


def test_values_in_code_are_checked_as_a_file_is(home: Path) -> None:
    write(home / "low.toml", "maximum = 1")
    values: dict[str, Any] = {"schema": 1, "summary": "x", "extends": "low"}
    assert given(SANDBOXES, Sheet, values).document.most == 1
    assert given(SANDBOXES, Sheet, values).digest == given(SANDBOXES, Sheet, dict(values)).digest
    with pytest.raises(ProfileError, match="profile given: unknown key 'maxmum'; did you mean 'maximum'"):
        given(SANDBOXES, Sheet, {**values, "maxmum": 2})


def test_a_users_file_may_extend_the_shipped_one_of_its_own_name(home: Path) -> None:
    write(home / "strict.toml", 'extends = "strict"')
    assert [path.name for path in load(SANDBOXES, Profile, "strict").files][:2] == ["strict.toml", "strict.toml"]


def test_every_name_is_listed_once(home: Path) -> None:
    write(home / "strict.toml", "")
    found = {each.name: each.origin for each in listing(SANDBOXES)}
    assert found["strict"] is Origin.USER
    assert found["offline"] is Origin.SHIPPED
