"""What the tools of export say when they cannot go on."""

from __future__ import annotations


class ExportError(Exception):
    """The message is one line: what is wrong, where, and what to do."""


def one_line(error: BaseException) -> str:
    """An error's text on one line."""
    return " ".join(str(error).split()) or type(error).__name__
