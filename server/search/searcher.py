"""A question -> an answer: the one entrance for the command line and the language server."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from ..index.index import Index
from ..index.vectors import Vectors, unpack
from .answer import Answer, Hit, Query
from .candidates import Candidate, Terms, gather, terms_of
from .features import feature_matrix
from .filters import allowed_units
from .present import Presenter
from .rank import Ranking, Scores, is_symbol, order

SPARE = 10
"""Candidates ranked beyond the limit, in place of those that turn out to be gone from their file."""

NO_TERMS = Terms({}, (), ())


class Cancelled(Exception):
    """Whoever asked does not want the answer any more."""


class Searcher:
    """Answers questions about one index. Never waits for an update of it; safe to share between threads."""

    def __init__(self, index: Index, ranking: Ranking | None = None) -> None:
        self.index = index
        self._ranking = ranking or Ranking.shipped()

    def search(self, query: Query, cancelled: Callable[[], bool] = lambda: False) -> Answer:
        """The best hits for a query. Raises Cancelled, ModelError or StoreError."""
        start = time.perf_counter()
        vector = None if query.only == "lexical" else self.index.embedder.embed_queries([query.text])[0]
        candidates, scores = self.score(query, vector, cancelled)
        return self._answer(start, candidates, scores, query.limit, self._ranking.repeat)

    def similar(self, path: str, line: int, limit: int) -> Answer:
        """Units that do what the unit at a line (from 0) of a file does, itself left out; empty if none is there."""
        start = time.perf_counter()
        found = self._unit_at(path, line)
        if found is None:
            return self._answer(start, [], np.empty(0, np.float32), limit, repeat=0)
        unit, vector = found
        self.index.vectors.follow()
        candidates = [c for c in gather(self.index, NO_TERMS, vector, None, lexical=False) if c.unit != unit]
        scores = np.array([c.code_cosine for c in candidates], np.float32)
        return self._answer(start, candidates, scores, limit, repeat=0)

    def score(
        self, query: Query, vector: Vectors | None, cancelled: Callable[[], bool] = lambda: False
    ) -> tuple[list[Candidate], Scores]:
        """The candidates of a query and their scores, unordered."""
        self.index.vectors.follow()
        with self.index.store.snapshot():
            allowed = allowed_units(self.index.store, query)
            terms = terms_of(self.index, query.text)
            if cancelled():
                raise Cancelled
            candidates = gather(self.index, terms, vector, allowed, lexical=query.only != "dense")
        if cancelled():
            raise Cancelled
        if query.only == "lexical":
            return candidates, np.array([c.lexical for c in candidates], np.float32)
        if query.only == "dense":
            return candidates, np.array([c.dense for c in candidates], np.float32)
        return candidates, self._ranking.scores(is_symbol(query.text), candidates, feature_matrix(candidates, terms))

    def _unit_at(self, path: str, line: int) -> tuple[int, Vectors] | None:
        rows = self.index.store.rows(
            "SELECT u.id, e.vectors FROM units u JOIN files f ON f.id = u.file"
            " JOIN embeddings e ON e.model = ? AND e.key = u.key"
            " WHERE f.path = ? AND u.start_line <= ? AND u.end_line >= ? ORDER BY u.end_line - u.start_line LIMIT 1",
            (self.index.bundle.id, path, line, line),
        )
        if not rows:
            return None
        unit, blob = rows[0]
        code, _, _ = unpack(self.index.store, [blob], [blob], self.index.bundle.dim)
        mean = code.mean(axis=0)
        return unit, mean / max(float(np.linalg.norm(mean)), 1e-12)

    def _answer(self, start: float, candidates: list[Candidate], scores: Scores, limit: int, repeat: float) -> Answer:
        ranked = order(candidates, scores, repeat, limit + SPARE)
        hits = self._hits(ranked)[:limit]
        return Answer(
            tuple(hits),
            self.index.pending(),
            self.index.store.totals().units,
            self.index.bundle.id,
            round((time.perf_counter() - start) * 1000, 2),
        )

    def _hits(self, ranked: list[tuple[Candidate, float]]) -> list[Hit]:
        paths = {c.path for c, _ in ranked}
        stamps = self.index.store.rows_in("SELECT path, stamp FROM files WHERE path IN (?)", paths)
        presenter = Presenter(self.index.root, dict(stamps))
        return [hit for c, score in ranked if (hit := presenter.hit(c, score))]
