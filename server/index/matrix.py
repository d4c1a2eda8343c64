"""Vectors in 16 bits, in a file: their keys, ascending, and a row for each.

In the file: the number of rows, the rows, and after them the keys; so it can be written row by row.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
Halves = npt.NDArray[np.float16]

_AT_ONCE = 4_096
_HEAD = 8


class Matrix:
    """A file of vectors, mapped."""

    def __init__(self, path: Path, dim: int) -> None:
        """Raises OSError, and ValueError for a file that is none."""
        with path.open("rb") as file:
            self._mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        count = int.from_bytes(self._mapped[:_HEAD], "little")
        if len(self._mapped) != _HEAD + count * (2 * dim + 8):
            raise ValueError(f"{path}: not as long as {count} vectors of {dim} numbers")
        self.rows: Halves = np.frombuffer(self._mapped, np.float16, count * dim, _HEAD).reshape(count, dim)
        self.keys: Ids = np.frombuffer(self._mapped, np.int64, count, _HEAD + 2 * count * dim)

    def cosines(self, query: Vectors, rows: Ids) -> Vectors:
        """Of `query` [dim] and some rows; all of length 1."""
        return _dots(self.rows[rows], query)

    def parts(self, first: int, last: int) -> Iterator[tuple[Ids, Halves]]:
        """Keys and rows from place `first` to below `last`, in parts of some thousand. Pages that were read are given
        back, so that not all of the file comes into memory; a search would pay for it with a third of its time."""
        for start in range(first, last, _AT_ONCE):
            end = min(start + _AT_ONCE, last)
            yield self.keys[start:end], self.rows[start:end]
            if hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
                self._mapped.madvise(mmap.MADV_DONTNEED)


def _dots(rows: Halves, query: Vectors) -> Vectors:
    """`rows` [n, dim] @ `query`. (NumPy widens numbers of 16 bits one at a time, which takes longer than the rest.)"""
    bits = rows.view(np.uint16).astype(np.uint32)
    # Sign, exponent and fraction at the places of a float32's, whose exponent of 1 is greater by 112.
    widened = ((bits & 0x8000) << 16 | (bits & 0x7FFF) << 13).view(np.float32)
    dots: Vectors = (widened @ query) * np.float32(2.0**112)
    return dots


def write_matrix(path: Path, parts: Iterable[tuple[Ids, Halves]]) -> None:
    """A file of all parts' keys, which ascend from part to part, and rows [n, dim]. Raises OSError."""
    keys = [np.empty(0, np.int64)]
    with path.open("wb") as file:
        file.write(bytes(_HEAD))
        for some, rows in parts:
            keys.append(some)
            rows.tofile(file)
        np.concatenate(keys).tofile(file)
        file.seek(0)
        file.write(sum(map(len, keys)).to_bytes(_HEAD, "little"))
