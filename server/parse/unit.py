"""What a file is made of: units. A function is one; so are a class header and a run of module-level code."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = (
    "function",
    "method",
    "constructor",
    "property",
    "macro",
    "class",
    "struct",
    "enum",
    "interface",
    "trait",
    "object",
    "impl",
    "extension",
    "namespace",
    "type",
    "test",
    "module",
    "text",
)
"""Every kind of unit, as the `kind:` filter and the JSON output spell it. `module` is code outside of every named
unit, `text` a window of lines of a file without a grammar."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One searchable piece of a file. Lines count from 0, `end_line` is inclusive, columns are code points."""

    name: str
    """As written; for `module` and `text` the file's stem."""
    container: str
    """Names of the enclosing units, outermost first, joined by `.`; empty at the top level."""
    kind: str
    """One of KINDS."""
    start_line: int
    """First line of the whole definition, its doc comment and decorators included."""
    end_line: int
    """Last line of the whole definition, nested units included."""
    selection: tuple[int, int, int]
    """Where the name stands: line, first column, column after the last."""
    signature: str
    """The declaration up to the body, on one line."""
    doc: str
    """Doc comment or docstring without comment marks; empty if there is none."""
    spans: tuple[tuple[int, int], ...]
    """The lines that are this unit's own, as inclusive ranges, ascending. Over the units of a file they hold every
    line exactly once: a nested unit's lines are its own, not its container's."""
    text: str
    """What is embedded: a first line with the qualified name, then the unit's own lines, dedented (for a container
    also the names of its members). Holds no path."""
    breaks: tuple[int, ...]
    """Offsets into `text` (code points, ascending) where a statement starts: the places to split a long unit."""
