"""Comments and docstrings without their marks."""

from __future__ import annotations

import inspect
import re

_OPEN = re.compile(r"^\s*(?:/\*[*!]*|\(\*+|\{-\s*\|?|--\[=*\[|<!--|<#|=begin\b)")
_CLOSE = re.compile(r"\s*(?:\*+/|\*\)|-\}|\]=*\]|-->|#>|^=end\b)\s*$")
_LINE_MARK = re.compile(r"^\s*(?://+!?<?|#+!?|--+\s*[|^]?|;+|%+|\*+(?!/)|'''?(?=\s))[ \t]?")
_RULE = re.compile(r"^\W*$")
_STRING = re.compile(r"^[a-zA-Z]*(\"\"\"|'''|\"|')(.*?)\1?$", re.DOTALL)


def clean_comment(text: str) -> str:
    """What a comment, or several comments in a row, say. Lines of nothing but marks become blank."""
    lines = []
    for line in text.split("\n"):
        opened = _OPEN.sub("", line)
        closed = _CLOSE.sub("", opened)
        said = closed.strip() if opened != line else _LINE_MARK.sub("", closed).rstrip()
        lines.append("" if _RULE.match(said) else said)
    return inspect.cleandoc("\n".join(lines)).strip()


def clean_docstring(text: str) -> str:
    """What a string literal that serves as documentation says."""
    match = _STRING.match(text.strip())
    return inspect.cleandoc(match[2] if match else text).strip()
