"""`toolrunner changes` when there is nothing: said beside the output, which stays empty for a script."""

import pytest

from toolrunner.cli.commands import transactions


def test_that_no_changes_are_kept_is_said_beside_the_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(transactions, "layers", list)  # other programs of this user may keep some just now
    assert transactions.print_changes() == 0
    assert capsys.readouterr() == ("", "toolrunner: no changes are kept apart\n")
    assert transactions.print_changes(json=True) == 0
    assert capsys.readouterr() == ("", "")
