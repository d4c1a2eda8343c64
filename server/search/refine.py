"""Two tiers: what the quick model found is put in order by a slower and better one.

Its vectors are computed in the background (`server.index.backfill`), and here, for the best candidates that have none
yet, as far as a budget of time goes. A candidate without one keeps the place that the quick model gave it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..embed.bundle import ModelError
from ..embed.pace import Pace
from ..index.embeddings import Embeddings
from ..index.index import Index
from ..index.prepare import Embeddable, prepare_text
from ..index.store import StoredUnit
from ..index.vectors import Vectors
from ..parse import NotText, decode
from ..workspace.read import read_regular
from .candidates import Candidates
from .rank import Scores

log = logging.getLogger(__name__)

REFINED = 50
"""Candidates that the better model looks at, the best of the quick one's."""

COMPARABLE = 5
"""Of them, so many have to have its vector: its cosines say something beside each other alone."""

BATCH_TEXTS = 8
"""Texts that are embedded at once, where a model is fast enough."""

REMEMBERED = 2_000
"""Vectors that were computed for a search and may not be stored yet."""


StoredUnits: TypeAlias = Callable[[Collection[int]], list[StoredUnit]]


class Refiner:
    """The second tier of one index. Safe to share between threads."""

    def __init__(
        self,
        index: Index,
        pace: Callable[[], Pace | None],
        budget: float,
        unsaved: Callable[[str], str | None] = lambda _: None,
        missed: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> None:
        """`pace` gives the better model's embedder, None while it is not there. `budget` is in seconds for one search.
        `unsaved` tells the text of an open document, by its path. `missed` hears which files had candidates without a
        vector, the best first."""
        self._index, self._pace, self._budget = index, pace, budget
        self._unsaved, self._missed = unsaved, missed
        self._lock = threading.Lock()
        self._computed: dict[bytes, Vectors] = {}
        """The latest last."""

    def refined(self, query: str, candidates: Candidates, scores: Scores, weight: float, stored: StoredUnits) -> Scores:
        """The scores, with `weight` times what the better model thinks more of each, or as much as its bundle says that
        its opinion weighs. `stored` tells the units of ids. A model that fails costs an answer nothing but its opinion.
        Raises StoreError."""
        if (pace := self._pace()) is None:
            return scores
        measured = pace.embedder.bundle.refine_weight
        weight = weight if measured is None else measured
        if not weight:
            return scores
        try:
            places, differences = self.opinion(pace, query, candidates, scores, stored)
        except ModelError as error:
            log.warning("not refined: %s", error)
            return scores
        scores = scores.copy()
        scores[places] += weight * differences
        return scores

    def opinion(
        self, pace: Pace, query: str, candidates: Candidates, scores: Scores, stored: StoredUnits
    ) -> tuple[npt.NDArray[np.int64], Scores]:
        """Places among the candidates, and how much nearer to the query the better model sees each of them than the
        quick one does: its cosines are brought to the other's mean and spread, for every model has its own.

        Raises ModelError and StoreError.
        """
        end = time.perf_counter() + self._budget
        best = np.argsort(-scores, kind="stable")[:REFINED]
        known_units = {unit.id: unit for unit in stored(candidates.units[best].tolist())}
        units = {
            place: known_units[unit] for place in best.tolist() if (unit := candidates.units[place]) in known_units
        }
        vectors, wanted = self._known(pace, list(units.values()))
        if len(vectors) < COMPARABLE and time.perf_counter() >= end:
            return best[:0], scores[:0]
        [asked] = pace.embedder.embed_queries([query])  # first, for it has to be, and what it takes is of the budget
        if wanted:
            vectors.update(self._compute(pace, wanted, end))
        known = np.array([place for place, unit in units.items() if unit.key in vectors], np.int64)
        if len(known) < COMPARABLE:
            return known[:0], scores[:0]
        theirs = np.array([(vectors[units[place].key] @ asked).max() for place in known.tolist()], np.float32)
        ours = candidates.dense[known]
        alike = (theirs - theirs.mean()) / max(float(theirs.std()), 1e-6) * ours.std() + ours.mean()
        return known, alike - ours

    def _known(self, pace: Pace, best: Sequence[StoredUnit]) -> tuple[dict[bytes, Vectors], list[StoredUnit]]:
        """The better model's vectors by key, as far as they are stored or were computed for an earlier search, and one
        candidate for each that is not there."""
        found = Embeddings(self._index.store, pace.embedder.bundle).of({c.key for c in best})
        with self._lock:
            found.update((c.key, self._computed[c.key]) for c in best if c.key in self._computed)
        missing = {c.key: c for c in reversed(best) if c.key not in found}
        wanted = [missing[key] for key in reversed(missing)]
        if wanted:
            self._missed([*dict.fromkeys(c.path for c in wanted)])
        return found, wanted

    def _compute(self, pace: Pace, wanted: Sequence[StoredUnit], end: float) -> dict[bytes, Vectors]:
        """Vectors of the first of `wanted`, as many as the time is enough for."""
        found: dict[bytes, Vectors] = {}
        waiting: list[Embeddable] = []
        for texts in _batches(self._texts(wanted), end):
            waiting += texts
            while waiting:
                some = [(text.text, text.breaks) for text in waiting]
                vectors = pace.embed_code(some, end - time.perf_counter(), least=0)
                if not vectors:
                    break
                found.update(zip((text.key for text in waiting), vectors, strict=False))
                waiting = waiting[len(vectors) :]
        with self._lock:
            self._computed.update(found)
            for key in list(islice(self._computed, max(0, len(self._computed) - REMEMBERED))):
                del self._computed[key]
        return found

    def _texts(self, wanted: Iterable[StoredUnit]) -> Iterator[Embeddable]:
        """What is to be embedded of each candidate that is still in its file; each file is looked at once."""
        files: dict[tuple[str, bool], dict[bytes, Embeddable]] = {}
        for c in wanted:
            unsaved = c.id < 0
            file = (c.path, unsaved)
            if file not in files:
                text = self._unsaved(c.path) if unsaved else self._saved(c.path)
                texts = prepare_text(c.path, text).texts if text is not None else ()
                files[file] = {each.key: each for each in texts}
            if c.key in files[file]:
                yield files[file][c.key]

    def _saved(self, path: str) -> str | None:
        with suppress(OSError, NotText):
            return decode(read_regular(self._index.root / path))
        return None


def _batches(texts: Iterator[Embeddable], end: float) -> Iterator[list[Embeddable]]:
    """The texts in batches, until it is late: to read them takes time, too."""
    batch: list[Embeddable] = []
    while time.perf_counter() < end and (text := next(texts, None)):
        batch.append(text)
        if len(batch) == BATCH_TEXTS:
            yield batch
            batch = []
    if batch:
        yield batch
