"""The vectors of a workspace's units, searchable: two files and a tail.

Derived from the database and nothing else. Most vectors lie in the *main* files, opened memory-mapped: a matrix of
float16, and an HNSW graph of the same in 8 bits, which finds the nearest for the matrix to compare. Those of units that
came later form the *tail*, a matrix in memory that is searched exactly. Unit ids only grow, so that following the
database means to read the units above the greatest known id. Vectors of units that are gone stay until most of them
are; whoever asks drops them.

One vector is normalise(code + PATH_WEIGHT * path): a function is found by what it does and by where it stands. Both
parts are embeddings of their own in the database, so a moved file embeds no code again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import astuple, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..embed.bundle import Bundle
from .derived import is_intact, sweep, write_derived
from .graph import Graph
from .low_priority import low_priority_thread
from .matrix import Halves, Matrix, write_matrix
from .segment import among
from .store import Store
from .sums import sound

Vectors = npt.NDArray[np.float32]
Counts = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int64]

PATH_WEIGHT = 0.5
"""Share of the path's vector in a unit's (fitted on the dev repositories by export/fit_ranking.py)."""

TAIL_LIMIT = 8_192
"""Vectors that are searched exactly, without a graph: 2 ms at 256 numbers each. More, and a main file is written."""

DEAD_VECTORS = 1_000
"""So many come to the tail before those of units that are gone are looked for."""

MAX_PARTS = 256
"""Parts of one unit that have a vector; a key of the graph is unit id * MAX_PARTS + part."""

_PATHS = -(1 << 62)
"""The matrix has the vectors of paths, too; the key of one is this + its file's id, so that they come first."""

TAIL_SHARE = 16
"""Of what the main files hold; a tail that is longer than that, too, is added to them."""

_SLICE = 1_000
"""Units added to a graph at once: 50 ms."""

_FOLLOWED_AT_ONCE = 20_000
"""Units taken up at once: 20 MB."""

_OVERSAMPLING = 2
"""The graph is asked for so many times more than are wanted: its 8 bits alone then lose none of the 150 nearest of
100,000 (0.5 % of them otherwise)."""

_SELECT = (
    "SELECT u.id, e.vectors, e.sum, p.vectors, p.sum FROM units u CROSS JOIN files f ON f.id = u.file"
    " CROSS JOIN embeddings e ON e.model = ?1 AND e.key = u.key"
    " CROSS JOIN embeddings p ON p.model = ?1 AND p.key = f.path_key"
)
"""CROSS tells SQLite to begin with the units; it would begin with all embeddings of the model."""


@dataclass(frozen=True, slots=True)
class Main:
    """The files on disk and what they hold, as the database remembers it."""

    graph: str
    matrix: str
    graph_sum: int
    """Checksum of the file: see `derived`."""
    matrix_sum: int
    high: int
    """Units up to this id are in them."""
    count: int
    """Vectors in them."""

    def line(self) -> str:
        """As it stands in the database."""
        return " ".join(map(str, astuple(self)))

    @classmethod
    def of(cls, line: str) -> Main:
        """From `line()`. Raises ValueError."""
        graph, matrix, *numbers = line.split(" ")
        graph_sum, matrix_sum, high, count = map(int, numbers)
        return cls(graph, matrix, graph_sum, matrix_sum, high, count)


@dataclass(frozen=True, slots=True)
class Mapped:
    """The main files, mapped."""

    main: Main
    graph: Graph
    matrix: Matrix
    """Its keys: see MAX_PARTS."""

    @classmethod
    def open(cls, folder: Path, main: Main, dim: int) -> Mapped:
        """Raises OSError, ValueError and RuntimeError for files that are damaged."""
        intact = is_intact(folder / main.graph, main.graph_sum) and is_intact(folder / main.matrix, main.matrix_sum)
        if not intact:
            raise ValueError(f"{folder / main.graph}: absent or damaged")
        return cls(main, Graph.mapped(folder / main.graph, dim), Matrix(folder / main.matrix, dim))

    def nearest(self, query: Vectors, count: int) -> tuple[Ids, Vectors]:
        """Units and cosines of the nearest parts."""
        found = self.graph.search(query, _OVERSAMPLING * count)
        return self._compared(query, np.searchsorted(self.matrix.keys, found))

    def among(self, query: Vectors, units: Ids) -> tuple[Ids, Vectors]:
        """Units and cosines of all parts of `units`, ascending."""
        return self._compared(query, _between(self.matrix.keys, units * MAX_PARTS, (units + 1) * MAX_PARTS))

    def of_paths(self, query: Vectors, files: Ids) -> tuple[Vectors, npt.NDArray[np.bool_]]:
        """Cosines of the files' paths, and which of them are here."""
        cosines, keys = np.zeros(len(files), np.float32), files + _PATHS
        here = among(keys, self.matrix.keys)
        cosines[here] = self.matrix.cosines(query, np.searchsorted(self.matrix.keys, keys[here]))
        return cosines, here

    @property
    def last_path(self) -> int:
        """The greatest id of a file whose path is here."""
        return int(self.matrix.keys[self.paths - 1]) - _PATHS if self.paths else 0

    @property
    def paths(self) -> int:
        """How many paths are here."""
        return int(np.searchsorted(self.matrix.keys, 0))

    def _compared(self, query: Vectors, rows: Ids) -> tuple[Ids, Vectors]:
        return self.matrix.keys[rows] // MAX_PARTS, self.matrix.cosines(query, rows)


class VectorIndex:
    """Search by vector over the units of one store under one model. Safe to share between threads."""

    def __init__(self, store: Store, folder: Path, bundle: Bundle, threads: int) -> None:
        self._store, self._folder, self._threads = store, folder, threads
        self._model, self._dim = bundle.fingerprint, bundle.dim
        self._lock = threading.Lock()
        self._line: str | None = None
        """The database's about the main files that were taken up."""
        self._main: Mapped | None = None
        self._tail = _Tail(self._dim)
        self._added = 0
        """Vectors that came to the tail since it held living units alone."""
        self._high = 0
        self.problem: str | None = None
        """What was wrong with the main files, if they had to be left out."""

    @property
    def _meta_key(self) -> str:
        return f"vectors {self._model} {self._dim} {PATH_WEIGHT}"

    def search(self, query: Vectors, count: int) -> tuple[Ids, Vectors]:
        """The nearest units to `query` [dim], unit length, and their cosines, best first, a unit once.

        May name units that are gone. Up to `count`, more or fewer.
        """
        with self._lock:
            parts = [self._tail.search(query, count)]
            if self._main:
                parts.append(self._main.nearest(query, count))
        return _best(*_joined(parts), count)

    def search_among(self, query: Vectors, units: Ids, count: int) -> tuple[Ids, Vectors]:
        """The same of `units` alone, exactly: each of them is compared. Takes about 1 µs for each."""
        return _best(*self._compared(query, units), count)

    def cosines(self, query: Vectors, units: Ids) -> Vectors:
        """The cosine of each of `units`, of its best part; 0 of one that is not here."""
        ids, scores = self._compared(query, units)
        order = np.argsort(units)
        best: Vectors = np.full(len(units), -np.inf, np.float32)
        np.maximum.at(best, order[np.searchsorted(units, ids, sorter=order)], scores)
        best[np.isneginf(best)] = 0
        return best

    def _compared(self, query: Vectors, units: Ids) -> tuple[Ids, Vectors]:
        """All parts of `units` that are here."""
        wanted = np.sort(units)
        with self._lock:
            parts = [self._tail.among(query, wanted)]
            if self._main:
                parts.append(self._main.among(query, wanted))
        return _joined(parts)

    def path_cosines(self, query: Vectors, files: Ids) -> tuple[Vectors, npt.NDArray[np.bool_]]:
        """The cosine of `query` and each file's path, and which of them are known here, which is not all."""
        with self._lock:
            if self._main:
                return self._main.of_paths(query, files)
        return np.zeros(len(files), np.float32), np.zeros(len(files), bool)

    def follow(self) -> None:
        """Take up what the database has that this index has not: units above the greatest known id, and a main file
        that another process wrote."""
        with self._store.lock, self._lock:  # in this order: a search holds the store when it comes to the vectors
            self._follow_main()
            later = f"{_SELECT} WHERE u.id > ?2 ORDER BY u.id LIMIT ?3"
            while rows := self._store.rows(later, (self._model, self._high, _FOLLOWED_AT_ONCE)):
                self._added += self._tail.add(*_matrix(self._store, rows, self._dim))
                self._high = rows[-1][0]
            if self._added > max(DEAD_VECTORS, len(self._tail) // 2):
                alive = self._store.rows("SELECT id FROM units WHERE id > ?", (self._main_high,))
                self._tail.keep(np.array([unit for (unit,) in alive], np.int64))
                self._added = 0

    def compact(self, between: Callable[[], None] | None = None) -> bool:
        """Write new main files if the tail has grown too long, most of what they hold is dead, or they are damaged.

        To be called by the one writer, outside of a transaction. It takes seconds: with `between`, which is called
        every now and then and may write, it is done in the background. Returns whether it wrote. A full disk is no
        loss: the tail goes on.
        """
        self._sweep()  # what a kill has left
        with self._store.lock, self._lock:
            self._follow_main()
            held = self._main.main.count if self._main else 0
        units = self._store.totals().units
        [(later,)] = self._store.rows("SELECT count(*) FROM units WHERE id > ?", (self._main_high,))
        long_tail = later > max(TAIL_LIMIT, held // TAIL_SHARE)
        mostly_dead = held > TAIL_LIMIT and units < held // 2
        if not (long_tail or mostly_dead or self.problem):
            return False
        main = self._write(None if mostly_dead else self._main, between)
        with self._store.transaction():
            self._store.set_meta(self._meta_key, main.line())
        with self._store.lock, self._lock:
            self._line = None  # the files may have the names and the content of the damaged ones
            self._follow_main()
        self._sweep()
        return True

    def _write(self, before: Mapped | None, between: Callable[[], None] | None) -> Main:
        """Files of every unit's vectors. What stood in the files `before` is taken from there, dead units too."""
        [(high,)] = self._store.rows("SELECT coalesce(max(id), 0) FROM units")
        graph = Graph.loaded(self._folder / before.main.graph, self._dim) if before else Graph(self._dim)

        def added(background: Executor) -> Iterator[tuple[Ids, Halves]]:
            if before:
                yield from before.matrix.parts(0, before.paths)
            yield from self._paths(before.last_path if before else 0)
            if before:
                yield from before.matrix.parts(before.paths, len(before.matrix.keys))
            for ids, vectors in self._slices(before.main.high if before else 0, high):
                keys = _keys(ids)
                if between is None:
                    graph.add(keys, vectors, self._threads)
                else:
                    background.submit(graph.add, keys, vectors, self._threads).result()
                    between()
                yield keys, vectors.astype(np.float16)

        with low_priority_thread() as background:
            matrix, matrix_sum = write_derived(
                self._folder, f"vectors-{high}-{{}}.f16", lambda path: write_matrix(path, added(background))
            )
        name, graph_sum = write_derived(self._folder, f"vectors-{high}-{{}}.usearch", graph.save)
        return Main(name, matrix, graph_sum, matrix_sum, high, len(graph))

    def _slices(self, low: int, high: int) -> Iterator[tuple[Ids, Vectors]]:
        """The ids and vectors of the units above `low`, up to `high`: nothing that is written meanwhile is there."""
        for first in range(low + 1, high + 1, _SLICE):
            some = (self._model, first, min(first + _SLICE - 1, high))
            rows = self._store.rows(f"{_SELECT} WHERE u.id BETWEEN ?2 AND ?3 ORDER BY u.id", some)
            yield _matrix(self._store, rows, self._dim)

    def _paths(self, low: int) -> Iterator[tuple[Ids, Halves]]:
        """The keys and vectors of the paths of files with greater ids than `low`."""
        while rows := self._store.rows(
            "SELECT f.id, e.vectors, e.sum FROM files f CROSS JOIN embeddings e ON e.model = ? AND e.key = f.path_key"
            " WHERE f.id > ? ORDER BY f.id LIMIT ?",
            (self._model, low, _SLICE),
        ):
            low = rows[-1][0]
            found = [(file, data[: 2 * self._dim]) for file, *stored in rows if (data := sound(*stored))]
            vectors = np.frombuffer(b"".join(data for _, data in found), np.float16)
            yield np.array([file for file, _ in found], np.int64) + _PATHS, vectors.reshape(-1, self._dim)

    def _sweep(self) -> None:
        """Delete files of vectors that no model's line names."""
        lines = self._store.rows("SELECT value FROM meta WHERE key LIKE 'vectors %'")
        sweep(self._folder, "vectors-*", {name for (line,) in lines for name in str(line).split(" ")[:2]})

    @property
    def _main_high(self) -> int:
        """Units up to this id are in the main files."""
        return self._main.main.high if self._main else 0

    def _follow_main(self) -> None:
        """Map the main files if they are new; if one is absent or damaged, everything goes into the tail."""
        line = self._store.meta(self._meta_key)
        if line is None or line == self._line:
            return
        try:
            main = Main.of(line)
        except ValueError:
            raise self._store.damaged(f"{line!r} names the vectors") from None
        self._line, self._main, self._tail, self._high, self.problem = line, None, _Tail(self._dim), 0, None
        try:
            self._main = Mapped.open(self._folder, main, self._dim)
            self._high = main.high
        except (OSError, ValueError, RuntimeError):
            self.problem = (
                f"{self._folder / main.graph}: absent or damaged; the vectors are read from the database instead"
            )


class _Tail:
    """Unit ids and their vectors in memory, searched exactly. There is room for more than are there."""

    def __init__(self, dim: int) -> None:
        self._room_ids: Ids = np.empty(0, np.int64)
        self._room: Vectors = np.empty((0, dim), np.float32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def _ids(self) -> Ids:
        return self._room_ids[: self._count]

    @property
    def _matrix(self) -> Vectors:
        return self._room[: self._count]

    def add(self, ids: Ids, matrix: Vectors) -> int:
        """Returns how many."""
        end = self._count + len(ids)
        if end > len(self._room):
            self._make_room(max(end, 3 * end // 2))
        self._room_ids[self._count : end], self._room[self._count : end] = ids, matrix
        self._count = end
        return len(ids)

    def keep(self, units: Ids) -> None:
        """Drop what is not of `units`."""
        alive = np.isin(self._ids, units)
        self._room_ids, self._room = self._ids[alive], self._matrix[alive]
        self._count = len(self._room_ids)

    def _make_room(self, count: int) -> None:
        ids, matrix = self._ids, self._matrix
        self._room_ids, self._room = np.empty(count, np.int64), np.empty((count, matrix.shape[1]), np.float32)
        self._room_ids[: self._count], self._room[: self._count] = ids, matrix

    def search(self, query: Vectors, count: int) -> tuple[Ids, Vectors]:
        scores = self._matrix @ query
        if len(scores) <= count:
            return self._ids, scores
        best = np.argpartition(-scores, count)[:count]
        return self._ids[best], scores[best]

    def among(self, query: Vectors, units: Ids) -> tuple[Ids, Vectors]:
        """All parts of `units`."""
        chosen = _between(self._ids, units, units + 1)
        return self._ids[chosen], self._matrix[chosen] @ query


def _between(ascending: Ids, low: Ids, high: Ids) -> Ids:
    """Places of all values that are in one of the ranges [low, high); these ascend, too."""
    first = np.searchsorted(ascending, low)
    lengths = np.searchsorted(ascending, high) - first
    # Of each range first, first + 1, …: a running number less what ran before it.
    places: Ids = np.arange(lengths.sum()) + np.repeat(first - (np.cumsum(lengths) - lengths), lengths)
    return places


def _best(ids: Ids, scores: Vectors, count: int) -> tuple[Ids, Vectors]:
    """Units and the scores of their best parts, best first."""
    order = np.argsort(-scores, kind="stable")
    _, first = np.unique(ids[order], return_index=True)
    best = order[np.sort(first)[:count]]
    return ids[best], scores[best]


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


def _matrix(store: Store, rows: list[tuple[Any, ...]], dim: int) -> tuple[Ids, Vectors]:
    """Rows of _SELECT as (unit id of each part [n], combined vectors [n, dim])."""
    parts = [sound(*row[1:3])[: MAX_PARTS * 2 * dim] for row in rows]
    code, path, counts = unpack(store, parts, [sound(*row[3:5]) for row in rows], dim)
    return np.repeat(np.array([row[0] for row in rows], np.int64), counts), combine(code, path)


def _joined(parts: Sequence[tuple[Ids, Vectors]]) -> tuple[Ids, Vectors]:
    return np.concatenate([ids for ids, _ in parts]), np.concatenate([scores for _, scores in parts])


def _keys(ids: Ids) -> Ids:
    """The graph's keys for ascending unit ids, one for each part."""
    first = np.searchsorted(ids, ids)
    keys: Ids = ids * MAX_PARTS + (np.arange(len(ids)) - first)
    return keys
