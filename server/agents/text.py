"""A finding -> the text that an agent reads: few words, real code, and never more than was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..search.source import current_text
from .workspace import Finding, Found

LONGEST_HEAD = 300
"""Characters of a path, a name or a signature."""
LONGEST_ERROR = 2_000
LEAST_LINES = 3
"""Fewer lines of a longer unit tell less than its signature."""


def as_text(finding: Finding, roots: Sequence[Path], budget: int) -> str:
    """An answer: for each hit its place and its code, of which all together take no more than `budget` characters.

    Paths are relative to the workspace folder if there is one, else absolute; `repository:path` for what is not here.
    """
    blocks = [f"{_where(found, roots)}\n{body}" for found, body in _bodies(finding.found, budget)]
    return "\n\n".join([*([] if blocks else [_nothing(finding)]), *blocks, *_notes(finding)])


def _where(found: Found, roots: Sequence[Path]) -> str:
    hit = found.hit
    path = hit.path if len(roots) == 1 else str(found.path)
    if found.root is None:
        path = f"{hit.repository}:{hit.path}"
    name = f"{hit.container}.{hit.name}" if hit.container else hit.name
    return f"{plain(path)}:{hit.start_line + 1}-{hit.end_line + 1}  {hit.kind} {plain(name)}"


def _bodies(found: Sequence[Found], budget: int) -> Iterator[tuple[Found, str]]:
    """Each hit's code, as far as the budget goes: one may take half of what is left, so that the best are shown whole
    and a long one leaves something to the others."""
    left = budget
    for number, each in enumerate(found, 1):
        lines = _code(each)
        shown = _fitting(lines, left if number == len(found) else max(left // 2, left // (len(found) - number + 1)))
        if len(shown) < min(len(lines), LEAST_LINES):
            shown = []
        left -= sum(len(line) + 1 for line in shown)
        yield each, _block(each, shown, len(lines) - len(shown))


def _block(found: Found, shown: Sequence[str], hidden: int) -> str:
    if not shown:
        return f"    {plain(found.hit.preview)}"
    first_hidden = found.hit.start_line + len(shown) + 1
    more = [f"… lines {first_hidden}-{found.hit.end_line + 1} are left out"] if hidden else []
    return "\n".join([f"```{found.hit.language}", *shown, "```", *more])


def _fitting(lines: Sequence[str], room: int) -> list[str]:
    """As many lines from the first on as have room, each with its end."""
    shown: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        shown.append(line)
    return shown


def _code(found: Found) -> list[str]:
    """The lines of a hit as its file has them now; none if it is gone, or nowhere here."""
    if found.root is None:
        return []
    text = current_text(found.root, found.hit.path) or ""
    return text.split("\n")[found.hit.start_line : found.hit.end_line + 1]


def _nothing(finding: Finding) -> str:
    return "nothing found" if finding.indexed else "nothing found: nothing is indexed"


def _notes(finding: Finding) -> list[str]:
    notes = [plain(problem) for problem in finding.problems]
    if finding.pending:
        notes.append(f"files that are not indexed yet: {finding.pending}; ask again later for what may be in them")
    return [f"note: {note}" for note in notes]


def plain(text: str, longest: int = LONGEST_HEAD) -> str:
    """One short line, whatever a file is called: a line break in a name must not look like another result."""
    line = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text[: longest + 1])
    return line if len(line) <= longest else f"{line[:longest]}…"
