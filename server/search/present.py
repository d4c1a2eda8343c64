"""A ranked candidate -> a hit that is true now: the file may have changed since it was indexed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..index.prepare import unit_key, units_of
from ..index.stamp import stat_stamp
from ..parse import Unit
from ..workspace.read import read_regular
from .answer import Hit
from .candidates import Candidate


@dataclass(frozen=True, slots=True)
class Place:
    """Where a unit is."""

    start_line: int
    end_line: int
    selection: tuple[int, int, int]


class Presenter:
    """Makes the hits of one answer; looks at each file once."""

    def __init__(self, root: Path, stamps: dict[str, str]) -> None:
        self._root, self._stamps = root, stamps
        self._moved: dict[str, dict[bytes, list[Unit]] | None] = {}

    def hit(self, candidate: Candidate, score: float) -> Hit | None:
        """The hit where it stands in the file as it is now; None if the unit is not there any more."""
        place = self._place(candidate)
        if place is None:
            return None
        return Hit(
            candidate.path,
            place.start_line,
            place.end_line,
            place.selection,
            candidate.name,
            candidate.container,
            candidate.kind,
            candidate.language,
            round(score, 4),
            candidate.preview,
        )

    def _place(self, c: Candidate) -> Place | None:
        if c.path not in self._moved:
            self._moved[c.path] = self._reread(c.path)
        units = self._moved[c.path]
        if units is None:
            return Place(c.start_line, c.end_line, c.selection)
        same = units.get(c.key)
        if not same:
            return None
        # Twins (the two arms of an #ifdef) are told apart by where they were.
        unit = min(same, key=lambda unit: abs(unit.start_line - c.start_line))
        return Place(unit.start_line, unit.end_line, unit.selection)

    def _reread(self, path: str) -> dict[bytes, list[Unit]] | None:
        """The file's units by key if it changed since it was indexed, else None."""
        file = self._root / path
        try:
            if stat_stamp(file.lstat()) == self._stamps.get(path):
                return None
            language, _, units = units_of(path, read_regular(file))
        except OSError:
            return {}
        by_key: dict[bytes, list[Unit]] = {}
        for unit in units:
            by_key.setdefault(unit_key(unit, language), []).append(unit)
        return by_key
