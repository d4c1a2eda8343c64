"""What holds of the units of every text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from server.parse import KINDS, Unit

_LINE_END = re.compile(r"\r\n|\n|\r")


def lines_of(text: str) -> list[str]:
    """The lines, counted by a second opinion."""
    lines = _LINE_END.split(text)
    return lines[:-1] if lines[-1] == "" else lines


def check(units: Sequence[Unit], text: str) -> None:
    """Raise AssertionError if the units of `text` break a law."""
    lines = lines_of(text)
    owned = sorted(line for unit in units for first, last in unit.spans for line in range(first, last + 1))
    assert owned == (list(range(len(lines))) if text.strip() else []), "every line belongs to exactly one unit"
    assert [unit.spans[0] for unit in units] == sorted(unit.spans[0] for unit in units)
    for unit in units:
        _check_unit(unit, lines)


def _check_unit(unit: Unit, lines: list[str]) -> None:
    assert unit.kind in KINDS
    assert unit.name
    assert 0 <= unit.start_line <= unit.end_line < len(lines)
    assert all(first <= last for first, last in unit.spans)
    assert all(a[1] + 1 < b[0] for a, b in zip(unit.spans, unit.spans[1:], strict=False)), "runs, not neighbours"
    assert any(lines[line].strip() for first, last in unit.spans for line in range(first, last + 1))
    row, start, end = unit.selection
    assert unit.start_line <= row <= unit.end_line
    assert 0 <= start <= end <= len(lines[row])
    assert "\n" not in unit.signature
    assert not any(line != line.rstrip() for line in unit.text.split("\n"))
    assert list(unit.breaks) == sorted(set(unit.breaks))
    assert all(0 < offset < len(unit.text) and unit.text[offset - 1] == "\n" for offset in unit.breaks)
