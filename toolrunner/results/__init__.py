"""ToolResult: what is known about one call once it is over, and the texts and JSON made from it.

`words` = the closed vocabularies, `model` = the result itself, `rows` = which combinations are legal, `texts` = what a model
reads (`content` bounds it), `summary` = what people read, `phrases` = what both say, `answers` = retry and the other questions,
`batch` = the results of a batch, `forms` = the public JSON form.
"""

from toolrunner.results.answers import retry_answer
from toolrunner.results.batch import BatchResult
from toolrunner.results.content import plain_text
from toolrunner.results.forms import SCHEMA_VERSION, result_from_json, result_to_dict, result_to_json, schema
from toolrunner.results.model import CallFacts, Error, Sandbox
from toolrunner.results.result import ToolResult
from toolrunner.results.rows import ROWS, Row, illegal
from toolrunner.results.texts import effects_text
from toolrunner.results.words import Code, Ended, ErrorKind, Outcome, Retry, Transaction

__all__ = [
    "ROWS",
    "SCHEMA_VERSION",
    "BatchResult",
    "CallFacts",
    "Code",
    "Ended",
    "Error",
    "ErrorKind",
    "Outcome",
    "Retry",
    "Row",
    "Sandbox",
    "ToolResult",
    "Transaction",
    "effects_text",
    "illegal",
    "plain_text",
    "result_from_json",
    "result_to_dict",
    "result_to_json",
    "retry_answer",
    "schema",
]
