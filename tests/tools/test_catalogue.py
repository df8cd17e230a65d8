"""Look-up of tools by name; a replaced tool is told from its successor, and nobody takes out what is not theirs."""

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from toolrunner.errors import ConfigError, DuplicateTool
from toolrunner.tools import AnyTool, Catalogue, Toolset, tool


def make(name: str) -> AnyTool:
    @tool(name=name)
    async def body(path: str) -> str:
        return path

    return body


@pytest.mark.case("T26")
def test_a_name_is_registered_once_and_can_be_taken_out() -> None:
    catalogue = Catalogue()
    unregister = catalogue.register(make("read"))
    with pytest.raises(DuplicateTool, match="'read'"):
        catalogue.register(make("read"))
    assert unregister() is True
    assert unregister() is False
    assert catalogue.find("read") is None
    catalogue.register(make("read"))
    assert catalogue.find("read") is not None


def test_a_replaced_tool_is_another_registration_in_the_same_place() -> None:
    old, new = make("read"), make("read")
    catalogue = Catalogue([old, make("write")])
    before = catalogue.find("read")
    catalogue.replace(new)
    after = catalogue.find("read")
    assert before is not None
    assert after is not None
    assert (before.tool, after.tool) == (old, new)
    assert before.id != after.id
    assert [one.tool.name for one in catalogue] == ["read", "write"]


def test_the_same_tool_registered_again_is_another_registration() -> None:
    catalogue, read = Catalogue(), make("read")
    catalogue.register(read)()
    catalogue.register(read)
    first = catalogue.find("read")
    catalogue.replace(read)
    second = catalogue.find("read")
    assert first is not None
    assert second is not None
    assert first.id != second.id


def test_who_was_replaced_cannot_take_the_successor_out() -> None:
    catalogue = Catalogue()
    unregister = catalogue.register(make("read"))
    catalogue.replace(make("read"))
    assert unregister() is False
    assert catalogue.find("read") is not None


def test_only_what_is_there_can_be_replaced() -> None:
    with pytest.raises(ConfigError, match="'read'; expected a registered one"):
        Catalogue().replace(make("read"))


@pytest.mark.parametrize(
    "name, near", [("raed", "read"), ("Read_file", None), ("wirte", "write"), ("", None), ("r" * 100_000, None)]
)
def test_an_unknown_name_is_answered_with_the_nearest_known_one(name: str, near: str | None) -> None:
    assert Catalogue(Toolset([make("read"), make("write")])).nearest(name) == near


def test_a_change_during_a_loop_does_not_disturb_it() -> None:
    catalogue = Catalogue([make("read"), make("write")])
    seen = []
    for one in catalogue:
        seen.append(one.tool.name)
        catalogue.register(make(f"{one.tool.name}_2"))
    assert seen == ["read", "write"]
    assert len(catalogue) == 4


class CatalogueMachine(RuleBasedStateMachine):
    """Any order of changes leaves what a dict and the rules of ownership say."""

    owners = Bundle("owners")
    names = st.sampled_from(["a", "b", "c"])

    def __init__(self) -> None:
        super().__init__()
        self.catalogue = Catalogue()
        self.expected: dict[str, AnyTool] = {}
        self.ids: set[str] = set()

    @rule(target=owners, name=names)
    def register(self, name: str) -> tuple[AnyTool, Callable[[], bool]]:
        made = make(name)
        if name in self.expected:
            with pytest.raises(DuplicateTool):
                self.catalogue.register(made)
            return made, lambda: False
        self.expected[name] = made
        return made, self.catalogue.register(made)

    @rule(target=owners, name=names)
    def replace(self, name: str) -> tuple[AnyTool, Callable[[], bool]]:
        made = make(name)
        if name not in self.expected:
            with pytest.raises(ConfigError):
                self.catalogue.replace(made)
            return made, lambda: False
        self.expected[name] = made
        return made, self.catalogue.replace(made)

    @rule(owner=owners)
    def unregister(self, owner: tuple[AnyTool, Callable[[], bool]]) -> None:
        made, take_out = owner
        is_theirs = self.expected.get(made.name) is made
        assert take_out() is is_theirs
        if is_theirs:
            del self.expected[made.name]

    @invariant()
    def the_catalogue_holds_what_is_expected_in_order(self) -> None:
        assert [one.tool for one in self.catalogue] == list(self.expected.values())
        assert all(found.tool is self.expected[name] for name in self.expected if (found := self.catalogue.find(name)))
        assert len({one.id for one in self.catalogue}) == len(self.catalogue)


TestCatalogue = CatalogueMachine.TestCase
TestCatalogue.settings = settings(max_examples=50)  # each makes dozens of tools, at 1 ms apiece
