"""The benchmarks use the package as a stranger would, and keep to the same rules of size as it does."""

import ast
import importlib
from pathlib import Path

import layers
import pytest

CHECKOUT = Path(__file__).parents[2]
FILES = sorted((CHECKOUT / "benchmarks").rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_it_imports_public_names_only(path: Path) -> None:
    """The front door, or what a package right below it says is its own (`__all__`)."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert not [alias for alias in node.names if alias.name.startswith("toolrunner.")]
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "toolrunner":
            assert node.module.count(".") <= 1, node.module
            public = importlib.import_module(node.module).__all__
            assert {alias.name for alias in node.names} <= set(public)


@pytest.mark.parametrize("rule", [layers.no_module_is_too_long, layers.no_function_is_too_long, layers.no_name_says_nothing])
def test_it_keeps_the_rules_of_size_and_names(rule: layers.Rule) -> None:
    assert list(rule(layers.load(CHECKOUT / "benchmarks"))) == []
