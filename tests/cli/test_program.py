"""The program as a whole: help, version, schema, doctor, and its pure parts."""

import json
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from cli.program import BOUND, environment, toolrun
from hypothesis import given
from hypothesis import strategies as st

from toolrunner import alone
from toolrunner.cli import exit_codes
from toolrunner.cli.printable import printable, shown
from toolrunner.cli.words import Bytes, from_json, to_json
from toolrunner.facts import Containment, Effects, EffectState, Process
from toolrunner.results import Code, Ended, Outcome, ToolResult, schema


def test_without_a_command_it_says_what_there_is() -> None:
    done = toolrun()
    assert done.status == 0
    assert done.out == toolrun("--help").out
    for command in ("run", "batch", "schema", "doctor"):
        assert f"\n  {command} " in done.out.decode()
        help_text = toolrun(command, "--help")
        assert help_text.status == 0
        assert help_text.out.startswith(b"Usage: toolrunner " + command.encode())
    assert b"toolrunner run --timeout 10 -- make test" in toolrun("run", "-h").out


@pytest.mark.parametrize("group", ["journal", "history", "policy"])
def test_a_group_of_commands_named_alone_prints_its_help(group: str) -> None:
    done = toolrun(group)
    assert (done.status, done.err) == (0, b"")
    assert done.out == toolrun(group, "--help").out


def test_a_command_that_does_not_exist_is_one_line() -> None:
    done = toolrun("rum")
    assert done.status == 2
    assert done.err.count(b"\n") == 1
    assert b"rum" in done.err


def test_the_version_is_the_installed_one() -> None:
    done = toolrun("--version")
    assert done.status == 0
    assert done.out.startswith(b"toolrunner ")


def test_schema_prints_what_the_library_says() -> None:
    assert json.loads(toolrun("schema").out) == schema()


def test_a_reader_that_leaves_gets_no_traceback() -> None:
    script = f"{sys.executable} -m toolrunner schema | head -c 1"
    done = subprocess.run(["sh", "-c", script], capture_output=True, env=environment(), timeout=BOUND, check=True)
    assert done.stdout == b"{"
    assert done.stderr == b""


def test_doctor_says_which_promises_hold() -> None:
    done = toolrun("doctor", "--json")
    assert done.status == 0
    assert done.result["healthy"]
    assert done.result["containment"] == "keeper"
    assert {promise["name"]: promise["holds"] for promise in done.result["promises"]} == dict.fromkeys(
        ("kill_tree", "host_death", "time_limits", "room", "import_name"), True
    )
    assert b"kill_tree" in toolrun("doctor").out


def test_doctor_gives_a_reason_and_a_fix_for_what_does_not_hold(tmp_path: Path) -> None:
    (tmp_path / "toolrunner-9.9.dist-info").mkdir()
    (tmp_path / "toolrunner-9.9.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: toolrunner\nVersion: 9.9\n")
    env = environment()
    env["PYTHONPATH"] += f":{tmp_path}"
    script = f"ulimit -n 64; exec {sys.executable} -m toolrunner doctor --json"
    done = subprocess.run(["sh", "-c", script], capture_output=True, env=env, timeout=BOUND, check=False)
    assert done.returncode == 1
    promises = {promise["name"]: promise for promise in json.loads(done.stdout)["promises"]}
    assert [name for name, promise in promises.items() if not promise["holds"]] == ["room", "import_name"]
    assert promises["room"]["fix"] == "raise the limit: ulimit -n 1024"
    assert "toolrunner 9.9" in promises["import_name"]["reason"]
    for promise in promises.values():
        assert bool(promise["reason"]) == bool(promise["fix"]) == (not promise["holds"])


# Pure parts.


@given(st.text(alphabet=st.characters()))
def test_nothing_that_is_printed_can_act_on_a_terminal(text: str) -> None:
    safe = printable(text)
    for character in safe:
        assert unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    safe.encode()
    assert shown(text).plain == safe


@pytest.mark.parametrize(
    "text, safe",
    [
        ("plain ö 漢 [bold]x[/bold]", "plain ö 漢 [bold]x[/bold]"),
        ("a\nb\tc\x7f\x9b", r"a\nb\tc\x7f\x9b"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\u202e\u2066\u200b\ufeff\U000e0041", r"\u202e\u2066\u200b\ufeff\U000e0041"),
        ("\udcff\ud800", r"\xff\ud800"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, safe: str) -> None:
    assert printable(text) == safe


def test_a_long_text_keeps_its_ends() -> None:
    short = printable("a" * 500 + "z" * 500, limit=40)
    assert len(short) <= 40
    assert short.startswith("aaa")
    assert short.endswith("zzz")


@given(st.binary())
def test_words_survive_their_record(word: bytes) -> None:
    text = word.decode("utf-8", "surrogateescape")
    said = to_json(text)
    json.dumps(said).encode()
    read = from_json(Bytes(said["base64"]) if isinstance(said, dict) else said)
    assert read.encode("utf-8", "surrogateescape") == word


def test_a_lost_command_is_neither_refused_nor_a_status_of_its_own() -> None:
    lost = ToolResult(
        run_id="r",
        name="command",
        outcome=Outcome.FAILED,
        code=Code.KEEPER_LOST,
        started=True,
        ended=Ended.LOST,
        effects=Effects(EffectState.UNKNOWN),
        process=Process(pid=1, containment=Containment.BEST_EFFORT),
    )
    assert exit_codes.of_result(lost, None) == exit_codes.LOST == 70


# The other project with our import name.


@pytest.mark.parametrize("name", ["toolrunner-1.2.dist-info", "Toolrunner-0.1.egg-info", "toolrunner.egg-info"])
def test_importing_fails_clearly_beside_the_other_project(name: str, tmp_path: Path) -> None:
    ours = Path(alone.__file__).parent
    (tmp_path / "toolrunner").symlink_to(ours)
    (tmp_path / "agent_toolrunner-0.1.0.dist-info").mkdir()
    words = [sys.executable, "-c", "import toolrunner"]
    env = environment(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
    subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, timeout=BOUND, check=True)
    (tmp_path / name).mkdir()
    done = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, timeout=BOUND, check=False)
    assert done.returncode == 1
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith(f"ImportError: {name} in {tmp_path} belongs to another project")
    assert "pip uninstall toolrunner agent-toolrunner" in last


def test_other_names_are_no_clash() -> None:
    names = (
        "toolrunner",
        "toolrunner-plugin.py",
        "agent_toolrunner-1.dist-info",
        "toolrunner_extras-1.dist-info",
        "toolrunner.py",
    )
    assert alone.other_distribution(names) is None
