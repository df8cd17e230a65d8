"""A toolset is combined and cut down without losing, doubling or renaming a tool by accident."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrunner.errors import ConfigError, DuplicateTool, ToolDefinitionError
from toolrunner.tools import AnyTool, Toolset, tool


def make(name: str) -> AnyTool:
    @tool(name=name)
    async def body(path: str) -> str:
        return path

    return body


def plain(path: str) -> str:
    """Not decorated."""
    return path


READ, WRITE, LIST = make("read"), make("write"), make("list")


def test_tools_keep_their_order() -> None:
    tools = Toolset([WRITE, READ, LIST], name="files")
    assert (list(tools), len(tools), tools.name) == ([WRITE, READ, LIST], 3, "files")
    assert repr(tools) == "Toolset(files: write, read, list)"
    assert repr(Toolset([READ])) == "Toolset(read)"


def test_plain_functions_become_tools() -> None:
    assert Toolset([plain])["plain"].description == "Not decorated."
    with pytest.raises(ToolDefinitionError):
        Toolset([lambda: 1])


def test_toolsets_hold_tools_toolsets_and_functions() -> None:
    assert [one.name for one in Toolset([READ, Toolset([WRITE]), plain])] == ["read", "write", "plain"]


def test_sets_are_joined() -> None:
    assert list(Toolset([READ], "a") + Toolset([WRITE], "b")) == [READ, WRITE]
    assert (Toolset([READ], "a") + WRITE).name == "a"
    assert [one.name for one in Toolset() + plain + [READ]] == ["plain", "read"]


def test_two_tools_with_one_name_clash() -> None:
    with pytest.raises(DuplicateTool, match="'read'"):
        Toolset([READ, make("read")])
    with pytest.raises(DuplicateTool, match="'read'"):
        _ = Toolset([READ]) + make("read")


def test_the_same_tool_twice_is_one_tool() -> None:
    assert list(Toolset([READ, Toolset([READ, WRITE])])) == [READ, WRITE]


def test_a_set_is_asked_for_tools_and_names() -> None:
    tools = Toolset([READ])
    assert "read" in tools
    assert READ in tools
    assert "write" not in tools
    assert make("read") not in tools


def test_a_typo_in_a_selection_is_an_error_not_a_hole() -> None:
    tools = Toolset([READ, WRITE])
    for select in (tools.only, tools.without):
        with pytest.raises(ConfigError, match=r"'raed'; expected one of read, write"):
            select("raed")


def test_prefixed_tools_are_the_same_tools_under_other_names() -> None:
    (made,) = Toolset([READ]).prefixed("fs_")
    assert (made.name, made.fn, READ.name) == ("fs_read", READ.fn, "read")
    assert made.version != READ.version
    with pytest.raises(ToolDefinitionError, match="providers refuse"):
        Toolset([READ]).prefixed("fs.")


NAMES = st.lists(st.sampled_from("abcdef"), unique=True)


@given(NAMES, st.data())
def test_only_and_without_split_a_set(names: list[str], data: st.DataObject) -> None:
    tools = Toolset(make(name) for name in names)
    chosen = data.draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    inside, outside = tools.only(*chosen), tools.without(*chosen)
    assert [one.name for one in inside] == [name for name in names if name in chosen]
    assert {one.name for one in inside + outside} == set(names)
    assert len(inside) + len(outside) == len(tools)
