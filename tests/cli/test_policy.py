"""`--policy` of run and batch, the question at the terminal, and `policy list|show|check|explain`."""

import json
import os
import termios
from pathlib import Path
from typing import Any

import pytest
from cli.program import at_terminal, running, toolrun

SH = ("--", "sh", "-c")
ASKS = 'schema = 1\nsummary = "Asks."\nremember = "{remember}"\n'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration folder of the test's own."""
    folder = tmp_path / "config"
    (folder / "toolrunner").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    return folder / "toolrunner"


@pytest.fixture
def asks(tmp_path: Path) -> str:
    """A policy that asks about everything and lets answers be kept."""
    return policy(tmp_path / "asks.toml", ASKS.format(remember="user"))


def policy(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def test_a_typed_yes_runs_it_and_the_journal_says_who_asked_and_answered(asks: str, tmp_path: Path) -> None:
    journal = tmp_path / "j.db"
    with at_terminal("run", "--policy", asks, "--journal", str(journal), *SH, "echo it ran") as terminal:
        shown = terminal.shows("Type yes, session, always, no or stop: ")
        assert "may command run?" in shown
        assert "it ran" in shown  # the argument
        terminal.press(b"yes\r")
        status, shown = terminal.end()
    assert status == 0
    assert "it ran\r\n" in shown
    records = toolrun("log", "--json", "--journal", str(journal)).lines
    decided = next(one for one in records if one["type"] == "call/decided")
    assert decided["decision"] == "ask"
    assert decided["by"].startswith("asks@")
    assert decided["by"].endswith("no rule matches")
    assert [one["type"] for one in records][2:4] == ["call/asked", "call/answered"]


@pytest.mark.parametrize("typed", [b"no\r", b"stop\r", b"\x04", b"y\r" * 5, b"yes, but only src\r" * 5])
def test_whatever_is_no_yes_runs_nothing(typed: bytes, asks: str, tmp_path: Path) -> None:
    with at_terminal("run", "--policy", asks, *SH, f"touch {tmp_path}/ran") as terminal:
        for line in typed.split(b"\r")[:-1] if b"\r" in typed else [typed]:
            terminal.shows("or stop: ")
            terminal.press(line + b"\r" if b"\r" in typed else line)
        status, _ = terminal.end()
    assert status == 125
    assert not (tmp_path / "ran").exists()


def test_the_reason_of_a_no_is_told() -> None:
    values = {"schema": 1, "summary": "x"}
    path = policy(Path(os.environ["XDG_CONFIG_HOME"]) / "p.json", json.dumps(values))
    with at_terminal("run", "--policy", path, "--json", *SH, "true") as terminal:
        terminal.shows("or stop: ")
        terminal.press(b"no use make test\r")
        _, shown = terminal.end()
    assert "use make test" in shown


def test_ctrl_c_while_it_is_asked_ends_the_question_and_nothing_ran(asks: str, tmp_path: Path) -> None:
    with at_terminal("run", "--policy", asks, *SH, f"touch {tmp_path}/ran") as terminal:
        terminal.shows("or stop: ")
        terminal.press(b"\x03")
        status, _ = terminal.end()
    assert status == 130
    assert not (tmp_path / "ran").exists()


def test_what_was_typed_before_the_question_stood_there_is_no_answer(asks: str, tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    lines = [{"name": "shell", "arguments": {"command": command}} for command in ("true", f"touch {tmp_path}/ran")]
    calls.write_text("\n".join(map(json.dumps, lines)))
    with at_terminal("batch", "--policy", asks, str(calls)) as terminal:
        terminal.shows("or stop: ")
        # Both lines are there when the first is read; the second is dropped before the second question is put.
        terminal.press(b"yes\ryes\r")
        terminal.shows("or stop: ")
        terminal.press(b"no\r")
        terminal.end()
    assert not (tmp_path / "ran").exists()


def test_without_a_terminal_nobody_can_be_asked_so_it_is_denied(asks: str, tmp_path: Path) -> None:
    with running("run", "--policy", asks, "--json", *SH, f"touch {tmp_path}/ran") as program:
        done = program.done()
    assert done.status == 125
    assert (done.result["outcome"], done.result["code"], done.result["started"]) == ("denied", "DENIED", False)
    assert "nobody can be asked" in done.result["error"]["message"]
    assert not (tmp_path / "ran").exists()


def test_foreign_text_is_shown_and_not_obeyed(asks: str) -> None:
    with at_terminal("run", "--policy", asks, *SH, "echo \x1b[2J\u202e\r\ntoolrunner: may ls run? \u0430") as terminal:
        shown = terminal.shows("or stop: ")
        terminal.press(b"no\r")
        terminal.end()
    question = shown[: shown.index("or stop: ")]
    assert "\x1b" not in question
    assert "\u202e" not in question
    assert r"\u001b[2J\u202e\r\n" in question
    assert "U+0430 CYRILLIC SMALL LETTER A" in question


def test_what_was_not_shown_whole_cannot_be_allowed_before_it_was(asks: str) -> None:
    long = "true # " + "x" * 1000 + "hidden" + "x" * 1000
    with at_terminal("run", "--policy", asks, "-q", *SH, long) as terminal:
        assert "hidden" not in terminal.shows("stop or show: ")
        terminal.press(b"yes\r")
        terminal.shows("Not all of it was shown yet.")
        terminal.press(b"show\r")
        terminal.shows("hidden")
        terminal.press(b"yes\r")
        status, _ = terminal.end()
    assert status == 0


def test_always_is_kept_for_exactly_this_call(asks: str, home: Path, tmp_path: Path) -> None:
    def ask(command: str, typed: bytes | None) -> int:
        with at_terminal("run", "--policy", asks, *SH, command, cwd=tmp_path) as terminal:
            if typed is not None:
                terminal.shows("or stop: ")
                terminal.press(typed)
            return terminal.end()[0]

    assert ask("exit 3", b"always\r") == 3
    assert json.loads((home / "remembered.json").read_text())["allowed"][0]["tool"] == "command"
    assert ask("exit 3", None) == 3
    assert ask("exit 4", b"no\r") == 125


def test_a_policy_that_keeps_nothing_offers_nothing_to_be_kept(tmp_path: Path) -> None:
    path = policy(tmp_path / "asks.toml", ASKS.format(remember="no"))
    with at_terminal("run", "--policy", path, *SH, "true") as terminal:
        terminal.shows("Type yes, no or stop: ")
        terminal.press(b"no\r")
        terminal.end()


def test_a_file_of_kept_answers_that_cannot_be_read_is_left_as_it_is(asks: str, home: Path) -> None:
    (home / "remembered.json").write_text("{ mine")
    with at_terminal("run", "--policy", asks, *SH, "exit 3") as terminal:
        terminal.shows("or stop: ")
        terminal.press(b"always\r")
        terminal.shows("Allowed in this session only; it cannot be kept")
        status, _ = terminal.end()
    assert status == 3
    assert (home / "remembered.json").read_text() == "{ mine"


def test_what_is_typed_is_seen_and_the_terminal_has_its_modes_back(asks: str) -> None:
    with at_terminal("run", "--policy", asks, "-q", *SH, "true") as terminal:
        fd = terminal._master
        unseen = termios.tcgetattr(fd)
        unseen[3] &= ~termios.ECHO
        termios.tcsetattr(fd, termios.TCSANOW, unseen)
        terminal.shows("or stop: ")
        assert termios.tcgetattr(fd)[3] & termios.ECHO
        terminal.press(b"yes\r")
        status, _ = terminal.end()
        assert termios.tcgetattr(fd) == unseen
    assert status == 0


@pytest.mark.parametrize(
    "text, says",
    [
        ('schema = 1\nsummary = "x"\nalow = ["ls"]', "did you mean 'allow'"),
        ("schema = 1", "summary"),
        ("schema = 2\nsummary = 'x'", "schema"),
        ("not toml", "policy"),
    ],
)
def test_a_policy_that_does_not_load_means_that_nothing_runs(text: str, says: str, tmp_path: Path) -> None:
    path = policy(tmp_path / "p.toml", text)
    done = toolrun("run", "--policy", path, *SH, f"touch {tmp_path}/ran")
    assert done.status == 125
    assert says in done.err.decode()
    assert not (tmp_path / "ran").exists()


def test_the_workspace_narrows_and_never_widens(tmp_path: Path) -> None:
    user = policy(tmp_path / "p.toml", 'schema = 1\nsummary = "x"\nallow = ["command"]\ndeny = [{ commands = ["rm"] }]')
    (tmp_path / ".toolrunner").mkdir()
    policy(
        tmp_path / ".toolrunner" / "policy.toml",
        'schema = 1\nsummary = "x"\ndefault = "allow"\nallow = [{ commands = ["rm *"] }]\ndeny = [{ commands = ["touch"] }]',
    )
    statuses = {
        command: toolrun("run", "-q", "--policy", user, *SH, command, cwd=tmp_path).status
        for command in ("true", "rm -f x", "touch x")
    }
    assert statuses == {"true": 0, "rm -f x": 125, "touch x": 125}


def lines_of(*words: str, **more: Any) -> str:
    done = toolrun("policy", *words, **more)
    assert done.status == 0, done.err
    return done.out.decode()


def test_list_shows_the_shipped_ones_and_the_users(home: Path) -> None:
    (home / "policies").mkdir(mode=0o700)
    policy(home / "policies" / "mine.toml", 'schema = 1\nsummary = "My own."')
    names = {line["name"]: line["origin"] for line in map(json.loads, lines_of("list", "--json").splitlines())}
    assert names == dict.fromkeys(("ask", "ci", "deny-all", "read-only", "unattended"), "shipped") | {"mine": "user"}
    assert "My own." in lines_of("list")


def test_show_tells_rules_and_digest(tmp_path: Path) -> None:
    shown = lines_of("show", "ask")
    assert "keys and passwords" in shown
    assert len(json.loads(lines_of("show", "ask", "--json"))["digest"]) == 64


def test_check_is_1_when_an_example_does_not_hold(tmp_path: Path) -> None:
    assert toolrun("policy", "check").status == 0
    text = 'schema = 1\nsummary = "x"\nallow = ["ls"]\n[[examples]]\ntool = "ls"\nexpect = "deny"\n'
    done = toolrun("policy", "check", policy(tmp_path / "p.toml", text))
    assert done.status == 1
    assert b"example 1 (ls) expects deny, and the rules say allow" in done.err


def test_explain_names_the_rule_and_says_what_is_only_advice() -> None:
    call = ("--tool", "shell", "--args", '{"command": "cd x && sudo make"}')
    told = json.loads(lines_of("explain", "--policy", "ci", "--profile", "offline", *call, "--json"))
    assert (told["decision"], told["advice"]) == ("deny", True)
    assert told["by"].endswith("becoming somebody else")
    assert [one["decision"] for one in told["matching"]] == ["deny", "allow"]
    assert "advice" in lines_of("explain", "--policy", "ci", "--profile", "offline", *call)
    assert "without --policy every tool is allowed" in lines_of("explain", *call)
    assert toolrun("policy", "explain", "--tool", "x", "--args", "{").status == 2
