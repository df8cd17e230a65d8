"""Texts as facts: what the outside says, in a form that can be written as UTF-8 and read again."""


def well_formed(text: str) -> str:
    """The text as UTF-8 can say it: what it cannot (names of files that are no UTF-8, mostly) is written as escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
