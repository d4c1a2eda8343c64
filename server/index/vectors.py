"""The vectors of a workspace's units, searchable: a usearch file and a tail.

Derived from the database and nothing else. Most vectors lie in a *main* file, an HNSW graph that is opened
memory-mapped; those of units that came later form the *tail*, a matrix in memory that is searched exactly. Unit ids
only grow, so that following the database means to read the units above the greatest known id. Vectors of units that
are gone stay until the next `compact`; whoever asks drops them, since the database does not know them any more.

One vector is normalise(code + PATH_WEIGHT * path): a function is found by what it does and by where it stands. Both
parts are embeddings of their own in the database, so a moved file embeds no code again.
"""

from __future__ import annotations

import contextlib
import os
import threading
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..embed.bundle import Bundle
from .low_priority import low_priority_thread
from .store import Store
from .sums import sound

Vectors = npt.NDArray[np.float32]
Counts = npt.NDArray[np.int64]

PATH_WEIGHT = 0.5
"""Share of the path's vector in a unit's (fitted on the dev repositories by export/fit_ranking.py)."""

TAIL_LIMIT = 8_192
"""Vectors that are searched exactly, without a graph: 2 ms at 256 numbers each. More, and a main file is written."""

DEAD_VECTORS = 1_000
"""So many come to the tail before those of units that are gone are looked for."""

MAX_PARTS = 256
"""Parts of one unit that have a vector; a key of the graph is unit id * MAX_PARTS + part."""

_SLICE = 1_000
"""Units added to a graph at once: 50 ms."""

_CONNECTIVITY, _EXPANSION_ADD, _EXPANSION_SEARCH = 16, 64, 256
"""HNSW: links a node, candidates looked at while adding and while searching."""

_SELECT = (
    "SELECT u.id, e.vectors, e.sum, p.vectors, p.sum FROM units u CROSS JOIN files f ON f.id = u.file"
    " CROSS JOIN embeddings e ON e.model = ?1 AND e.key = u.key"
    " CROSS JOIN embeddings p ON p.model = ?1 AND p.key = f.path_key"
)
"""CROSS tells SQLite to begin with the units; it would begin with all embeddings of the model."""


@dataclass(frozen=True, slots=True)
class Main:
    """The graph on disk: what it holds and which file it is, as the database remembers it."""

    file: str
    high: int
    """Units up to this id are in it."""
    count: int
    """Vectors in it."""
    checksum: int
    """CRC-32 of the file."""

    def line(self) -> str:
        """As it stands in the database."""
        return f"{self.file} {self.high} {self.count} {self.checksum}"

    @classmethod
    def of(cls, line: str) -> Main:
        """From `line()`."""
        file, high, count, checksum = line.split(" ")
        return cls(file, int(high), int(count), int(checksum))


class VectorIndex:
    """Search by vector over the units of one store under one model. Safe to share between threads."""

    def __init__(self, store: Store, folder: Path, bundle: Bundle, threads: int) -> None:
        self._store, self._folder, self._threads = store, folder, threads
        self._model, self._dim = bundle.fingerprint, bundle.dim
        self._lock = threading.Lock()
        self._main: Main | None = None
        self._graph: Any = None
        self._keys: npt.NDArray[np.int64] = np.empty(0, np.int64)
        """What is in the graph."""
        self._tail = _Tail(self._dim)
        self._added = 0
        """Vectors that came to the tail since it held living units alone."""
        self._high = 0
        self.problem: str | None = None
        """What was wrong with the main file, if it had to be left out."""

    @property
    def _meta_key(self) -> str:
        return f"vectors {self._model} {self._dim} {PATH_WEIGHT}"

    def search(self, query: Vectors, count: int) -> list[tuple[int, float]]:
        """The nearest units to `query` [dim], unit length: (unit id, cosine), best first, a unit once.

        May name units that are gone. Up to `count`, more or fewer.
        """
        with self._lock:
            ids, scores = self._tail.search(query, count)
            if self._graph is not None:
                found = self._graph.search(query, count, threads=1)
                ids = np.concatenate([ids, found.keys.astype(np.int64) // MAX_PARTS])
                scores = np.concatenate([scores, 1.0 - found.distances])
        return _best(ids, scores, count)

    def search_among(self, query: Vectors, units: Collection[int], count: int) -> list[tuple[int, float]]:
        """The same of `units` alone, exactly: each of them is compared. Takes about 1 µs for each."""
        wanted = np.sort(np.fromiter(units, np.int64, len(units)))
        with self._lock:
            ids, scores = self._tail.among(query, wanted)
            keys = self._keys[np.isin(self._keys // MAX_PARTS, wanted)]
            if len(keys):
                ids = np.concatenate([ids, keys // MAX_PARTS])
                vectors = np.asarray(self._graph.get(keys.astype(np.uint64), np.float32))
                scores = np.concatenate([scores, vectors @ query])
        return _best(ids, scores, count)

    def follow(self) -> None:
        """Take up what the database has that this index has not: units above the greatest known id, and a main file
        that another process wrote."""
        with self._store.lock, self._lock:  # in this order: a search holds the store when it comes to the vectors
            self._follow_main()
            rows = self._store.rows(f"{_SELECT} WHERE u.id > ?2 ORDER BY u.id", (self._model, self._high))
            if rows:
                self._added += self._tail.add(*_matrix(self._store, rows, self._dim))
                self._high = rows[-1][0]
            if self._added > max(DEAD_VECTORS, len(self._tail) // 2):
                alive = self._store.rows("SELECT id FROM units WHERE id > ?", (self._main_high,))
                self._tail.keep(np.array([unit for (unit,) in alive], np.int64))
                self._added = 0

    def compact(self, between: Callable[[], None] | None = None) -> bool:
        """Write a new main file if the tail has grown too long, most of the main file is dead, or it is damaged.

        To be called by the one writer, outside of a transaction. It takes seconds: with `between`, which is called
        every now and then and may write, it is done in the background. Returns whether it wrote. A full disk is no
        loss: the tail goes on.
        """
        self._sweep()  # what a kill has left
        with self._store.lock, self._lock:
            self._follow_main()
            held = self._main.count if self._main and self._graph is not None else 0
        units = self._store.totals().units
        [(later,)] = self._store.rows("SELECT count(*) FROM units WHERE id > ?", (self._main_high,))
        long_tail = later > max(TAIL_LIMIT, held // 4)
        mostly_dead = held > TAIL_LIMIT and units < held // 2
        if not (long_tail or mostly_dead or self.problem):
            return False
        main = self._save(*self._all_in_a_graph(between))
        with self._store.transaction():
            self._store.set_meta(self._meta_key, main.line())
        with self._lock:
            self._open_main(main)
        self._sweep()
        return True

    def _all_in_a_graph(self, between: Callable[[], None] | None) -> tuple[Any, int]:
        """A graph of every unit's vectors, and the greatest unit id in it."""
        graph = self._new_graph()
        [(high,)] = self._store.rows("SELECT coalesce(max(id), 0) FROM units")
        with low_priority_thread() as background:
            for first in range(1, high + 1, _SLICE):  # of what is written meanwhile, nothing has an id up to `high`
                some = (self._model, first, min(first + _SLICE - 1, high))
                rows = self._store.rows(f"{_SELECT} WHERE u.id BETWEEN ?2 AND ?3 ORDER BY u.id", some)
                ids, matrix = _matrix(self._store, rows, self._dim)
                if between is None:
                    graph.add(_keys(ids), matrix, threads=self._threads)
                else:
                    background.submit(graph.add, _keys(ids), matrix, threads=self._threads).result()
                    between()
        return graph, high

    def _sweep(self) -> None:
        """Delete files of vectors that no model's line names."""
        lines = self._store.rows("SELECT value FROM meta WHERE key LIKE 'vectors %'")
        named = {str(line).split(" ")[0] for (line,) in lines}
        for file in self._folder.glob("vectors-*.usearch*"):
            if file.name not in named:
                with contextlib.suppress(OSError):  # still mapped by another process, on some systems
                    file.unlink()

    @property
    def _main_high(self) -> int:
        """Units up to this id are in the graph."""
        return self._main.high if self._main and self._graph is not None else 0

    def _follow_main(self) -> None:
        line = self._store.meta(self._meta_key)
        if line is None or (self._main and line == self._main.line()):
            return
        try:
            main = Main.of(line)
        except ValueError:
            raise self._store.damaged(f"{line!r} names the vectors") from None
        self._open_main(main)

    def _new_graph(self) -> Any:
        # onnxruntime crashes when it is imported after usearch, unless this came before both.
        import tokenizers  # noqa: F401
        from usearch.index import Index

        return Index(
            ndim=self._dim,
            metric="cos",
            dtype="f16",
            connectivity=_CONNECTIVITY,
            expansion_add=_EXPANSION_ADD,
            expansion_search=_EXPANSION_SEARCH,
        )

    def _save(self, graph: Any, high: int) -> Main:
        scratch = self._folder / f"vectors-{os.getpid()}.usearch.tmp"
        try:
            graph.save(str(scratch))
            checksum = _checksum(scratch)
            main = Main(f"vectors-{high}-{checksum:08x}.usearch", high, len(graph), checksum)
            with scratch.open("rb+") as written:
                os.fsync(written.fileno())
            scratch.chmod(0o600)
            scratch.replace(self._folder / main.file)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise
        return main

    def _open_main(self, main: Main) -> None:
        """Map the main file; one that is absent or damaged is left out, and everything goes into the tail."""
        path = self._folder / main.file
        self._graph, self._keys, self._main = None, np.empty(0, np.int64), main
        self._tail = _Tail(self._dim)
        try:
            intact = _checksum(path) == main.checksum
        except OSError:
            intact = False
        if intact:
            graph = self._new_graph()
            graph.view(str(path))
            self._graph, self._high, self.problem = graph, main.high, None
            self._keys = np.asarray(graph.keys).astype(np.int64)
        else:
            self._high = 0
            self.problem = f"{path}: absent or damaged; the vectors are read from the database instead"


class _Tail:
    """Unit ids and their vectors in memory, searched exactly. There is room for more than are there."""

    def __init__(self, dim: int) -> None:
        self._room_ids: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._room: Vectors = np.empty((0, dim), np.float32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def _ids(self) -> npt.NDArray[np.int64]:
        return self._room_ids[: self._count]

    @property
    def _matrix(self) -> Vectors:
        return self._room[: self._count]

    def add(self, ids: npt.NDArray[np.int64], matrix: Vectors) -> int:
        """Returns how many."""
        end = self._count + len(ids)
        if end > len(self._room):
            self._make_room(max(end, 3 * end // 2))
        self._room_ids[self._count : end], self._room[self._count : end] = ids, matrix
        self._count = end
        return len(ids)

    def keep(self, units: npt.NDArray[np.int64]) -> None:
        """Drop what is not of `units`."""
        alive = np.isin(self._ids, units)
        self._room_ids, self._room = self._ids[alive], self._matrix[alive]
        self._count = len(self._room_ids)

    def _make_room(self, count: int) -> None:
        ids, matrix = self._ids, self._matrix
        self._room_ids, self._room = np.empty(count, np.int64), np.empty((count, matrix.shape[1]), np.float32)
        self._room_ids[: self._count], self._room[: self._count] = ids, matrix

    def search(self, query: Vectors, count: int) -> tuple[npt.NDArray[np.int64], Vectors]:
        scores = self._matrix @ query
        if len(scores) <= count:
            return self._ids, scores
        best = np.argpartition(-scores, count)[:count]
        return self._ids[best], scores[best]

    def among(self, query: Vectors, units: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], Vectors]:
        """All parts of `units`."""
        chosen = np.isin(self._ids, units)
        return self._ids[chosen], self._matrix[chosen] @ query


def _best(ids: npt.NDArray[np.int64], scores: Vectors, count: int) -> list[tuple[int, float]]:
    """(unit id, score) of parts, best first, a unit once."""
    best: dict[int, float] = {}
    for place in np.argsort(-scores, kind="stable"):
        best.setdefault(int(ids[place]), float(scores[place]))
        if len(best) == count:
            break
    return list(best.items())


def combine(code: Vectors, path: Vectors) -> Vectors:
    """normalise(code + PATH_WEIGHT * path), row by row; both [n, dim]."""
    mixed: Vectors = code + np.float32(PATH_WEIGHT) * path
    mixed /= np.maximum(np.linalg.norm(mixed, axis=1, keepdims=True), 1e-12)
    return mixed


def unpack(store: Store, code: Sequence[bytes], paths: Sequence[bytes], dim: int) -> tuple[Vectors, Vectors, Counts]:
    """The stored vectors of units and of their paths, and how many parts each unit has.

    Both [parts of all, dim], a path's vector repeated for each part. Raises DamagedStore for what no model gave.
    """
    width = 2 * dim
    if any(not blob or len(blob) % width for blob in chain(code, paths)):
        raise store.damaged("a vector is not as it was stored")
    parts = np.frombuffer(b"".join(code), np.float16).reshape(-1, dim).astype(np.float32)
    places = np.frombuffer(b"".join(blob[:width] for blob in paths), np.float16).reshape(-1, dim).astype(np.float32)
    if not (np.isfinite(parts).all() and np.isfinite(places).all()):
        raise store.damaged("a vector that is not finite")
    counts = np.array([len(blob) // width for blob in code], np.int64)
    return parts, np.repeat(places, counts, axis=0), counts


def _matrix(store: Store, rows: list[tuple[Any, ...]], dim: int) -> tuple[npt.NDArray[np.int64], Vectors]:
    """Rows of _SELECT as (unit id of each part [n], combined vectors [n, dim])."""
    parts = [sound(*row[1:3])[: MAX_PARTS * 2 * dim] for row in rows]
    code, path, counts = unpack(store, parts, [sound(*row[3:5]) for row in rows], dim)
    return np.repeat(np.array([row[0] for row in rows], np.int64), counts), combine(code, path)


def _keys(ids: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """The graph's keys for ascending unit ids, one for each part."""
    first = np.searchsorted(ids, ids)
    return (ids * MAX_PARTS + (np.arange(len(ids)) - first)).astype(np.uint64)


def _checksum(path: Path) -> int:
    value = 0
    with path.open("rb") as data:
        while block := data.read(1 << 20):
            value = zlib.crc32(block, value)
    return value
