"""What a docstring says reaches the model, in whichever of the three usual forms; anything else is description."""

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrunner.tools.docstring import Docstring, read_docstring

GOOGLE = """Copy a file.

    Slowly.

    Args:
        source (str | None): Where from,
            with a second line.
        target: Where to: a path
        *rest (dict[str, tuple(int)], optional): All
            the rest.

            In two paragraphs.
        silent:

    Returns:
        The number of bytes.

    Raises:
        OSError: not for the model.

    A last word.
    """

NUMPY = """Copy a file.

    Slowly.

    Parameters
    ----------
    source : str or None
        Where from,
        with a second line.
    target, other : str, optional
        Where to: a path

    Returns
    -------
    int
        The number of bytes.

    Raises
    ------
    OSError
        not for the model
    """

REST = """Copy a file.

    Slowly.

    :param source: Where from,
        with a second line.
    :param str target: Where to: a path
    :type source: str
    :returns: The number of bytes.
    :raises OSError: not for the model
    """


def test_a_google_docstring_is_read() -> None:
    assert read_docstring(GOOGLE) == Docstring(
        "Copy a file.\n\nSlowly.\n\nA last word.\n\nReturns: The number of bytes.",
        {
            "source": "Where from, with a second line.",
            "target": "Where to: a path",
            "rest": "All the rest. In two paragraphs.",
        },
    )


def test_a_numpy_docstring_is_read() -> None:
    assert read_docstring(NUMPY) == Docstring(
        "Copy a file.\n\nSlowly.\n\nReturns: int\n    The number of bytes.",
        {"source": "Where from, with a second line.", "target": "Where to: a path", "other": "Where to: a path"},
    )


def test_a_rest_docstring_is_read() -> None:
    assert read_docstring(REST) == Docstring(
        "Copy a file.\n\nSlowly.\n\nReturns: The number of bytes.",
        {"source": "Where from, with a second line.", "target": "Where to: a path"},
    )


@pytest.mark.parametrize(
    "doc, description",
    [
        (None, ""),
        ("", ""),
        ("One line.", "One line."),
        ("Do it now: at once.", "Do it now: at once."),
        ("Steps:\n  first\n  second", "Steps:\n  first\n  second"),
        ("Table\n-----\nrow", "Table\n-----\nrow"),
        ("The time is 10:30:00 here.", "The time is 10:30:00 here."),
        ("Args:\n  a: one", ""),
    ],
)
def test_what_is_no_section_is_description(doc: str | None, description: str) -> None:
    assert read_docstring(doc).description == description


LINES = st.lists(
    st.sampled_from(
        ["", "Args:", "Parameters", "------", ":param x: y", ":returns: z", "    a: b", "a : int", "        c", "  :", "text"]
    )
    | st.text(max_size=12),
    max_size=12,
).map("\n".join)


@given(LINES)
def test_no_docstring_is_too_odd_to_be_read(doc: str) -> None:
    found = read_docstring(doc)
    assert all(name and text for name, text in found.parameters.items())


@given(st.text(st.characters(categories=["L", "N", "Zs"]), max_size=40))
def test_text_without_sections_is_kept_as_it_is(text: str) -> None:
    assert read_docstring(text).description == inspect.cleandoc(text).strip()
