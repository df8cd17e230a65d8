"""Results to be sent: a plain one, and content of every kind with the words that stand for what cannot be sent."""

from typing import Any

from toolrunner.facts import Content, File, Image, Json, Text
from toolrunner.wire import WireResult

PNG = Image("aGVsbG8=", "image/png")
TIFF = Image("aGVsbG8=", "image/tiff")
PDF = File("aGVsbG8=", "application/pdf", "report.pdf")
NOTES = File("aGVsbG8=", "text/plain; charset=utf-8", "notes.txt")
ZIP = File("aGVsbG8=", "application/zip", "all.zip")
MIXED: tuple[Content, ...] = (Text("done"), PNG, Json({"n": 1}), PDF, NOTES, ZIP, TIFF)

NOTES_TEXT = '[file "notes.txt"]\nhello'
ZIP_TEXT = "[file (application/zip): left out, not accepted here]"
TIFF_TEXT = "[image (image/tiff): left out, not accepted here]"


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def answer(call_id: str | None = "call_1", content: tuple[Content, ...] = (Text("done"),), **fields: Any) -> WireResult:
    return WireResult(call_id, "read", content=content, **fields)
