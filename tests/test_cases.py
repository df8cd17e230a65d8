"""Every case of the catalogue is shown by a test, and every test that names a case names one of the catalogue."""

import re
from pathlib import Path

import catalogue
import pytest

TESTS = Path(__file__).parent
CASES = catalogue.read_catalogue(TESTS / "cases")
SOURCE = re.compile(
    r"ours|docs: [\w.]+(, [\w ]+)+|deepseek-harness upstream tests|[\w.-]+(/[\w.-]+)?#\d+(, [\w.-]+(/[\w.-]+)?#\d+)*"
)
# How many cases each family must show by now: a row that is lost by accident is missed as much as its test.
FAMILIES = {
    "T": 26,
    "A": 18,
    "D": 7,
    "S": 24,
    "E": 30,
    "P": 61,
    "H": 29,
    "R": 8,
    "X": 20,
    "AN": 12,
    "CH": 5,
    "RS": 7,
    "GM": 7,
    "GI": 8,
    "C": 39,
    "B": 9,
}


def test_every_case_has_a_test() -> None:
    shown = {mark.id for mark in catalogue.read_marks(TESTS)}
    missing = [f"{case.id}: {case.line}" for case in CASES.values() if case.id not in shown]
    assert missing == []


def test_every_mark_names_a_case() -> None:
    assert [mark for mark in catalogue.read_marks(TESTS) if mark.id not in CASES] == []


def test_the_catalogue_is_whole() -> None:
    counts = {family: sum(re.fullmatch(rf"{family}\d+", id_) is not None for id_ in CASES) for family in FAMILIES}
    assert counts == FAMILIES
    assert sum(counts.values()) == len(CASES)


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.id)
def test_a_row_is_one_sentence_with_a_source(case: catalogue.Case) -> None:
    assert case.line.endswith(".")
    assert len(case.line) <= 160
    assert SOURCE.fullmatch(case.source)


@pytest.mark.parametrize(
    "text, ids",
    [
        ('@pytest.mark.case("P1")\ndef test_a(): ...', ["P1"]),
        ('@pytest.mark.case("P1", "P2")\nasync def test_a(): ...', ["P1", "P2"]),
        ('@pytest.mark.case("P1")\nclass TestIt:\n    @pytest.mark.case("P2")\n    def test_a(self): ...', ["P1", "P2"]),
        ('pytestmark = [pytest.mark.anyio, pytest.mark.case("P1")]', ["P1"]),
        ('@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.case("P1"))])\ndef test_a(x): ...', ["P1"]),
        ('ROWS = [pytest.param(1, marks=[pytest.mark.root, pytest.mark.case("P1")])]', ["P1"]),
        ('@pytest.mark.root\n@pytest.mark.case("P1")\ndef test_a(): ...', ["P1"]),
        ('NAME = "P1"\n@pytest.mark.case(NAME)\ndef test_a(): ...', [None]),
        ("@pytest.mark.case()\ndef test_a(): ...", [None]),
        ('@pytest.mark.case("P1")\ndef no_test(): ...', []),
        ('@pytest.mark.skip(reason="later")\n@pytest.mark.case("P1")\ndef test_a(): ...', []),
        ('@pytest.mark.xfail\n@pytest.mark.case("P1")\ndef test_a(): ...', []),
        ('ROWS = [pytest.param(1, marks=[pytest.mark.skip, pytest.mark.case("P1")])]', []),
        ("\"@pytest.mark.case('P1')\"", []),
    ],
)
def test_marks_are_found_where_pytest_acts_on_them(text: str, ids: list[str | None], tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "test_it.py").write_text(text)
    (tmp_path / "not_a_test.py").write_text('@pytest.mark.case("P9")\ndef test_a(): ...')
    assert [mark.id for mark in catalogue.read_marks(tmp_path)] == ids


def test_an_id_in_two_files_is_refused(tmp_path: Path) -> None:
    for name in ("a.toml", "b.toml"):
        (tmp_path / name).write_text('P1 = { line = "One.", source = "ours" }')
    with pytest.raises(ValueError, match=r"b\.toml: P1 is in another file already"):
        catalogue.read_catalogue(tmp_path)
