"""A question -> an answer: the one entrance for the command line and the language server."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import numpy as np

from ..index.buffers import Buffers
from ..index.index import Index
from ..index.low_priority import right_of_way
from ..index.store import StoredUnit
from ..index.sums import sound
from ..index.vectors import Vectors, unpack
from .answer import Answer, Query
from .candidates import NO_TERMS, Candidates, Searchable, Terms, gather, terms_of
from .features import feature_matrix
from .filters import allowed_units
from .present import Presenter
from .rank import Ranked, Ranking, Scores, is_symbol, order
from .refine import Refiner
from .unsaved import gather_unsaved

SPARE = 10
"""Candidates ranked beyond the limit, in place of those that turn out to be gone from their file."""


class Cancelled(Exception):
    """Whoever asked does not want the answer any more."""


class Searcher:
    """Answers questions about one index, and the open documents beside it. Never waits for an update of the index;
    safe to share between threads."""

    def __init__(
        self,
        index: Index,
        buffers: Buffers | None = None,
        ranking: Ranking | None = None,
        refiner: Refiner | None = None,
        stale: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`refiner` brings in a better model's opinion. `stale` hears of files that an answer met and that are not as
        they were indexed: not all that changes a file is told by the system (another hard link, another machine)."""
        self.index, self._buffers, self._refiner = index, buffers, refiner
        self._ranking = ranking or Ranking.shipped()
        self._presenter = Presenter(index.root, stale)

    def close(self) -> None:
        """Give back what the searcher was made with."""
        if self._buffers:
            self._buffers.close()
        self.index.close()

    def look_at_documents(self) -> None:
        """To be called soon after a document was opened or saved; see `Buffers.look`."""
        if self._buffers:
            self._buffers.look()

    def search(self, query: Query, cancelled: Callable[[], bool] = lambda: False) -> Answer:
        """The best hits for a query. Raises Cancelled, ModelError or StoreError."""
        start = time.perf_counter()
        with right_of_way.taken():
            vector = None if query.only == "lexical" else self.index.embedder.embed_queries([query.text])[0]
            candidates, scores = self.score(query, vector, cancelled)
            ranked = order(candidates, scores, self._ranking.repeat, query.limit + SPARE)
            return self._answer(start, ranked, query.limit)

    def similar(self, path: str, line: int, limit: int) -> Answer:
        """Units that do what the unit at a line (from 0) of a file does, itself left out; empty if none is there."""
        start = time.perf_counter()
        self._follow()
        with self._one_moment():
            found = self._unit_at(path, line)
            if found is None:
                return self._answer(start, (), limit)
            unit, vector = found
            candidates = gather(self.index, NO_TERMS, vector, None, lexical=False)
            candidates = self._amended(Query("", only="dense"), NO_TERMS, vector, candidates)
            candidates = candidates.where(candidates.units != unit)
            scores = self._code_cosines(candidates, vector)
        return self._answer(start, order(candidates, scores, 0, limit + SPARE), limit)

    def score(
        self, query: Query, vector: Vectors | None, cancelled: Callable[[], bool] = lambda: False
    ) -> tuple[Candidates, Scores]:
        """The candidates of a query and their scores, unordered."""
        self._follow()
        with self._one_moment():
            allowed = allowed_units(self.index.store, query)
            terms = terms_of(self.index, query.text)
            if cancelled():
                raise Cancelled
            candidates = gather(self.index, terms, vector, allowed, lexical=query.only != "dense")
            candidates = self._amended(query, terms, vector, candidates)
        if cancelled():
            raise Cancelled
        if query.only == "lexical":
            return candidates, candidates.lexical
        if query.only == "dense":
            return candidates, candidates.dense
        scores = self._ranking.scores(is_symbol(query.text), candidates, feature_matrix(candidates, terms))
        if self._refiner:
            scores = self._refiner.refined(query.text, candidates, scores, self._ranking.refine, self._stored)
        return candidates, scores

    def _follow(self) -> None:
        self.index.vectors.follow()
        self.index.postings.follow()
        if self._buffers:
            self._buffers.follow()

    @contextmanager
    def _one_moment(self) -> Iterator[None]:
        """All reads inside see one state of the index and of the documents."""
        # The documents first, always: following them takes the index's lock within theirs.
        with self._buffers.lock if self._buffers else nullcontext(), self.index.store.snapshot():
            yield

    def _amended(self, query: Query, terms: Terms, vector: Vectors | None, candidates: Candidates) -> Candidates:
        """`candidates` of the index with what open documents hold in place of what their files held."""
        if self._buffers is None or not (files := self._buffers.speaking_for()):
            return candidates
        unsaved = gather_unsaved(self._buffers, query, terms, vector)
        return _outside(candidates, files, True).beside(_outside(unsaved, files, False))

    def _code_cosines(self, candidates: Candidates, vector: Vectors) -> Scores:
        """How alike a unit's vector, without a path's, and the candidates' are: of their best parts."""
        keys = {unit.id: unit.key for unit in self._stored(candidates.units.tolist())}
        vectors = self.index.embeddings.of({*keys.values()})
        if self._buffers:
            vectors = self._buffers.embeddings.of({*keys.values()}) | vectors
        cosines = {unit: float((vectors[key] @ vector).max()) for unit, key in keys.items() if key in vectors}
        return np.array([cosines.get(unit, 0.0) for unit in candidates.units.tolist()], np.float32)

    def _unit_at(self, path: str, line: int) -> tuple[int, Vectors] | None:
        """The id (negative for an open document's) and the vector [dim] of the innermost unit at a line."""
        if self._buffers and path in self._buffers.speaking_for():
            found = _innermost(self._buffers, path, line)
            return found and (-found[0], found[1])
        return _innermost(self.index, path, line)

    def _answer(self, start: float, ranked: Sequence[Ranked], limit: int) -> Answer:
        return Answer(
            tuple(self._presenter.hits(self._in_order(ranked, limit), limit)),
            self.index.pending(),
            self.index.store.totals().units,
            self.index.bundle.id,
            round((time.perf_counter() - start) * 1000, 2),
        )

    def _in_order(self, ranked: Sequence[Ranked], limit: int) -> Iterator[tuple[StoredUnit, float]]:
        """Those that are still there and their scores, best first. What is beyond the limit is read if it is asked
        for: it stands in for what is gone, which little is."""
        least = ranked[:limit][-1].score if ranked else 0.0
        enough = sum(each.score >= least for each in ranked)  # equals are told apart by where they stand
        for some in (ranked[:enough], ranked[enough:]):
            scores = dict(some)
            units = self._stored(scores)
            units.sort(key=lambda unit: (-scores[unit.id], unit.path, unit.start_line))
            yield from ((unit, scores[unit.id]) for unit in units)

    def _stored(self, units: Collection[int]) -> list[StoredUnit]:
        """Those of `units` that are still there, in no order."""
        found = self.index.store.stored_units(unit for unit in units if unit > 0)
        if self._buffers:
            unsaved = self._buffers.store.stored_units(-unit for unit in units if unit < 0)
            found += [replace(unit, id=-unit.id) for unit in unsaved]
        return found


def _outside(candidates: Candidates, files: Collection[str], outside: bool) -> Candidates:
    """Those that are, or are not, outside of files."""
    chosen = [file for file, path in candidates.paths.items() if (path not in files) == outside]
    return candidates.where(np.isin(candidates.files, chosen))


def _innermost(source: Searchable, path: str, line: int) -> tuple[int, Vectors] | None:
    rows = source.store.rows(
        "SELECT u.id, e.vectors, e.sum FROM units u JOIN files f ON f.id = u.file"
        " JOIN embeddings e ON e.model = ? AND e.key = u.key"
        " WHERE f.path = ? AND u.start_line <= ? AND u.end_line >= ? ORDER BY u.end_line - u.start_line LIMIT 1",
        (source.bundle.fingerprint, path, line, line),
    )
    if not rows:
        return None
    unit, *stored = rows[0]
    blob = sound(*stored)
    code, _, _ = unpack(source.store, [blob], [blob], source.bundle.dim)
    mean = code.mean(axis=0)
    return unit, mean / max(float(np.linalg.norm(mean)), 1e-12)
