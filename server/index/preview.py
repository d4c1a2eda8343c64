"""The line by which people know a unit that declares nothing: the rest of a file, or a piece of text."""

from __future__ import annotations

import re
from collections.abc import Sequence

_COMMENT = re.compile(r"\*|//|--|;|#(?!\s*(include|define|import|region)\b)")
"""How a line of a comment begins, in one language or another."""

_LICENCE = re.compile(r"copyright|licen[cs]e|spdx|\(c\) ?\d{4}", re.IGNORECASE)

_SILENT = re.compile(
    r"\W*$"  # brackets, marks of comments, lines drawn
    r"|#\s*(if|ifdef|ifndef|elif|else|endif|undef|pragma|nullable|!)"
    r"|<\?php$|.?use strict|.*(eslint-|frozen_string_literal|-\*-)",
    re.DOTALL,
)


def preview_line(text: str) -> str:
    """The first line that says something: no licence, no mark of a comment, nothing that is said to a tool alone. Empty
    if all lines are blank."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = (line for line in _after_licence(lines) if not _SILENT.match(line))
    return next(telling, lines[0] if lines else "")


def _after_licence(lines: Sequence[str]) -> Sequence[str]:
    """The lines behind the comment at the top, if that is a licence."""
    end = _comment_lines(lines)
    return lines[end:] if any(_LICENCE.search(line) for line in lines[:end]) else lines


def _comment_lines(lines: Sequence[str]) -> int:
    """How many lines the comment at the top has."""
    inside = False
    for number, line in enumerate(lines):
        if not (inside or line.startswith("/*") or _COMMENT.match(line)):
            return number
        inside = (inside or line.startswith("/*")) and "*/" not in line
    return len(lines)
