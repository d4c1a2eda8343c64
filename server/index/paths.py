"""The paths of a store's files and their vectors, those of late kept in memory: a search looks at a hundred of them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from .embeddings import Embeddings
from .store import Store
from .vectors import VectorIndex, Vectors

KEPT = 20_000
"""Files whose paths are kept: 15 MB at 256 numbers each."""

Value = TypeVar("Value")


class Paths:
    """By the files' ids, which are never used twice. Safe to share between threads."""

    def __init__(self, store: Store, embeddings: Embeddings, index: VectorIndex, dim: int) -> None:
        """`index` knows the vectors of most."""
        self._store, self._embeddings, self._index, self._dim = store, embeddings, index, dim
        self._lock = threading.Lock()
        self._paths: dict[int, tuple[str, bytes]] = {}
        """Path, and the key of its vector; the latest last."""
        self._vectors: dict[int, npt.NDArray[np.float16]] = {}

    def of(self, files: Iterable[int]) -> dict[int, str]:
        """The paths of those that are there. Raises StoreError."""
        with self._lock:
            return {file: path for file, (path, _) in self._known(files).items()}

    def cosines(self, query: Vectors, files: Sequence[int]) -> Vectors:
        """The cosine of `query` [dim], unit length, and each file's path; 0 where there is no vector. Raises
        StoreError."""
        cosines, here = self._index.path_cosines(query, np.array(files, np.int64))
        later = np.flatnonzero(~here)
        if len(later):
            cosines[later] = self._stored([files[place] for place in later.tolist()]) @ query
        return cosines

    def _stored(self, files: Sequence[int]) -> Vectors:
        """The vector of each file's path, from the database or from memory; zeros where there is none."""
        with self._lock:
            missing = {file: key for file, (_, key) in self._known(files).items() if file not in self._vectors}
            found = self._embeddings.of({*missing.values()})
            self._vectors.update(
                (file, found[key][0].astype(np.float16)) for file, key in missing.items() if key in found
            )
            nothing = np.zeros(self._dim, np.float16)
            vectors = np.array([self._vectors.get(file, nothing) for file in files], np.float16)
            _forget_old(self._vectors)
        return vectors.reshape(-1, self._dim).astype(np.float32)

    def _known(self, files: Iterable[int]) -> dict[int, tuple[str, bytes]]:
        wanted = list(files)
        missing = [file for file in wanted if file not in self._paths]
        for file, *row in self._store.rows_in("SELECT id, path, path_key FROM files WHERE id IN (?)", missing):
            self._paths[file] = (row[0], row[1])
        known = {file: self._paths[file] for file in wanted if file in self._paths}
        _forget_old(self._paths)
        return known


def _forget_old(kept: dict[int, Value]) -> None:
    for file in list(islice(kept, max(0, len(kept) - KEPT))):
        del kept[file]
