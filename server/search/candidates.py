"""Which units may answer a query: the nearest by vector, the best by full text, and those that bear its name.

Each source gives a few hundred of them at most, whatever the size of the index; all else looks at these alone.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ..embed.bundle import Bundle
from ..index.store import Store, StoredUnit
from ..index.sums import sound
from ..index.vectors import VectorIndex, combine, unpack
from ..index.words import query_stems
from .spelling import meant

Vectors = npt.NDArray[np.float32]

DENSE = 150
"""Candidates by vector."""
LEXICAL = 150
"""Candidates by full text."""
NAMED = 50
"""Candidates by exact name."""

EXACT_UNITS = 5_000
"""Up to so many units that pass the filters, their vectors are compared one by one; above, the graph is asked for
more neighbours than needed and the filter drops some."""
MAX_NEIGHBOURS = 4_000

POSTINGS = 10_000
"""Rows that full text may visit for one query: the rarest words go first, and a word that would pass the bound is
left to the other signals (it is in so many units that it tells little)."""

FIELD_WEIGHTS = (6.0, 2.0, 3.0, 3.0, 1.0)
"""BM25 weights of name, container, doc, path and body when full text chooses its candidates."""

_IDENTIFIER = re.compile(r"[^\W\d]\w*")


class Searchable(Protocol):
    """Where candidates come from: an Index, or the Buffers beside it."""

    store: Store
    vectors: VectorIndex
    bundle: Bundle


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit that may answer, with all that ranking and display need of it."""

    unit: int
    path: str
    language: str
    name: str
    container: str
    kind: str
    start_line: int
    end_line: int
    selection: tuple[int, int, int]
    head: str
    preview: str
    key: bytes
    words: tuple[str, str, str, str, str]
    """Stems of name, container, doc, path and body, as stored."""
    code_cosine: float
    path_cosine: float
    dense: float
    """Cosine of the query and the unit's combined vector; of its best part."""
    lexical: float
    """BM25 with FIELD_WEIGHTS, 0 if full text did not choose it."""
    stamp: str
    digest: bytes
    """Of the file in which the unit stood there."""

    @property
    def unsaved(self) -> bool:
        """Whether it is an open document's; such ids are negative."""
        return self.unit < 0


@dataclass(frozen=True, slots=True)
class Terms:
    """A query as full text sees it."""

    weights: dict[str, float]
    """Stem -> inverse document frequency, the sum is 1. Stems that no unit has are kept: nothing covers them."""
    rare: tuple[str, ...]
    """The stems that full text asks for."""
    identifiers: tuple[str, ...]
    """Words of the query as typed that may be names."""
    rarity: dict[str, float]
    """Stem -> what BM25 weighs it by in this index."""


def terms_of(index: Searchable, text: str) -> Terms:
    """The query's stems with their weights in this index; a word that it lacks is taken for one that was meant."""
    units = index.store.totals().units
    typed = query_stems(text)
    counts = dict(index.store.rows_in("SELECT term, doc FROM vocabulary WHERE term IN (?)", typed))
    guesses = {stem: guess for stem in typed if stem not in counts and (guess := meant(index.store, stem))}
    counts.update(guesses.values())
    stems = list(dict.fromkeys(guesses[stem][0] if stem in guesses else stem for stem in typed))
    frequency = {stem: math.log(1 + (units + 1) / (counts.get(stem, 0) + 0.5)) for stem in stems}
    total = sum(frequency.values()) or 1.0
    rare: list[str] = []
    visited = 0
    for stem in sorted((s for s in stems if s in counts), key=counts.__getitem__):
        visited += counts[stem]
        if visited > POSTINGS and rare:
            break
        rare.append(stem)
    identifiers = tuple(dict.fromkeys(_IDENTIFIER.findall(text)))
    weights = {stem: value / total for stem, value in frequency.items()}
    return Terms(weights, tuple(rare), identifiers, {stem: _rarity(counts.get(stem, 0), units) for stem in stems})


def _rarity(having: int, units: int) -> float:
    """A word's weight in FTS5's bm25, which never lets it fall to nothing."""
    return max(1e-6, math.log((max(0, units - having) + 0.5) / (having + 0.5)))


def gather(
    index: Searchable, terms: Terms, vector: Vectors | None, allowed: frozenset[int] | None, lexical: bool = True
) -> list[Candidate]:
    """The candidates of a query, in no order. `vector` [dim] is None when only full text is asked.

    Raises DamagedStore where tables that are written together disagree.
    """
    scores = _by_text(index, terms, allowed) if lexical else {}
    certain = set(scores) | (_by_name(index, terms, allowed) if lexical else set())
    nearest = _by_vector(index, vector, allowed) if vector is not None else set()
    found = _load(index, certain | nearest, scores, vector)
    if not certain <= {candidate.unit for candidate in found}:  # of the nearest, some may be gone
        raise index.store.damaged("full text knows units that are not there")
    return found


def _by_vector(index: Searchable, vector: Vectors, allowed: frozenset[int] | None) -> set[int]:
    if allowed is not None and len(allowed) <= EXACT_UNITS:
        return {unit for unit, _ in index.vectors.search_among(vector, allowed, DENSE)}
    count = DENSE
    if allowed is not None:
        count = min(MAX_NEIGHBOURS, math.ceil(2 * DENSE * index.store.totals().units / len(allowed)))
    seen = -1
    while True:
        found = [unit for unit, _ in index.vectors.search(vector, count)]
        passing = _living(index, found) if allowed is None else allowed
        passed = [unit for unit in found if unit in passing]
        # A function that is edited again and again leaves vectors nearest to what asks for it: look beyond them.
        if len(passed) >= DENSE or len(found) == seen or count == MAX_NEIGHBOURS:
            return set(passed[:DENSE])
        seen, count = len(found), min(MAX_NEIGHBOURS, 4 * count)


def _living(index: Searchable, units: Iterable[int]) -> set[int]:
    """Those of `units` that are not gone."""
    return {unit for (unit,) in index.store.rows_in("SELECT id FROM units WHERE id IN (?)", units)}


def _by_text(index: Searchable, terms: Terms, allowed: frozenset[int] | None) -> dict[int, float]:
    if not terms.rare:
        return {}
    match = " OR ".join(f'"{stem}"' for stem in terms.rare)
    # The unary plus keeps SQLite from asking full text once for each allowed id.
    passes = "" if allowed is None else "AND +rowid IN (SELECT value FROM json_each(?3))"
    rows = index.store.rows(
        f"SELECT rowid, bm25(words, {', '.join(map(str, FIELD_WEIGHTS))}) AS score FROM words"
        f" WHERE words MATCH ?1 {passes} ORDER BY score LIMIT ?2",
        [match, LEXICAL, *([] if allowed is None else [json.dumps(list(allowed))])],
    )
    return {unit: -score for unit, score in rows}


def _by_name(index: Searchable, terms: Terms, allowed: frozenset[int] | None) -> set[int]:
    found: set[int] = set()
    for name in terms.identifiers:
        rows = index.store.rows("SELECT id FROM units WHERE name = ? COLLATE NOCASE", (name,))
        passed = (unit for (unit,) in rows if allowed is None or unit in allowed)
        found.update(islice(passed, NAMED))
    return found


def _load(
    index: Searchable, units: Iterable[int], lexical: dict[int, float], vector: Vectors | None
) -> list[Candidate]:
    chosen = list(units)
    cosines = {} if vector is None else _cosines(index, chosen, vector)
    found = index.store.stored_units(chosen)
    return [_candidate(each, cosines.get(each.id, _FAR), lexical.get(each.id, 0.0)) for each in found]


def _candidate(stored: StoredUnit, cosines: tuple[float, float, float], lexical: float) -> Candidate:
    key, name, container, kind, start_line, end_line, line, first, last, head, preview, _ = stored.columns
    words = stored.words
    return Candidate(
        stored.id, stored.path, stored.language, name, container, kind, start_line, end_line, (line, first, last),
        head, preview, key, (words[0], words[1], words[2], words[3], words[4]), *cosines, lexical,
        stored.stamp, stored.digest,
    )  # fmt: skip


_FAR = (0.0, 0.0, 0.0)


def _cosines(index: Searchable, units: Iterable[int], vector: Vectors) -> dict[int, tuple[float, float, float]]:
    """Unit -> cosine with its code, with its path, with both combined; of the part that is best combined."""
    dim = len(vector)
    rows = index.store.rows_in(
        "SELECT u.id, e.vectors, e.sum, p.vectors, p.sum FROM units u CROSS JOIN files f ON f.id = u.file"
        " CROSS JOIN embeddings e ON e.model = ? AND e.key = u.key"
        " CROSS JOIN embeddings p ON p.model = e.model AND p.key = f.path_key WHERE u.id IN (?)",
        units,
        (index.bundle.fingerprint,),
    )
    sound_code, sound_paths = [sound(*row[1:3]) for row in rows], [sound(*row[3:5]) for row in rows]
    code, path, counts = unpack(index.store, sound_code, sound_paths, dim)
    scores = np.stack([code @ vector, path @ vector, combine(code, path) @ vector], axis=1)
    found: dict[int, tuple[float, float, float]] = {}
    place = 0
    for (unit, *_), count in zip(rows, counts.tolist(), strict=True):
        parts = scores[place : place + count]
        place += count
        found[unit] = tuple(parts[parts[:, 2].argmax()].tolist())
    return found
