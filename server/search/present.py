"""A ranked candidate -> a hit that is true now: the file may have changed since it was indexed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from ..index.prepare import digest_of, parsed_file, unit_key
from ..index.stamp import is_settled, stat_stamp
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


Places: TypeAlias = dict[bytes, list[Place]]
"""By the units' keys."""

CHANGED_FILES = 64


class Presenter:
    """Makes hits. Remembers where the units are of files that changed lately: in the midst of a checkout, the answers
    to somebody who types are about the same few."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._places_of = lru_cache(CHANGED_FILES)(self._read)

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
        places = self._changed(c)
        if places is None:
            return Place(c.start_line, c.end_line, c.selection, c.head)
        # Twins (the two arms of an #ifdef) are told apart by where they were.
        return min(places.get(c.key, ()), key=lambda place: abs(place.start_line - c.start_line), default=None)

    def _changed(self, c: Candidate) -> Places | None:
        """Where the units of a candidate's file are, if it is not as the candidate has it, else None."""
        try:
            status = (self._root / c.path).lstat()
            if stat_stamp(status) == c.stamp:
                return None
            read = self._places_of if is_settled(status.st_mtime_ns, status.st_ctime_ns) else self._read
            return read(c.path, c.digest, stat_stamp(status))
        except OSError:
            return {}

    def _read(self, path: str, known: bytes, _stamp: str) -> Places | None:
        """Where the units of a file are, None if its digest is the known one. Raises OSError."""
        data = read_regular(self._root / path)
        if digest_of(data) == known:
            return None
        parsed = parsed_file(path, data)
        places: Places = {}
        for unit, head in zip(parsed.units, parsed.heads, strict=True):
            place = Place(unit.start_line, unit.end_line, unit.selection, head)
            places.setdefault(unit_key(unit, parsed.language), []).append(place)
        return places
