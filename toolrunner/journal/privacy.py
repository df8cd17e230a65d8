"""Privacy: what of a record is written, and what stands in the place of the rest.

State: what tools call secret, told by the runner before a call of theirs can be recorded, and never forgotten; and the secrets of
calls that have not settled or left something running, kept so that they are not written by way of an output or an error, changed
in the writer's thread alone. Arguments that a tool calls secret become keyed digests, the host's `redact` has a look at every
foreign text, and long texts are cut. Each leaves a legal record, of which the journal knows that it was altered.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

from toolrunner.journal.codec import to_json
from toolrunner.journal.secrets import Schema, digest_of, has_secrets, is_digest, mask, without_plain_digests
from toolrunner.journal.texts import change_foreign, change_leaves
from toolrunner.records import CallAsked, CallDecided, CallSettled, Record

OUTPUT_LIMIT = 65_536
"""Characters of one text of an output that are written. The whole is in the result, and in the spill file where there is one."""

SHORT_SECRET = 4
"""Secrets of fewer characters are not looked for in texts: they would be found everywhere."""

Redact = Callable[[str], str]

_OUTPUTS = frozenset({"data", "follow_up", "json", "message", "stderr", "stdout", "text", "value"})


@final
@dataclass(frozen=True, slots=True)
class _Known:
    """Of one call: its tool's name and its secrets. `is_opaque`: its arguments could not be read, so any text may tell one."""

    tool: str | None
    secrets: frozenset[str] = frozenset()
    is_opaque: bool = False


@final
class Privacy:
    """One per journal. `body` is called in the writer's thread, for each record in order."""

    def __init__(self, key: bytes, redact: Redact | None, output_limit: int) -> None:
        self._key = key
        self._redact = redact
        self._limit = output_limit
        self._schemas: dict[str, tuple[Schema, ...]] = {}
        """Of tools with secrets, by name. All that ever had it: a record may be written after its tool was replaced."""
        self._secrets: dict[str, _Known] = {}
        """Of each call of a tool with secrets that has not settled, or left something running, which may still tell of itself."""

    def know(self, name: str, schema: Schema) -> None:
        """Take the JSON schema of a tool's arguments. On the runner's loop, before a call of the tool is recorded."""
        known = self._schemas.get(name, ())
        if schema not in known and has_secrets(schema):
            self._schemas[name] = (*known, schema)

    def body(self, record: Record) -> tuple[str, bool]:
        """The text that is written, and whether it was altered."""
        body = to_json(record)
        schemas = self._schemas_of(record) if self._schemas else ()
        if not schemas and self._redact is None and len(body) <= self._limit:
            return body, False
        content = json.loads(body)
        written = self._without_secrets(record, content, schemas) if schemas else content
        written = change_foreign(written, self._changed) if self._redact is not None else written
        written = _cut(written, self._limit) if len(body) > self._limit else written
        if isinstance(record, CallSettled) and not record.result.still_running:
            self._secrets.pop(record.run_id, None)
        if written == content:
            return body, False
        return json.dumps(written, separators=(",", ":")), True

    def masked(self, name: str, arguments: Any) -> Any:
        """Arguments as they are written: for whoever compares new ones with those in the journal."""
        arguments = self._mask(arguments, self._schemas.get(name, ()))
        return change_leaves("arguments", arguments, self._changed) if self._redact is not None else arguments

    def _schemas_of(self, record: Record) -> Sequence[Schema]:
        """Those of the call's tool, if that has secrets. What its jobs are called is not its name."""
        known = self._secrets.get(record.run_id)
        name = known.tool if known is not None else None
        if name is None and record.type.startswith("call/"):
            name = _named(record)
        return self._schemas.get(name, ()) if name is not None else ()

    def _mask(self, arguments: Any, schemas: Sequence[Schema], into: set[str] | None = None) -> Any:
        def found(secret: Any) -> Any:
            if is_digest(secret):  # recovery writes again what it has read
                return secret
            if into is not None:
                change_leaves("arguments", secret, lambda _, leaf: into.add(str(leaf)))
            return digest_of(self._key, secret)

        for schema in schemas:
            # Text that could not be read as an object has its secrets somewhere, so all of it is one.
            arguments = found(arguments) if isinstance(arguments, str) else mask(arguments, schema, found)
        return arguments

    def _without_secrets(self, record: Record, content: dict[str, Any], schemas: Sequence[Schema]) -> Any:
        known = self._secrets.get(record.run_id) or _Known(_named(record))
        found, is_opaque = set(known.secrets), known.is_opaque or isinstance(content.get("arguments"), str)
        content = dict(content)
        if isinstance(content.get("result"), dict):
            content["result"] = dict(content["result"])
        for holder in (content, content.get("result")):
            if holder is not None and holder.get("arguments") is not None:
                holder["arguments"] = self._mask(holder["arguments"], schemas, found)
        self._secrets[record.run_id] = _Known(known.tool, frozenset(found), is_opaque)
        if isinstance(record, CallAsked | CallDecided):
            content |= {name: without_plain_digests(self._key, content[name]) for name in ("digest", "text") if name in content}
        secrets = sorted((one for one in found if len(one) >= SHORT_SECRET), key=len, reverse=True)

        def change(field: str, text: Any) -> Any:
            if is_opaque and field != "arguments":
                return "[not written: it may tell a secret]"
            for one in secrets:
                text = text.replace(one, "[secret]") if isinstance(text, str) else text
            return text

        return change_foreign(content, change)

    def _changed(self, _: str, text: Any) -> Any:
        assert self._redact is not None
        if not isinstance(text, str):
            return text
        try:
            return str(self._redact(text))
        except Exception as error:  # noqa: BLE001  the host's own; a text that nobody could look at is not written
            return f"[not written: redact raised {type(error).__name__}]"


def _named(record: Record) -> str | None:
    """The tool's name, where the record of a call has it."""
    name = getattr(record, "name", None)
    return name if isinstance(name, str) else getattr(getattr(record, "result", None), "name", None)


def _cut(content: Any, limit: int) -> Any:
    def change(field: str, text: Any) -> Any:
        if field not in _OUTPUTS or not isinstance(text, str) or len(text) <= limit:
            return text
        half = limit // 2
        digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
        left_out = f"\n[{len(text) - 2 * half} characters are not in the journal; sha256 of the whole: {digest}]\n"
        return text[:half] + left_out + text[len(text) - half :]

    cut = change_foreign(content, change)
    result = cut.get("result")
    for holder in (cut, result):
        if isinstance(holder, dict) and len(text := json.dumps(holder.get("value"))) > 2 * limit:
            digest = hashlib.sha256(text.encode()).hexdigest()
            holder["value"] = f"[a value of {len(text)} characters is not in the journal; sha256 of its JSON: {digest}]"
    return cut
