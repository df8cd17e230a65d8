"""Privacy: what of a record is written, and what stands in the place of the rest.

State: the secrets of calls that have not settled, kept so that they are not written by way of an output or an error; changed in
the writer's thread alone. Arguments that a tool calls secret become keyed digests, the host's `redact` has a look at every
foreign text, and long texts are cut. Each leaves a legal record, of which the journal knows that it was altered.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

from toolrunner.journal.codec import to_json
from toolrunner.journal.secrets import digest_of, has_secrets, mask
from toolrunner.journal.texts import change_foreign, change_leaves
from toolrunner.records import CallSettled, Record

OUTPUT_LIMIT = 65_536
"""Characters of one text of an output that are written. The whole is in the result, and in the spill file where there is one."""

SHORT_SECRET = 4
"""Secrets of fewer characters are not looked for in texts: they would be found everywhere."""

Redact = Callable[[str], str]
SchemaOf = Callable[[str], Mapping[str, Any] | None]
"""The JSON schema of a tool's arguments by the tool's name, None for a tool that nobody knows."""

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
        self._schemas: dict[str, Mapping[str, Any] | None] = {}
        self._secrets: dict[str, _Known] = {}
        """Of each unsettled call of a tool with secrets."""
        self.schema_of: SchemaOf = lambda _: None
        """Set by the runner, which knows the tools, before its first call."""

    def body(self, record: Record) -> tuple[str, bool]:
        """The text that is written, and whether it was altered."""
        body = to_json(record)
        schema = self._schema(record)
        if schema is None and self._redact is None and len(body) <= self._limit:
            return body, False
        content = json.loads(body)
        written = content if schema is None else self._without_secrets(record.run_id, content, schema)
        written = change_foreign(written, self._changed) if self._redact is not None else written
        written = _cut(written, self._limit) if len(body) > self._limit else written
        if isinstance(record, CallSettled):
            self._secrets.pop(record.run_id, None)
        if written == content:
            return body, False
        return json.dumps(written, separators=(",", ":")), True

    def masked(self, name: str, arguments: Any) -> Any:
        """Arguments as they are written: for whoever compares new ones with those in the journal."""
        schema = self._secret_schema(name)
        if schema is not None:
            arguments = self._mask(arguments, schema)
        return change_leaves("arguments", arguments, self._changed) if self._redact is not None else arguments

    def _schema(self, record: Record) -> Mapping[str, Any] | None:
        """The schema of the call's tool, if that has secrets."""
        name = getattr(record, "name", None) or getattr(getattr(record, "result", None), "name", None)
        if name is None:
            known = self._secrets.get(record.run_id)
            name = known.tool if known is not None else None
        return self._secret_schema(name) if name is not None else None

    def _secret_schema(self, name: str) -> Mapping[str, Any] | None:
        if name not in self._schemas:
            schema = self.schema_of(name)
            if schema is None:
                return None  # it may be registered later
            self._schemas[name] = schema if has_secrets(schema) else None
        return self._schemas[name]

    def _mask(self, arguments: Any, schema: Mapping[str, Any], into: set[str] | None = None) -> Any:
        def found(secret: Any) -> str:
            if into is not None:
                change_leaves("arguments", secret, lambda _, leaf: into.add(str(leaf)))
            return digest_of(self._key, secret)

        # Text that could not be read as an object has its secrets somewhere, so all of it is one.
        return found(arguments) if isinstance(arguments, str) else mask(arguments, schema, found)

    def _without_secrets(self, run_id: str, content: dict[str, Any], schema: Mapping[str, Any]) -> Any:
        known = self._secrets.get(run_id, _Known(content.get("name")))
        found, is_opaque = set(known.secrets), known.is_opaque or isinstance(content.get("arguments"), str)
        content = dict(content)
        if isinstance(content.get("result"), dict):
            content["result"] = dict(content["result"])
        for holder in (content, content.get("result")):
            if holder is not None and holder.get("arguments") is not None:
                holder["arguments"] = self._mask(holder["arguments"], schema, found)
        self._secrets[run_id] = _Known(known.tool, frozenset(found), is_opaque)
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
