"""Text without a grammar -> windows of lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .unit import Unit

LINES = 50
"""Lines of a window, about."""
_SLACK = 15
"""How far a cut may move to fall on a blank line."""

_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
_FENCE = re.compile(r"\s{0,3}(```|~~~)")


def windows(lines: Sequence[str], stem: str, headings: bool = False) -> list[Unit]:
    """The windows of a text; with `headings` no window reaches over a Markdown heading, and each bears its name."""
    lines = [line.rstrip() for line in lines]
    units: list[Unit] = []
    begun = 0
    for start, end, name, container in _sections(lines, stem) if headings else [(0, len(lines), stem, "")]:
        while start < end:
            start = _cut(lines, start, end)
            if any(lines[begun:start]):
                units.append(_window(lines, begun, start, name, container))
                begun = start
    if units and begun < len(lines):
        units.append(_window(lines, units.pop().spans[0][0], len(lines), name, container))
    return units


def _cut(lines: Sequence[str], start: int, end: int) -> int:
    """The end of the window that begins at `start`: after a blank line, if one is near."""
    if end - start <= LINES + _SLACK:
        return end
    for distance in range(_SLACK + 1):
        for cut in (start + LINES - distance, start + LINES + distance):
            if not lines[cut - 1] and lines[cut]:
                return cut
    return start + LINES


def _sections(lines: Sequence[str], stem: str) -> list[tuple[int, int, str, str]]:
    """Runs of lines under one Markdown heading: (start, end, heading, headings above it)."""
    sections: list[tuple[int, int, str, str]] = []
    above: list[tuple[int, str]] = []
    start, name, container, fence = 0, stem, "", ""
    for number, line in enumerate(lines):
        if match := _FENCE.match(line):
            fence = "" if fence == match[1] else fence or match[1]
        elif not fence and (match := _HEADING.match(line)):
            sections.append((start, number, name, container))
            level = len(match[1])
            above = [each for each in above if each[0] < level]
            start, name, container = number, match[2] or stem, ".".join(title for _, title in above)
            above.append((level, name))
    sections.append((start, len(lines), name, container))
    return sections


def _window(lines: Sequence[str], start: int, cut: int, name: str, container: str) -> Unit:
    first = next(number for number in range(start, cut) if lines[number])
    last = next(number for number in range(cut - 1, start - 1, -1) if lines[number])
    own = lines[first : last + 1]
    breaks: list[int] = []
    offset = 0
    for line in own[:-1]:
        offset += len(line) + 1
        breaks.append(offset)
    indent = len(own[0]) - len(own[0].lstrip())
    return Unit(
        name=name,
        container=container,
        kind="text",
        start_line=first,
        end_line=last,
        selection=(first, indent, len(own[0])),
        signature="",
        doc="",
        spans=((start, cut - 1),),
        text="\n".join(own),
        breaks=tuple(breaks),
    )
