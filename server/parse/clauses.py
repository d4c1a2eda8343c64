"""Functions that are written as several neighbouring definitions: equations in Haskell, clauses in Elixir."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .definitions import FUNCTION_LIKE, Comments, Definition


def join_clauses(definitions: Iterable[Definition], comments: Comments, lines: Sequence[str]) -> list[Definition]:
    """The definitions, the clauses of one function joined to one. `lines` have no white space at their ends."""
    joined: list[Definition] = []
    latest: dict[int, Definition] = {}
    part_of: dict[int, Definition] = {}
    for definition in definitions:
        if definition.parent:
            definition.parent = part_of.get(id(definition.parent), definition.parent)
        earlier = latest.get(id(definition.parent))
        if earlier and _continues(earlier, definition, comments, lines):
            earlier.last_line, earlier.last_byte = definition.last_line, definition.last_byte
            part_of[id(definition)] = earlier
            continue
        latest[id(definition.parent)] = definition
        joined.append(definition)
    return joined


def _continues(earlier: Definition, definition: Definition, comments: Comments, lines: Sequence[str]) -> bool:
    """Whether `definition` goes on with the same function: it has the same name and no docstring of its own, and
    nothing but comments, attributes and blank lines stands between the two."""
    if definition.kind not in FUNCTION_LIKE or (earlier.kind, earlier.name) != (definition.kind, definition.name):
        return False
    line = definition.first_line - 1
    while line > earlier.last_line:
        if comment := comments.by_last_line.get(line):
            line = comment[0] - 1
        elif line in comments.skipped and line not in comments.documented:
            line = comments.skipped[line] - 1
        elif lines[line]:
            return False
        else:
            line -= 1
    return True
