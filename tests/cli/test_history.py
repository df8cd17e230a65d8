"""`toolrunner history`: what a provider would refuse is named, what is printed is mended, and the file is left as it is."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli.program import toolrun
from history.samples import WHOLE, drop

from toolrunner.wire import Provider

FIELDS = {
    Provider.ANTHROPIC: "messages",
    Provider.OPENAI_CHAT: "messages",
    Provider.OPENAI_RESPONSES: "input",
    Provider.GEMINI: "contents",
    Provider.GEMINI_INTERACTIONS: "input",
}


def written(folder: Path, content: Any) -> str:
    path = folder / "history.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


@pytest.mark.parametrize("provider", Provider)
def test_a_whole_conversation_passes_as_a_list_and_in_a_request(provider: Provider, tmp_path: Path) -> None:
    for content in (WHOLE[provider](), {"model": "m", FIELDS[provider]: WHOLE[provider]()}):
        done = toolrun("history", "check", written(tmp_path, content), "--provider", provider)
        assert (done.status, done.out, done.err) == (0, b"", b"")


def test_what_would_be_refused_is_named_by_rule_and_place(tmp_path: Path) -> None:
    file = written(tmp_path, drop(2, "content", 1)(WHOLE[Provider.ANTHROPIC]()))
    done = toolrun("history", "check", file, "--provider", "anthropic")
    assert done.status == 1
    assert done.out == b"AN1  messages[1].content[3]  the call 'read' (t2) has no result right behind it\n"
    done = toolrun("history", "check", file, "--provider", "anthropic", "--json")
    assert done.status == 1
    (row,) = json.loads(done.out)
    assert (row["rule"], row["position"]) == ("AN1", "messages[1].content[3]")


def test_a_repair_prints_the_whole_request_mended_and_tells_what_it_did(tmp_path: Path) -> None:
    request = {"model": "m", "messages": drop(4)(WHOLE[Provider.OPENAI_CHAT]()), "stream": True}
    file = written(tmp_path, request)
    done = toolrun("history", "repair", file, "--provider", "openai_chat")
    assert done.status == 0
    assert b"CH1  messages[2].tool_calls[1]  answered" in done.err
    mended = json.loads(done.out)
    assert mended | {"messages": None} == request | {"messages": None}
    again = toolrun("history", "check", "-", "--provider", "openai_chat", stdin=done.out)
    assert (again.status, again.out) == (0, b"")
    assert json.loads(Path(file).read_text()) == request
    one_line = toolrun("history", "repair", file, "--provider", "openai_chat", "--json")
    told = json.loads(one_line.out)
    assert told["history"] == mended
    assert [row["rule"] for row in told["repairs"]] == ["CH1"]
    assert one_line.err == b""


def test_what_a_repair_leaves_out_is_told(tmp_path: Path) -> None:
    orphan = {"role": "tool", "tool_call_id": "t9", "content": "precious\x1b[2J"}
    file = written(tmp_path, [*WHOLE[Provider.OPENAI_CHAT](), orphan])
    done = toolrun("history", "repair", file, "--provider", "openai_chat")
    assert b"precious" in done.err
    assert b"\x1b" not in done.err
    assert b"precious" not in done.out


@pytest.mark.parametrize(
    "content, provider, complaint",
    [
        ("{", "anthropic", "is no JSON"),
        ("7", "anthropic", "expected a list of messages"),
        ('{"input": []}', "anthropic", "under 'messages'"),
        ('{"input": "hello"}', "openai_responses", "expected a list"),
        ("[7]", "gemini", "contents[0]"),
        ("[]", "anthropics", "did you mean 'anthropic'"),
    ],
)
def test_what_is_no_conversation_is_bad_usage(content: str, provider: str, complaint: str, tmp_path: Path) -> None:
    for command in ("check", "repair"):
        done = toolrun("history", command, written(tmp_path, content), "--provider", provider)
        assert (done.status, done.out) == (2, b"")
        assert complaint in done.err.decode()
        assert done.err.count(b"\n") == 1


def test_a_file_that_is_not_there_is_bad_usage(tmp_path: Path) -> None:
    done = toolrun("history", "check", str(tmp_path / "none"), "--provider", "gemini")
    assert done.status == 2
    assert b"No such file" in done.err


def test_what_is_no_json_is_said_in_plain_words(tmp_path: Path) -> None:
    (tmp_path / "two.jsonl").write_text("[]\n[]\n")
    (tmp_path / "bytes").write_bytes(b'["\xff"]')
    for name, words in (("two.jsonl", "there is something behind its end at line 2, column 1"), ("bytes", "byte 3 is no UTF-8")):
        done = toolrun("history", "check", str(tmp_path / name), "--provider", "anthropic")
        assert (done.status, done.out) == (2, b"")
        assert words in done.err.decode()
