"""Which line belongs to which unit: every line to exactly one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from .definitions import FUNCTION_LIKE, Comments, Definition

NOBODY = -1
_MIN_LAMBDA_LINES = 3
"""A function without a name of its own that is shorter, its comments included, stays in the code around it."""
_SAYS_NOTHING = re.compile(r'\W*$|\s*#\s*(?:if|ifdef|ifndef|else|elif|endif)\b|extern "C" \{$')
"""A line that nobody would look for."""


@dataclass(slots=True)
class Piece:
    """A unit in the making: a definition or, without one, a run of module-level code."""

    definition: Definition | None
    first_line: int
    last_line: int
    doc: str = ""
    members: list[str] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)


def assign_lines(definitions: Sequence[Definition], comments: Comments, lines: Sequence[str]) -> list[Piece]:
    """The pieces of a file in the order of their first lines. `lines` have no white space at their ends.

    A definition takes its lines from the one around it, which keeps the line of its own name. One that would get no
    line, or starts where a function around it has its name, is no piece: its lines stay where they are.
    """
    owners = [NOBODY] * len(lines)
    pieces: list[Piece] = []
    taken: dict[int, int] = {}
    for definition in definitions:
        around = _kept_parent(definition, taken)
        piece = _claim(definition, pieces[around] if around != NOBODY else None, around, owners, comments, lines)
        if piece:
            taken[id(definition)] = len(pieces)
            _give(owners, piece.spans, len(pieces))
            pieces.append(piece)
            if around != NOBODY:
                pieces[around].members.append(definition.name)
    _adopt_blank_lines(owners, lines)
    _add_module_code(owners, pieces, comments, lines)
    for piece in pieces:
        piece.spans = []
    for owner, first, last in _runs(owners):
        if owner != NOBODY:
            pieces[owner].spans.append((first, last))
    return sorted((piece for piece in pieces if piece.spans), key=lambda piece: piece.spans[0])


def _kept_parent(definition: Definition, taken: dict[int, int]) -> int:
    parent = definition.parent
    while parent is not None:
        if id(parent) in taken:
            return taken[id(parent)]
        parent = parent.parent
    return NOBODY


def _claim(
    definition: Definition,
    container: Piece | None,
    around: int,
    owners: list[int],
    comments: Comments,
    lines: Sequence[str],
) -> Piece | None:
    """The piece that a definition becomes, its spans the lines that it takes from `around`."""
    first, doc = comments.above(definition.first_line)
    last = definition.last_line
    if definition.bound and last - first + 1 < _MIN_LAMBDA_LINES:
        return None
    kept = NOBODY
    if container and container.definition:
        if definition.first_line == container.definition.first_line:
            first, doc = definition.first_line, ""
        kept = container.definition.selection[0]
        if definition.first_line == kept and container.definition.kind in FUNCTION_LIKE:
            return None
    while first < definition.first_line and owners[first] != around:
        first += 1
    spans = _lines_of(owners, first, last, around, kept)
    if not any(lines[line] for start, end in spans for line in range(start, end + 1)):
        return None
    return Piece(definition, first, last, definition.doc or doc, spans=spans)


def _lines_of(owners: list[int], first: int, last: int, owner: int, without: int) -> list[tuple[int, int]]:
    """The runs of lines that `owner` has from `first` to `last`, but for the line `without`."""
    spans: list[tuple[int, int]] = []
    start = NOBODY
    for line in range(first, last + 1):
        if owners[line] == owner and line != without:
            if start == NOBODY:
                start = line
        elif start != NOBODY:
            spans.append((start, line - 1))
            start = NOBODY
    if start != NOBODY:
        spans.append((start, last))
    return spans


def _give(owners: list[int], spans: Sequence[tuple[int, int]], owner: int) -> None:
    for first, last in spans:
        owners[first : last + 1] = [owner] * (last - first + 1)


def _adopt_blank_lines(owners: list[int], lines: Sequence[str]) -> None:
    """Blank lines go to the unit before them, at the top of the file to the one after."""
    top = next((number for number, line in enumerate(lines) if line), len(lines))
    owners[:top] = [owners[top]] * top if top < len(lines) else [NOBODY] * top
    for number in range(top + 1, len(lines)):
        if not lines[number]:
            owners[number] = owners[number - 1]


def _add_module_code(owners: list[int], pieces: list[Piece], comments: Comments, lines: Sequence[str]) -> None:
    """Runs of lines that nobody took become pieces. Attributes with nothing below them (`{-# INLINE send #-}` after
    the function) go to the unit before, and so does a run that says nothing (a lone `});` or `#endif`)."""
    attributes = {line for last, first in comments.skipped.items() for line in range(first, last + 1)}
    for owner, first, last in _runs(list(owners)):
        if owner != NOBODY or not any(lines[first : last + 1]):
            continue
        end = next((line for line in range(first, last + 1) if line not in attributes), last + 1)
        if first and end > first and not (end <= last and lines[end]):
            _give(owners, [(first, end - 1)], owners[first - 1])
            first = next((line for line in range(end, last + 1) if lines[line]), last + 1)
            _give(owners, [(end, first - 1)], owners[end - 1])
        if first and all(_SAYS_NOTHING.match(line) for line in lines[first : last + 1]):
            _give(owners, [(first, last)], owners[first - 1])
            continue
        _give(owners, [(first, last)], len(pieces))
        begin = next(number for number in range(first, last + 1) if lines[number])
        end = next(number for number in range(last, first - 1, -1) if lines[number])
        pieces.append(Piece(None, begin, end))


def _runs(owners: Sequence[int]) -> list[tuple[int, int, int]]:
    """Runs of lines with the same owner: (owner, first, last)."""
    runs: list[tuple[int, int, int]] = []
    start = 0
    for line in range(1, len(owners) + 1):
        if line == len(owners) or owners[line] != owners[start]:
            runs.append((owners[start], start, line - 1))
            start = line
    return runs
