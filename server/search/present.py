"""A ranked unit -> a hit that is true now: the file may have changed since it was indexed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ..index.prepare import digest_of, parsed_file, unit_key
from ..index.stamp import is_settled, stat_stamp
from ..index.store import StoredUnit
from ..workspace.read import read_regular
from .answer import Hit

PATIENCE = 0.03
"""Seconds of one answer in which files that changed are read. While thousands change (a checkout), it is enough for a
few, and the index is about to have them all."""

REMEMBERED_FILES = 500
"""Changed files whose places are remembered: the next answer, to somebody who types, is about the same ones."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a unit is."""

    start_line: int
    end_line: int
    selection: tuple[int, int, int]
    head: str


Places: TypeAlias = dict[bytes, list[Place]]
"""By the units' keys."""

_State: TypeAlias = tuple[str, bytes, str]
"""A file: its path, its digest in the index, its stamp on disk."""


class Presenter:
    """Makes hits of candidates. Safe to share between threads."""

    def __init__(self, root: Path, stale: Callable[[str], None]) -> None:
        """`stale` hears of each file that is met and is not as it was indexed."""
        self._root, self._stale = root, stale
        self._lock = threading.Lock()
        self._remembered: dict[_State, Places | None] = {}
        """Of changed files, the oldest first; None for one that has the content that the index knows."""

    def hits(self, ranked: Iterable[tuple[StoredUnit, float]], limit: int) -> list[Hit]:
        """Up to `limit` hits where they stand in the files as they are now, of those units that are still there.

        What stands in a file that changed is left out if it is not known where and PATIENCE is over.
        """
        late = time.perf_counter() + PATIENCE
        found: list[Hit] = []
        for c, score in ranked:
            if place := self._place(c, in_hurry=time.perf_counter() > late):
                found.append(_hit(c, place, score))
            if len(found) >= limit:  # the next may have to be read first
                break
        return found

    def _place(self, c: StoredUnit, in_hurry: bool) -> Place | None:
        indexed = Place(c.start_line, c.end_line, c.selection, c.head)
        if c.id < 0:  # as the editor shows it
            return indexed
        try:
            status = os.lstat(f"{self._root}/{c.path}")  # a Path takes ten times as long
            if stat_stamp(status) == c.stamp:
                return indexed
            self._stale(c.path)
            state = (c.path, c.digest, stat_stamp(status))
            if state in self._remembered:
                places = self._remembered[state]
            elif in_hurry:
                return None
            else:
                places = self._read(c.path, c.digest)
                if is_settled(status.st_mtime_ns, status.st_ctime_ns):
                    self._remember(state, places)
        except (OSError, KeyError):  # gone: the file, or from memory meanwhile
            return None
        if places is None:
            return indexed
        # Twins (the two arms of an #ifdef) are told apart by where they were.
        return min(places.get(c.key, ()), key=lambda place: abs(place.start_line - c.start_line), default=None)

    def _read(self, path: str, known: bytes) -> Places | None:
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

    def _remember(self, state: _State, places: Places | None) -> None:
        with self._lock:
            self._remembered[state] = places
            while len(self._remembered) > REMEMBERED_FILES:
                del self._remembered[next(iter(self._remembered))]


def as_indexed(c: StoredUnit, score: float) -> Hit:
    """A unit as a hit where it stood when its file was read."""
    return _hit(c, Place(c.start_line, c.end_line, c.selection, c.head), score)


def _hit(c: StoredUnit, place: Place, score: float) -> Hit:
    return Hit(
        c.path,
        place.start_line,
        place.end_line,
        place.selection,
        place.head,
        c.name,
        c.container,
        c.kind,
        c.language,
        round(score, 4),
        c.preview,
    )
