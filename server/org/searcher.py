"""A question -> an answer out of the organisation index: the counterpart of `server.search.searcher`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..embed.embedder import Embedder
from ..search.answer import Answer, Hit, Query
from ..search.features import feature_matrix
from ..search.present import Presenter, as_indexed
from ..search.rank import Ranking, Scores, is_symbol, order
from ..search.searcher import Cancelled
from .candidates import Found, OrgUnit, gather, terms_of
from .connect import OrgError, Unanswered, connect, deadline, told
from .filters import allowed, workspaces
from .schema import Schema, models

if TYPE_CHECKING:
    import psycopg

    from ..index.vectors import Vectors

STATEMENT_SECONDS = 5
ANSWER_SECONDS = 8.0
"""For a whole answer, connecting included."""

EF_SEARCH = 300
"""Candidates of the graph's search: as many parts as are asked for."""

RESTARTS = 2
"""Attempts: a connection that rested may have been closed meanwhile, and is made anew once."""


@dataclass(frozen=True)
class OrgHit:
    """A hit and the folder that has its file here, as it is now; None if no folder has."""

    hit: Hit
    root: Path | None


@dataclass(frozen=True)
class OrgAnswer:
    """Hits, best first, and how far they can be relied on."""

    found: tuple[OrgHit, ...]
    answer: Answer
    """The same, as other searches give it."""


class OrgSearcher:
    """Answers questions about what everybody published with one model. Safe to share between threads: calls wait for
    each other."""

    def __init__(self, url: str, embedder: Embedder, told_once: Callable[[str], None] = lambda _: None) -> None:
        """`told_once` hears of what is wrong in the index, each thing once."""
        self.url, self.embedder, self._tell = url, embedder, told_once
        self._schema = Schema.of(embedder.bundle)
        self._ranking = Ranking.shipped()
        self._lock = threading.Lock()
        self._connection: psycopg.Connection | None = None
        self._presenters: dict[Path, Presenter] = {}
        self._known_troubles: set[str] = set()

    def close(self) -> None:
        """Give back the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def search(
        self,
        query: Query,
        cancelled: Callable[[], bool] = lambda: False,
        folders: Mapping[str, Path] | None = None,
    ) -> OrgAnswer:
        """The best hits for a query. `folders` are those that are at hand, by the names that they are published
        under: what is found in them is told as it is there. Raises OrgError, Cancelled, ModelError."""
        start = time.perf_counter()
        vector = None if query.only == "lexical" else self.embedder.embed_queries([query.text])[0]
        with self._lock:
            if cancelled():
                raise Cancelled
            found, scores, units, pending = self._asked(query, vector, cancelled)
        hits = self._hits(found, scores, query.limit, folders or {})
        took = round((time.perf_counter() - start) * 1000, 2)
        return OrgAnswer(
            tuple(hits), Answer(tuple(each.hit for each in hits), pending, units, self._schema.model, took)
        )

    def _asked(
        self, query: Query, vector: Vectors | None, cancelled: Callable[[], bool]
    ) -> tuple[Found, Scores, int, int]:
        """The candidates and their scores, how many units are there, and how many files are not."""
        end = time.monotonic() + ANSWER_SECONDS
        for attempt in range(RESTARTS):
            old = self._connection is not None and not self._connection.closed
            try:
                with self._moment(end) as connection:
                    among = workspaces(connection, query)
                    passing = allowed(connection, query, among)
                    terms = terms_of(connection, query.text, among)
                    if cancelled():
                        raise Cancelled
                    found = gather(connection, query, terms, vector, among, passing, self._note_odd)
                break
            except Unanswered:
                raise
            except OrgError:
                lost = self._connection is None or self._connection.closed
                if not (old and lost) or attempt + 1 == RESTARTS:
                    raise
        if cancelled():
            raise Cancelled
        candidates = found.candidates
        if query.only:
            scores = candidates.lexical if query.only == "lexical" else candidates.dense
        else:
            features = feature_matrix(candidates, terms)
            scores = self._ranking.scores(is_symbol(query.text), candidates, features)
        return found, scores, among.units, among.pending

    @contextmanager
    def _moment(self, end: float) -> Iterator[psycopg.Connection]:
        """All reads inside see one state of the database, and are over in time."""
        connection = self._connection
        if connection is None or connection.closed:
            from psycopg import IsolationLevel

            connection = self._connection = connect(self.url)
            connection.isolation_level, connection.read_only = IsolationLevel.REPEATABLE_READ, True
        try:
            with (
                told(self.url),
                deadline(connection, self.url, max(0.1, end - time.monotonic())),
                connection.transaction(),
            ):
                connection.execute(_SETTINGS)
                self._enter(connection)
                yield connection
        except BaseException:
            if connection.info.transaction_status:  # it is in the midst of something, or lost
                connection.close()
            raise

    def _enter(self, connection: psycopg.Connection) -> None:
        if not self._schema.exists(connection):
            others = sorted(set(models(connection).values()))
            if not others:
                raise OrgError("organisation index: nothing is published there yet; run `meaning-lsp publish`")
            raise OrgError(
                f"organisation index: nothing is published there for the model {self._schema.model} as it is here, but"
                f" for {', '.join(others)}; name that one by --model or the setting `model`, or publish with this one"
            )
        self._schema.enter(connection)

    def _hits(self, found: Found, scores: Scores, limit: int, folders: Mapping[str, Path]) -> list[OrgHit]:
        ranked = order(found.candidates, scores, self._ranking.repeat, limit)
        return [self._hit(found.units[unit], score, folders) for unit, score in ranked]

    def _hit(self, unit: OrgUnit, score: float, folders: Mapping[str, Path]) -> OrgHit:
        """As the file is here, if it is and still has the unit; else as it was published."""
        stored, workspace = unit
        root = folders.get(workspace)
        if root is not None:
            presenter = self._presenters.setdefault(root, Presenter(root, lambda _: None))
            for hit in presenter.hits([(stored, score)], 1):
                return OrgHit(replace(hit, repository=workspace), root)
        return OrgHit(replace(as_indexed(stored, score), repository=workspace), None)

    def _note_odd(self, workspace: str) -> None:
        if workspace not in self._known_troubles:
            self._known_troubles.add(workspace)
            self._tell(
                f"organisation index: {workspace!r} has entries that no meaning-lsp published; they are left out"
            )


_SETTINGS = (
    f"SELECT set_config('statement_timeout', '{STATEMENT_SECONDS}s', true),"
    f" set_config('hnsw.ef_search', '{EF_SEARCH}', true), set_config('hnsw.iterative_scan', 'relaxed_order', true)"
).encode()
