"""The terms of a workspace's units, searchable: which units have a term, and how often in which field.

Derived from the database and nothing else, as the vectors are, and kept up to date in the same way: most of it lies in
a *main* file that is opened memory-mapped; the units that came later are in a few segments in memory. Units never
change and their ids only grow. Those that are gone stay in their segment: the database keeps their terms too, until a
new main file is written, so that whoever follows can take them off his counts.

(SQLite's own full text looks up a row for each match that it ranks, which takes longer than all else in a search.)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .derived import is_intact, sweep, write_derived
from .low_priority import low_priority_thread
from .segment import Bytes, Counts, Ids, Rows, Segment, UnitTerms, among, merged
from .store import Store
from .sums import sound

Scores = npt.NDArray[np.float32]
Impact = Callable[[int, Counts, Counts], Scores]
"""(Which of the terms, its counts in some units, these units' lengths) -> what it adds to the score of each."""

TAIL_LIMIT = 2_000
"""Units that are read again whenever somebody opens the index: 20 ms. More, and a main file is written."""

GONE_LIMIT = 20_000
"""Units that are gone and whose terms are kept, at least: 8 MB."""

DEAD_UNITS = 1_000
"""So many dead ones may be in the segments in memory before they are read anew."""

_SLICE = 1_000
"""Units read at once for a main file: 15 ms."""

_FOLLOWED_AT_ONCE = 20_000
"""Units taken up at once: 20 MB."""

_MAIN = "postings"
"""The key under which the main file is remembered, and the beginning of its name."""

_SELECT = (
    "SELECT t.unit, u.file, u.kind, u.end_line - u.start_line + 1, t.terms, u.terms_sum"
    " FROM terms t CROSS JOIN units u ON u.id = t.unit"
)


@dataclass(frozen=True, slots=True)
class Main:
    """The segment on disk: which units and which of those that are gone it has seen."""

    file: str
    high: int
    """Units up to this id are in it, but for those that were gone."""
    gone: int
    """Rows of `gone` up to this id say nothing about it."""
    checksum: int

    def line(self) -> str:
        """As it stands in the database."""
        return f"{self.file} {self.high} {self.gone} {self.checksum}"

    @classmethod
    def of(cls, line: str) -> Main:
        """From `line()`. Raises ValueError."""
        file, high, gone, checksum = line.split(" ")
        return cls(file, int(high), int(gone), int(checksum))


_NOTHING = Main("", 0, 0, 0)
_UNREAD = ""


class Found(NamedTuple):
    """What is known of some units, all of one length."""

    files: Ids
    """Their files' ids."""
    kinds: Bytes
    """The place of each one's kind among KINDS."""
    lines: Counts
    """How many it has."""
    name_lengths: Bytes
    """Words of its name."""
    counts: Counts
    """How often it has each of the terms, by field: [units, terms]."""


class Postings:
    """The full text of one store. Safe to share between threads."""

    def __init__(self, store: Store, folder: Path) -> None:
        self._store, self._folder = store, folder
        self._lock = threading.Lock()
        self._line: str | None = _UNREAD
        """The database's about the main file that was taken up."""
        self._main = _NOTHING
        self._segments: list[Segment] = []
        """Of living and dead units, ids ascending; the main one first if there is one."""
        self._dead_segments: list[Segment] = []
        self._dead: Ids = np.empty(0, np.int64)
        """Ids of the dead units in `_segments`, ascending."""
        self._high = self._gone = 0
        """The greatest unit id, and row of `gone`, that was taken up."""
        self.problem: str | None = None
        """What was wrong with the main file, if it had to be left out."""

    # -- what is asked

    @property
    def units(self) -> int:
        """How many living units there are."""
        with self._lock:
            return self._living

    @property
    def mean_length(self) -> float:
        """Words of a living unit."""
        with self._lock:
            words = sum(segment.words for segment in self._segments)
            words -= sum(segment.words for segment in self._dead_segments)
        return words / max(1, self.units)

    def frequencies(self, terms: Sequence[int]) -> Ids:
        """How many living units have each of the terms."""
        with self._lock:
            each = np.array(terms, np.uint32)
            return _having(self._segments, each) - _having(self._dead_segments, each)

    def sums(self, terms: Sequence[int], impact: Impact) -> tuple[Ids, Scores]:
        """The living units that have one of the terms, and for each the sum of what its terms add."""
        with self._lock:
            segments, dead = [*self._segments], self._dead
        found = [_sums(segment, terms, impact) for segment in segments]
        units = np.concatenate([units for units, _ in found] or [np.empty(0, np.int64)])
        scores = np.concatenate([scores for _, scores in found] or [np.empty(0, np.float32)])
        alive = ~among(units, dead)
        return units[alive], scores[alive]

    def living(self, units: Ids) -> npt.NDArray[np.bool_]:
        """Which of `units` are here and not gone."""
        with self._lock:
            segments, dead = [*self._segments], self._dead
        here = np.zeros(len(units), bool)
        for segment in segments:
            here |= segment.rows_of(units)[1]
        return here & ~among(units, dead)

    def find(self, units: Ids, terms: Sequence[int]) -> Found:
        """What is known of `units`; nothing (zeros) of one that is not here."""
        found = Found(
            np.zeros(len(units), np.int64),
            np.zeros(len(units), np.uint8),
            np.zeros(len(units), np.uint16),
            np.zeros(len(units), np.uint8),
            np.zeros((len(units), len(terms)), np.uint16),
        )
        with self._lock:
            segments = [*self._segments]
        for segment in segments:
            rows, here = segment.rows_of(units)
            places, rows = np.flatnonzero(here), rows[here]
            if not len(places):
                continue
            found.files[places], found.kinds[places] = segment.files[rows], segment.kinds[rows]
            found.lines[places], found.name_lengths[places] = segment.lines[rows], segment.name_lengths[rows]
            found.counts[places] = segment.counts_of(rows, terms)
        return found

    # -- following the database

    def follow(self) -> None:
        """Take up what the database has that this has not. Raises StoreError."""
        with self._store.lock, self._lock:  # in this order: a search holds the store when it comes here
            [(line, high, gone)] = self._store.rows(
                "SELECT (SELECT value FROM meta WHERE key = ?), (SELECT max(unit) FROM terms),"
                " (SELECT max(id) FROM gone)",
                (_MAIN,),
            )
            if line == self._line and (high or 0) <= self._high and (gone or 0) <= self._gone:
                return
            with self._store.snapshot():
                self._follow()
                if (known := self._living) != (stored := self._store.totals().units):
                    raise self._store.damaged(f"full text has {known} of {stored} units")

    def _follow(self) -> None:
        self._follow_main()
        self._take_off(self._store.rows("SELECT id, unit, terms FROM gone WHERE id > ? ORDER BY id", (self._gone,)))
        while later := self._store.rows(
            f"{_SELECT} WHERE t.unit > ? ORDER BY t.unit LIMIT ?", (self._high, _FOLLOWED_AT_ONCE)
        ):
            self._segments.append(self._segment(later))
            self._high = later[-1][0]
            _tidy(self._segments, 1 if self._main.file and not self.problem else 0)
        if np.count_nonzero(self._dead > self._main_high) > DEAD_UNITS + self._later // 2:
            self._begin(self._main)
            self._follow()

    def _take_off(self, gone: list[tuple[Any, ...]]) -> None:
        """Count the units of these rows as dead, those that were ever here."""
        if not gone:
            return
        self._gone = gone[-1][0]
        ids = np.array([unit for _, unit, _ in gone], np.int64)
        here = np.zeros(len(ids), bool)
        for segment in self._segments:
            here |= segment.rows_of(ids)[1]
        dead = sorted(
            UnitTerms(unit, 0, "", 0, terms) for (_, unit, terms), held in zip(gone, here.tolist(), strict=True) if held
        )
        if dead:
            try:
                self._dead_segments.append(Segment.of(dead))
            except (ValueError, TypeError) as error:
                raise self._store.damaged(f"units that are gone: {error}") from None
            self._dead = np.union1d(self._dead, ids[here])
            _tidy(self._dead_segments, 0)

    def _segment(self, rows: list[tuple[Any, ...]]) -> Segment:
        """Of rows of _SELECT."""
        if any(data and not sound(data, checksum) for *_, data, checksum in rows):
            raise self._store.damaged("terms are not as they were stored")
        try:
            return Segment.of([UnitTerms(*row[:5]) for row in rows])
        except (ValueError, TypeError, OverflowError) as error:
            raise self._store.damaged(str(error)) from None

    @property
    def _living(self) -> int:
        return sum(map(len, self._segments)) - len(self._dead)

    # -- the main file

    @property
    def _main_high(self) -> int:
        """Units up to this id are in the main segment."""
        return 0 if self.problem else self._main.high

    @property
    def _later(self) -> int:
        """Units in memory, dead ones too."""
        return sum(len(segment) for segment in self._segments if len(segment) and segment.units[0] > self._main_high)

    def compact(self, between: Callable[[], None] | None = None) -> bool:
        """Write a new main file if too much came or went since the last one, or that is damaged.

        To be called by the one writer, outside of a transaction; `between` is called every now and then and may write.
        Returns whether it wrote. A full disk is no loss: what is in memory goes on.
        """
        self._sweep()
        with self._store.lock, self._lock:
            self._follow_main()
            held = len(self._segments[0]) if self._main_high else 0
        limit = max(TAIL_LIMIT, held // 4)
        [(later, gone)] = self._store.rows(  # counted there, since a first index would not fit into memory as rows
            "SELECT (SELECT count(*) FROM (SELECT 1 FROM terms WHERE unit > ? LIMIT ?)),"
            " (SELECT coalesce(max(id), 0) FROM gone)",
            (self._main_high, limit + 1),
        )
        many_later = later > limit
        many_gone = gone - self._main.gone > max(GONE_LIMIT, held // 2)
        if not (many_later or many_gone or self.problem):
            return False
        main = self._write(between)
        with self._store.transaction():
            self._store.set_meta(_MAIN, main.line())
            self._store.write("DELETE FROM gone WHERE id <= ?", (main.gone,))
        self._line = _UNREAD  # the file may have the name and the content of a damaged one
        self.follow()
        self._sweep()
        return True

    def _write(self, between: Callable[[], None] | None) -> Main:
        [(high, gone)] = self._store.rows(
            "SELECT (SELECT coalesce(max(unit), 0) FROM terms), (SELECT coalesce(max(id), 0) FROM gone)"
        )
        gone = max(gone, self._gone)  # those that were deleted count on
        segments: list[Segment] = []
        for first in range(1, high + 1, _SLICE):  # of what is written meanwhile, nothing has an id up to `high`
            rows = self._store.rows(
                f"{_SELECT} WHERE t.unit BETWEEN ? AND ? ORDER BY t.unit", (first, min(first + _SLICE - 1, high))
            )
            segments.append(self._segment(rows))
            if between:
                between()
        with low_priority_thread() as background:
            whole = background.submit(merged, segments or [Segment.of([])]).result()
        file, checksum = write_derived(self._folder, f"{_MAIN}-{high}-{{}}.segment", whole.save)
        return Main(file, high, gone, checksum)

    def _sweep(self) -> None:
        line = self._store.meta(_MAIN)
        sweep(self._folder, f"{_MAIN}-*", {line.split(" ")[0]} if line else ())

    def _follow_main(self) -> None:
        line = self._store.meta(_MAIN)
        if line == self._line:
            return
        try:
            main = Main.of(line) if line else _NOTHING
        except ValueError:
            raise self._store.damaged(f"{line!r} names the postings") from None
        self._begin(main)
        self._line = line

    def _begin(self, main: Main) -> None:
        """Forget everything but a main file; one that is absent or damaged is left out, and all is read from the
        database."""
        self._main, self._segments, self._dead_segments = main, [], []
        self._dead, self._high, self._gone, self.problem = np.empty(0, np.int64), 0, main.gone, None
        if not main.file:
            return
        path = self._folder / main.file
        try:
            if not is_intact(path, main.checksum):
                raise ValueError
            self._segments, self._high = [Segment.load(path)], main.high
        except (OSError, ValueError):
            self.problem = f"{path}: absent or damaged; the full text is read from the database instead"


def _tidy(segments: list[Segment], fixed: int) -> None:
    """Merge the last segments so that each is twice as large as the next or larger; the first `fixed` stay as they
    are."""
    while len(segments) > fixed + 1 and len(segments[-2].rows) < 2 * len(segments[-1].rows):
        segments[-2:] = [merged(segments[-2:])]


def _sums(segment: Segment, terms: Sequence[int], impact: Impact) -> tuple[Ids, Scores]:
    rows, values = [np.empty(0, np.uint32)], [np.empty(0, np.float32)]
    for number, term in enumerate(terms):
        having, counts = segment.postings(term)
        rows.append(having)
        values.append(impact(number, counts, segment.lengths[having]))
    every, added = np.concatenate(rows), np.concatenate(values)
    order = np.argsort(every, kind="stable")  # quick: each term's rows ascend
    every = every[order]
    if not len(every):
        return np.empty(0, np.int64), np.empty(0, np.float32)
    begins = np.flatnonzero(np.concatenate([[True], every[1:] != every[:-1]]))
    return segment.units[every[begins]].astype(np.int64), np.add.reduceat(added[order], begins)


def _having(segments: Sequence[Segment], terms: Rows) -> Ids:
    having = np.zeros(len(terms), np.int64)
    for segment in segments:
        having += segment.frequencies(terms)
    return having
