"""The nearest of many vectors without a look at each: an HNSW graph of them in 8 bits.

It orders what is near only roughly: whoever asks has the vectors themselves to compare, and asks for more than needed.
Questions lie far from all code, so that a search has to look widely, and the more so the more vectors there are.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

CONNECTIVITY = 24
"""Links of a node; a vector takes 468 bytes at 256 numbers."""

LARGE = 50_000
"""Vectors from which on a new one is placed with twice as much care, which takes twice as long."""
CARE = 128
"""Nodes that are looked at to place one."""

NARROWEST, WIDEST = 256, 512
"""Nodes that a search keeps in view. (At a million vectors, 1,024 find 1 % more of the best ten answers and
take a fifth more time.)"""
NARROW = 25_000
"""Up to so many vectors NARROWEST is enough; four times as many want twice the view."""


class Graph:
    """Keys -> vectors [dim]. Damage is not noticed here: a file has to be what was saved."""

    def __init__(self, dim: int, fixed: bool = False) -> None:
        """One that is `fixed` can only be searched, and does without 33 bytes a vector to look up its keys."""
        # onnxruntime crashes when it is imported after usearch, unless this came before both.
        import tokenizers  # noqa: F401
        from usearch.index import Index

        self._index: Any = Index(
            ndim=dim, metric="cos", dtype="i8", connectivity=CONNECTIVITY, enable_key_lookups=not fixed
        )

    @classmethod
    def mapped(cls, path: Path, dim: int) -> Graph:
        """One that was saved, to be searched alone. Raises OSError, ValueError and RuntimeError."""
        graph = cls(dim, fixed=True)
        graph._index.view(str(path))
        return graph

    @classmethod
    def loaded(cls, path: Path, dim: int) -> Graph:
        """One that was saved, in memory. Raises the same."""
        graph = cls(dim)
        graph._index.load(str(path))
        return graph

    def __len__(self) -> int:
        return len(self._index)

    def add(self, keys: Ids, vectors: Vectors, threads: int) -> None:
        """Keys that are not there yet, and their vectors."""
        self._index.expansion_add = CARE if len(self) < LARGE else 2 * CARE
        self._index.add(keys.astype(np.uint64), _in_8_bits(vectors), threads=threads)

    def search(self, query: Vectors, count: int) -> Ids:
        """The keys of `count` that are near to `query` [dim], hardly ever not the nearest."""
        self._index.expansion_search = _view(len(self))
        keys: Ids = self._index.search(_in_8_bits(query), count, threads=1).keys.astype(np.int64)
        return keys

    def save(self, path: Path) -> None:
        """Raises RuntimeError for a full disk."""
        self._index.save(str(path))


def _view(size: int) -> int:
    """Nodes that a search among so many vectors keeps in view."""
    return min(WIDEST, max(NARROWEST, round(NARROWEST * math.sqrt(size / NARROW))))


def _in_8_bits(vectors: Vectors) -> npt.NDArray[np.int8]:
    """The largest number of each vector becomes 127 or -127: its length says nothing to a cosine. (usearch would
    multiply a vector of length 1 by 127 and be left with ten values for a number.)"""
    largest = np.abs(vectors).max(axis=-1, keepdims=True)
    scaled: npt.NDArray[np.int8] = np.rint(vectors * (127 / np.maximum(largest, 1e-12))).astype(np.int8)
    return scaled
