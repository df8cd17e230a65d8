"""What is not written: secrets, what the host's `redact` takes out, and what is too long. What is, stays a legal record."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from journal.stage import kept
from pydantic import BaseModel, SecretStr
from results.legal import result

from toolrunner import Runner, SqliteJournal, ToolContext, tool
from toolrunner.facts import EffectRecord, EffectStage, Process, StillRunning, StillRunningKind, Text
from toolrunner.facts.processes import Containment
from toolrunner.journal import JournalReader, check, export
from toolrunner.journal.secrets import has_secrets, mask
from toolrunner.pipeline.idempotency import arguments_digest
from toolrunner.records import CallRecorded, CallSettled, EffectPlanned, JobStarted

SECRET = "correct-horse"


class Account(BaseModel):
    user: str
    password: SecretStr


@tool
async def log_in(ctx: ToolContext[None], token: SecretStr, accounts: list[Account], where: str = "here") -> str:
    """Tell everything that should not be told."""
    async with ctx.effect("log in", f"{where}?token={token.get_secret_value()}") as effect:
        effect.receipt = accounts[0].password.get_secret_value()
    return f"{token.get_secret_value()} for {accounts[0].user}"


ARGUMENTS: dict[str, Any] = {"token": SECRET, "accounts": [{"user": "ann", "password": "battery-staple"}]}


def bytes_of(folder: Path) -> bytes:
    return b"".join(one.read_bytes() for one in folder.iterdir())


@pytest.mark.anyio
async def test_a_secret_is_nowhere_in_the_file_and_equal_ones_can_be_told(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    with anyio.fail_after(20):
        async with Runner([log_in], journal=journal) as runner:
            for token in (SECRET, SECRET, "other-horse"):
                result = await runner.run("log_in", {**ARGUMENTS, "token": token})
                assert result.value == f"{token} for ann", "only the journal does not tell"
    raw = bytes_of(tmp_path)
    assert SECRET.encode() not in raw
    assert b"battery-staple" not in raw
    with JournalReader(tmp_path) as reader:
        given = [entry.record.arguments for entry in reader.of_type("call/recorded") if isinstance(entry.record, CallRecorded)]
        assert all(entry.altered for entry in reader.of_type("call/recorded", "call/settled", "call/dispatched"))
    tokens = [one["token"] for one in given if isinstance(one, dict)]
    assert tokens[0] == tokens[1] != tokens[2]
    assert tokens[0].startswith("[secret ")  # type: ignore[union-attr]
    assert given[0]["accounts"][0]["user"] == "ann"  # type: ignore[index,call-overload]
    assert check(tmp_path).problems == ()


def test_arguments_can_be_compared_with_those_that_were_written(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    journal.know_tool("log_in", log_in.parameters)
    journal.append(CallRecorded(run_id="r", name="log_in", arguments=ARGUMENTS))
    masked = journal.masked("log_in", ARGUMENTS)
    journal.close()
    assert kept(tmp_path)[0].arguments == masked
    other = SqliteJournal.open(tmp_path)
    other.know_tool("log_in", log_in.parameters)
    assert other.masked("log_in", ARGUMENTS) == masked, "the key is the journal's, not the opening's"
    other.close()


def test_arguments_that_could_not_be_read_are_one_secret(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    journal.know_tool("log_in", log_in.parameters)
    journal.append(CallRecorded(run_id="r", name="log_in", arguments=f'{{"token": "{SECRET}', problem=f"no JSON: {SECRET}"))
    journal.close()
    assert SECRET.encode() not in bytes_of(tmp_path)


@pytest.mark.parametrize(
    "schema, value, masked",
    [
        ({"properties": {"a": {"format": "password"}}}, {"a": "x", "b": "y"}, {"a": "*", "b": "y"}),
        ({"properties": {"a": {"anyOf": [{"format": "password"}, {"type": "null"}]}}}, {"a": "x"}, {"a": "*"}),
        ({"properties": {"a": {"anyOf": [{"format": "password"}, {"type": "null"}]}}}, {"a": None}, {"a": None}),
        ({"additionalProperties": {"format": "password"}}, {"a": "x"}, {"a": "*"}),
        ({"prefixItems": [{}, {"format": "password"}], "items": {}}, ["x", "y", "z"], ["x", "*", "z"]),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"items": {"format": "password"}}}}, ["x"], ["*"]),
        ({"$ref": "#", "type": "object"}, {"a": "x"}, {"a": "x"}),
        ({"properties": {"a": True}}, {"a": "x"}, {"a": "x"}),
    ],
)
def test_the_schema_says_what_is_secret(schema: dict[str, Any], value: Any, masked: Any) -> None:
    assert mask(value, schema, lambda _: "*") == masked
    assert has_secrets(schema) == ("password" in str(schema))


def test_redact_sees_every_foreign_text_and_nothing_else(tmp_path: Path) -> None:
    seen: list[str] = []

    def redact(text: str) -> str:
        seen.append(text)
        return text.replace("ann", "[name]")

    journal = SqliteJournal.open(tmp_path / "journal.db", redact=redact)
    one = result(run_id="ann-1", name="ann", content=(Text("hello ann"),), arguments={"to": ["ann", 1]})
    journal.append(CallRecorded(run_id="ann-1", name="ann", arguments={"to": "ann"}), CallSettled(run_id="ann-1", result=one))
    journal.close()
    first, second = kept(tmp_path)
    assert (first.run_id, first.name, first.arguments) == ("ann-1", "ann", {"to": "[name]"})
    assert second.result.content == (Text("hello [name]"),)
    assert second.result.arguments == {"to": ["[name]", 1]}
    assert "succeeded" not in seen


def test_a_redact_that_raises_lets_nothing_through(tmp_path: Path) -> None:
    def redact(text: str) -> str:
        raise RuntimeError(text)

    journal = SqliteJournal.open(tmp_path / "journal.db", redact=redact)
    journal.append(CallRecorded(run_id="r", name="write", arguments={"to": SECRET}))
    journal.close()
    assert kept(tmp_path)[0].arguments == {"to": "[not written: redact raised RuntimeError]"}


def test_long_outputs_are_cut_and_say_so(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db", output_limit=1_000)
    long = "a" * 5_000 + "b" * 5_000
    process = Process(pid=1, containment=Containment.KEEPER, exit_code=0, stdout=long, spill=("/spill/stdout-1",))
    one = result(content=(Text(long),), value=list(range(10_000)), process=process, arguments={"text": long})
    journal.append(CallSettled(run_id="r", result=one))
    journal.close()
    with JournalReader(tmp_path) as reader:
        (entry,) = reader.since()
    assert entry.altered
    assert isinstance(entry.record, CallSettled)
    written = entry.record.result
    assert written.process is not None
    assert written.process.stdout.startswith("a" * 500 + "\n[9000 characters are not in the journal; sha256 of the whole: ")
    assert written.process.stdout.endswith("b" * 500)
    assert written.process.spill == ("/spill/stdout-1",)
    assert "is not in the journal" in str(written.value)
    assert written.arguments == {"text": long}, "arguments are what was done; they are whole"


def test_an_export_is_blanked_unless_raw(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    journal.append(CallRecorded(run_id="r", name="write", arguments={"to": SECRET, "pin": 1234, "yes": True, "lone": None}))
    journal.append(CallSettled(run_id="r", result=result(run_id="r", content=(Text(SECRET),))))
    journal.close()
    blanked = [json.loads(line) for line in export(tmp_path)]
    assert [line["type"] for line in blanked] == ["journal/opened", "call/recorded", "call/settled"]
    assert blanked[1]["arguments"] == {"to": "[13 characters]", "pin": "[a number]", "yes": True, "lone": None}
    assert SECRET not in "".join(export(tmp_path))
    assert blanked[1]["seq"] == 1
    raw = [json.loads(line) for line in export(tmp_path, raw=True)]
    assert raw[1]["arguments"]["to"] == SECRET
    assert "secret" not in raw[0], "the key of the digests stays in the file"


def tool_of(secret: bool) -> Any:
    """A tool `log_in` that takes a token, which is a secret or plain text."""

    async def log_in(token: Any) -> None:
        """Take a token."""

    log_in.__annotations__["token"] = SecretStr if secret else str
    return tool(log_in)


@pytest.mark.anyio
async def test_a_tool_that_is_registered_later_has_secrets_too(tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with Runner(journal=SqliteJournal.open(tmp_path / "journal.db")) as runner:
            runner.register(tool_of(secret=True))
            assert (await runner.run("log_in", {"token": SECRET})).started
            runner.replace(tool_of(secret=False))
            assert (await runner.run("log_in", {"token": "said before the replacement"})).started
            runner.replace(tool_of(secret=True))
            assert (await runner.run("log_in", {"token": "other-horse"})).started
    raw = bytes_of(tmp_path)
    assert SECRET.encode() not in raw
    assert b"other-horse" not in raw


@pytest.mark.anyio
async def test_secrets_stay_masked_once_when_a_session_is_opened_again(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    journal.know_tool("log_in", log_in.parameters)
    journal.append(CallRecorded(run_id="r", name="log_in", arguments=ARGUMENTS))
    journal.close()
    again = Runner(journal=SqliteJournal.open(tmp_path))
    again.register(log_in)
    with anyio.fail_after(60):
        async with again:
            pass
    recorded, settled = kept(tmp_path)
    assert settled.result.arguments == recorded.arguments
    assert SECRET not in str(recorded)


def test_a_jobs_command_line_tells_no_secret_of_its_call(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    journal.know_tool("log_in", log_in.parameters)
    journal.append(
        CallRecorded(run_id="r", name="log_in", arguments=ARGUMENTS),
        JobStarted(run_id="r", job_id="job-1", name=f"curl -u ann:{SECRET}"),
    )
    journal.close()
    assert kept(tmp_path)[1].name == "curl -u ann:[secret]"
    assert "curl" not in "".join(export(tmp_path))


def test_a_body_that_runs_on_after_its_call_was_settled_tells_no_secret(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.db")
    journal.know_tool("log_in", log_in.parameters)
    left = (StillRunning("log_in", StillRunningKind.BODY),)
    journal.append(
        CallRecorded(run_id="r", name="log_in", arguments=ARGUMENTS),
        CallSettled(run_id="r", result=result(run_id="r", name="log_in", still_running=left)),
        EffectPlanned(run_id="r", effect=EffectRecord("r/1", "log in", f"here?token={SECRET}", EffectStage.PLANNED)),
    )
    journal.close()
    assert kept(tmp_path)[2].effect.target == "here?token=[secret]"


@pytest.mark.anyio
async def test_no_digest_lets_a_secret_be_found_by_trying_and_its_key_holds_over_a_restart(tmp_path: Path) -> None:
    @tool(dedupe_by_arguments=True)
    async def unlock(pin: SecretStr) -> str:
        """Unlock."""
        return "unlocked"

    plain = arguments_digest("unlock", {"pin": "1234"})
    with anyio.fail_after(60):
        results = []
        for pin in ("1234", "1234", "9999"):
            async with Runner([unlock], journal=SqliteJournal.open(tmp_path / "journal.db")) as runner:
                results.append(await runner.run("unlock", {"pin": pin}))
    assert [one.replayed for one in results] == [False, True, False]
    assert plain.encode() not in bytes_of(tmp_path)
