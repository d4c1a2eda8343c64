"""A ranked candidate -> a hit that is true now: the file may have changed since it was indexed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..index.prepare import digest_of, parsed_file, unit_key
from ..index.stamp import stat_stamp
from ..workspace.read import read_regular
from .answer import Hit
from .candidates import Candidate


@dataclass(frozen=True, slots=True)
class Place:
    """Where a unit is."""

    start_line: int
    end_line: int
    selection: tuple[int, int, int]
    head: str


class Presenter:
    """Makes the hits of one answer; looks at each file once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._moved: dict[str, dict[bytes, list[Place]] | None] = {}

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
            place.head,
            candidate.name,
            candidate.container,
            candidate.kind,
            candidate.language,
            round(score, 4),
            candidate.preview,
        )

    def _place(self, c: Candidate) -> Place | None:
        if c.unsaved:
            return Place(c.start_line, c.end_line, c.selection, c.head)
        if c.path not in self._moved:
            self._moved[c.path] = self._reread(c)
        units = self._moved[c.path]
        if units is None:
            return Place(c.start_line, c.end_line, c.selection, c.head)
        # Twins (the two arms of an #ifdef) are told apart by where they were.
        same = units.get(c.key, ())
        return min(same, key=lambda place: abs(place.start_line - c.start_line), default=None)

    def _reread(self, c: Candidate) -> dict[bytes, list[Place]] | None:
        """Where the units of a candidate's file are, by key, if it is not as the candidate has it, else None."""
        file = self._root / c.path
        try:
            if stat_stamp(file.lstat()) == c.stamp:
                return None
            data = read_regular(file)
        except OSError:
            return {}
        if digest_of(data) == c.digest:
            return None
        parsed = parsed_file(c.path, data)
        by_key: dict[bytes, list[Place]] = {}
        for unit, head in zip(parsed.units, parsed.heads, strict=True):
            place = Place(unit.start_line, unit.end_line, unit.selection, head)
            by_key.setdefault(unit_key(unit, parsed.language), []).append(place)
        return by_key
