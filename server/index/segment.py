"""One part of an inverted index: term -> the units that have it, and how often in which field.

All of it is arrays, in memory or mapped from a file. A segment never changes; a greater one is merged from several.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..parse import KINDS
from .words import FIELD_BITS, FIELDS

Ids = npt.NDArray[np.int64]
Rows = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.uint16]
Bytes = npt.NDArray[np.uint8]

TERM_BYTES = 6
"""Of a term in a unit's stored terms: 4 for itself, 2 for its counts."""

_FIELD_MASK = np.uint16((1 << FIELD_BITS) - 1)

_MERGED_AT_ONCE = 1 << 22
"""Postings that are sorted at once in a merge: 100 MB."""

_EMPTY_ROWS, _EMPTY_COUNTS = np.empty(0, np.uint32), np.empty(0, np.uint16)


class _Array(NamedTuple):
    """An array in the file: its type, and which number of the head is its length."""

    dtype: type[np.generic]
    length: int


_ARRAYS = {
    "units": _Array(np.uint32, 0),
    "files": _Array(np.uint32, 0),
    "kinds": _Array(np.uint8, 0),
    "lines": _Array(np.uint16, 0),
    "lengths": _Array(np.uint16, 0),
    "name_lengths": _Array(np.uint8, 0),
    "terms": _Array(np.uint32, 1),
    "starts": _Array(np.int64, 2),
    "rows": _Array(np.uint32, 3),
    "counts": _Array(np.uint16, 3),
}
_NUMBER_OF_KIND = {kind: number for number, kind in enumerate(KINDS)}

_HEAD_NUMBERS = 4
"""Numbers of units, terms, starts, postings."""

_Inverted: TypeAlias = tuple[Rows, Ids, Rows, Counts]


class UnitTerms(NamedTuple):
    """A unit as full text and ranking see it; nothing of it ever changes."""

    unit: int
    file: int
    kind: str
    lines: int
    terms: bytes


@dataclass(frozen=True)
class Segment:
    """An inverted index of some units. A unit's *row* is its place among `units`."""

    units: Rows
    """Ids, ascending."""
    files: Rows
    """Of each unit: its file's id."""
    kinds: Bytes
    """Of each unit: the place of its kind among KINDS."""
    lines: Counts
    """Of each unit: how many lines it has."""
    lengths: Counts
    """Of each unit: its words in all fields."""
    name_lengths: Bytes
    """Of each unit: the words of its name."""
    terms: Rows
    """Ascending, each once."""
    starts: Ids
    """Where the postings of each term begin, and last where they all end."""
    rows: Rows
    """Of each posting: the unit's row; ascending within a term."""
    counts: Counts
    """Of each posting: how often the term stands in which field, see `server.index.words`."""

    def __len__(self) -> int:
        return len(self.units)

    @cached_property
    def words(self) -> int:
        """The words of all units together."""
        return int(self.lengths.sum(dtype=np.int64))

    @classmethod
    def of(cls, rows: Sequence[UnitTerms]) -> Segment:
        """A segment of units, ids ascending. Raises ValueError for terms that are none."""
        terms = [row.terms for row in rows]
        if any(len(each) % TERM_BYTES for each in terms):
            raise ValueError("terms are not as they were stored")
        sizes = np.array([len(each) // TERM_BYTES for each in terms], np.int64)
        all_terms = np.frombuffer(b"".join([each[: 4 * len(each) // TERM_BYTES] for each in terms]), np.uint32)
        counts = np.frombuffer(b"".join([each[4 * len(each) // TERM_BYTES :] for each in terms]), np.uint16)
        numbers = np.repeat(np.arange(len(sizes), dtype=np.uint32), sizes)
        words = np.sum([field_of(counts, field) for field in FIELDS], axis=0)
        return cls(
            np.array([row.unit for row in rows], np.uint32),
            np.array([row.file for row in rows], np.uint32),
            np.array([_NUMBER_OF_KIND.get(row.kind, 0) for row in rows], np.uint8),
            np.array([min(row.lines, 0xFFFF) for row in rows], np.uint16),
            np.minimum(np.bincount(numbers, words, len(sizes)), 0xFFFF).astype(np.uint16),
            np.minimum(np.bincount(numbers, field_of(counts, "name"), len(sizes)), 0xFF).astype(np.uint8),
            *_inverted(all_terms, numbers, counts),
        )

    def postings(self, term: int) -> tuple[Rows, Counts]:
        """Rows and counts of the units that have a term."""
        place = int(np.searchsorted(self.terms, np.uint32(term)))
        if place == len(self.terms) or self.terms[place] != term:
            return _EMPTY_ROWS, _EMPTY_COUNTS
        first, last = int(self.starts[place]), int(self.starts[place + 1])
        return self.rows[first:last], self.counts[first:last]

    def frequencies(self, terms: Rows) -> Ids:
        """How many units have each of `terms`."""
        if not len(self.terms):
            return np.zeros(len(terms), np.int64)
        places = np.minimum(np.searchsorted(self.terms, terms), len(self.terms) - 1)
        having: Ids = np.where(self.terms[places] == terms, self.starts[places + 1] - self.starts[places], 0)
        return having

    def counts_of(self, rows: Rows, terms: Sequence[int]) -> Counts:
        """How often the units of `rows` have each of `terms`: [rows, terms]."""
        found = np.zeros((len(rows), len(terms)), np.uint16)
        for number, term in enumerate(terms):
            having, counts = self.postings(term)
            if len(having):
                at = np.minimum(np.searchsorted(having, rows), len(having) - 1)
                found[:, number] = np.where(having[at] == rows, counts[at], 0)
        return found

    def rows_of(self, units: Ids) -> tuple[Rows, npt.NDArray[np.bool_]]:
        """Row of each of `units`, and whether it is here; where it is not, the row says nothing."""
        if not len(self):
            return np.zeros(len(units), np.uint32), np.zeros(len(units), bool)
        rows = np.minimum(np.searchsorted(self.units, units.astype(np.uint32)), len(self) - 1)
        return rows.astype(np.uint32), self.units[rows] == units

    # -- files

    def save(self, path: Path) -> None:
        """Write it: the numbers of units, terms, starts and postings, then each array at a multiple of 8 bytes."""
        numbers = [len(self.units), len(self.terms), len(self.starts), len(self.rows)]
        with path.open("wb") as file:
            file.write(np.array(numbers, np.uint64).tobytes())
            for name in _ARRAYS:
                getattr(self, name).tofile(file)
                file.write(bytes(-file.tell() % 8))

    @classmethod
    def load(cls, path: Path) -> Segment:
        """Map one. Raises OSError, and ValueError for a file that is none."""
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        size = len(mapped)
        head = np.fromfile(path, np.uint64, _HEAD_NUMBERS).tolist()
        if len(head) < _HEAD_NUMBERS:
            raise ValueError(f"{path}: cut short")
        arrays: dict[str, Any] = {}
        place = 8 * _HEAD_NUMBERS
        for name, (dtype, length) in _ARRAYS.items():
            count = head[length]
            end = place + count * np.dtype(dtype).itemsize
            if end > size:
                raise ValueError(f"{path}: cut short")
            arrays[name] = np.frombuffer(mapped, dtype, count, place)
            place = end + -end % 8
        return cls(**arrays)


def field_of(counts: npt.NDArray[np.uint16], field: str) -> npt.NDArray[np.uint16]:
    """How often the terms stand in a field."""
    values: Counts = (counts >> np.uint16(FIELD_BITS * FIELDS.index(field))) & _FIELD_MASK
    return values


def among(values: Ids, ascending: Ids) -> npt.NDArray[np.bool_]:
    """Which of `values` are among those."""
    if not len(ascending):
        return np.zeros(len(values), bool)
    places = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    found: npt.NDArray[np.bool_] = ascending[places] == values
    return found


def merged(segments: Sequence[Segment]) -> Segment:
    """One segment of several, the ids of each greater than those of the one before."""
    firsts = np.cumsum([0, *map(len, segments)])
    total = sum(len(segment.rows) for segment in segments)
    edges = np.linspace(0, 1 << 32, 2 + total // _MERGED_AT_ONCE)
    parts = [_merged_between(segments, firsts, low, high) for low, high in pairwise(edges)]
    sizes = np.concatenate([np.diff(starts) for _, starts, _, _ in parts])
    return Segment(
        np.concatenate([segment.units for segment in segments]),
        np.concatenate([segment.files for segment in segments]),
        np.concatenate([segment.kinds for segment in segments]),
        np.concatenate([segment.lines for segment in segments]),
        np.concatenate([segment.lengths for segment in segments]),
        np.concatenate([segment.name_lengths for segment in segments]),
        np.concatenate([terms for terms, _, _, _ in parts]),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([rows for _, _, rows, _ in parts]),
        np.concatenate([counts for _, _, _, counts in parts]),
    )


def _merged_between(segments: Sequence[Segment], firsts: Ids, low: float, high: float) -> _Inverted:
    """The postings of all terms from `low` to below `high`."""
    terms, rows, counts = list[Rows](), list[Rows](), list[Counts]()
    for segment, first in zip(segments, firsts, strict=False):
        begin, end = np.searchsorted(segment.terms, [low, high])
        starts = segment.starts[begin : end + 1]
        terms.append(np.repeat(segment.terms[begin:end], np.diff(starts)))
        rows.append(segment.rows[starts[0] : starts[-1]] + np.uint32(first))
        counts.append(segment.counts[starts[0] : starts[-1]])
    return _inverted(np.concatenate(terms), np.concatenate(rows), np.concatenate(counts))


def _inverted(terms: Rows, rows: Rows, counts: Counts) -> _Inverted:
    """Postings in the order of rows -> (distinct terms, starts, rows, counts) in the order of terms."""
    order = np.argsort(terms, kind="stable")
    ordered = terms[order]
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(ordered) else order
    return ordered[begins], np.append(begins, len(ordered)), rows[order], counts[order]
