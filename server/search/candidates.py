"""Which units may answer a query: the nearest by vector, the best by full text, and those that bear its name.

Each source gives a few hundred of them at most, whatever the size of the index; all else looks at these alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ..embed.bundle import Bundle
from ..index.paths import Paths
from ..index.postings import Postings
from ..index.segment import Bytes, Counts, Ids, among
from ..index.store import Store
from ..index.vectors import VectorIndex
from ..index.words import query_stems, term
from .bm25 import damping, impact, rarity
from .spelling import meant

Vectors = npt.NDArray[np.float32]
Scores = npt.NDArray[np.float32]

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
"""Units that full text may look at for one query: the rarest words go first, and a word that would pass the bound is
left to the other signals (it is in so many units that it tells little)."""

_IDENTIFIER = re.compile(r"[^\W\d]\w*")


class Searchable(Protocol):
    """Where candidates come from: an Index, or the Buffers beside it."""

    store: Store
    vectors: VectorIndex
    postings: Postings
    paths: Paths
    bundle: Bundle


@dataclass(frozen=True, slots=True)
class Terms:
    """A query as full text sees it: its stems, each once, and what they weigh in an index."""

    terms: tuple[int, ...]
    """See `server.index.words`."""
    stems: tuple[str, ...]
    weights: Scores
    """Of each: its inverse document frequency, the sum is 1. Stems that no unit has are kept: nothing covers them."""
    rarity: Scores
    """Of each: what BM25 weighs it by."""
    rare: tuple[int, ...]
    """Places of those that full text asks for."""
    mean_length: float
    """Words of a unit of the index."""
    identifiers: tuple[str, ...]
    """Words of the query as typed that may be names."""


NO_TERMS = Terms((), (), np.empty(0, np.float32), np.empty(0, np.float32), (), 1.0, ())


@dataclass(frozen=True, slots=True)
class Candidates:
    """Units that may answer, in no order, with what ranking asks of them; all of one length."""

    units: Ids
    """Those of open documents are negative, and so are their files."""
    files: Ids
    kinds: Bytes
    """The place of each one's kind among KINDS."""
    lines: Counts
    """How many it has."""
    name_lengths: Bytes
    """Words of its name."""
    counts: Counts
    """How often it has each term of the query, by field: [units, terms]."""
    lexical: Scores
    """BM25; 0 where full text did not choose the unit."""
    named: Bytes
    """2 where its name is a word of the query, 1 where it is in another case."""
    dense: Scores
    """Cosine of the query and the unit's combined vector, of its best part; 0 without a query's vector."""
    path_cosine: Scores
    """Cosine of the query and the path's vector."""
    paths: dict[int, str]
    """Of the files."""

    def __len__(self) -> int:
        return len(self.units)

    def where(self, chosen: npt.NDArray[np.bool_]) -> Candidates:
        """Those of them that are chosen."""
        return replace(self, **{name: getattr(self, name)[chosen] for name in _COLUMNS})

    def beside(self, others: Candidates) -> Candidates:
        """These and others."""
        columns = {name: np.concatenate([getattr(self, name), getattr(others, name)]) for name in _COLUMNS}
        return replace(self, **columns, paths=self.paths | others.paths)


_COLUMNS = tuple(field.name for field in fields(Candidates) if field.name != "paths")


def terms_of(index: Searchable, text: str) -> Terms:
    """The query's stems with their weights in this index; a word that it lacks is taken for one that was meant."""
    typed = query_stems(text)
    having = index.postings.frequencies([term(stem) for stem in typed])
    unknown = [stem for stem, units in zip(typed, having.tolist(), strict=True) if not units]
    guesses = {stem: guess for stem in unknown if (guess := meant(index.postings, stem))}
    stems = list(dict.fromkeys(guesses.get(stem, stem) for stem in typed))
    if guesses:
        having = index.postings.frequencies([term(stem) for stem in stems])
    return weigh(text, stems, having, index.postings.units, index.postings.mean_length)


def weigh(text: str, stems: Sequence[str], having: Ids, units: int, mean_length: float) -> Terms:
    """The terms of a query's `stems`, when so many of all units have each."""
    frequency = np.array([math.log(1 + (units + 1) / (count + 0.5)) for count in having.tolist()], np.float32)
    return Terms(
        tuple(map(term, stems)),
        tuple(stems),
        frequency / max(float(frequency.sum()), 1e-6),
        np.array([rarity(count, units) for count in having.tolist()], np.float32),
        rare_of(having),
        mean_length,
        tuple(dict.fromkeys(_IDENTIFIER.findall(text))),
    )


def rare_of(having: Ids) -> tuple[int, ...]:
    """Places of the terms that full text asks for, when so many units have each: the rarest, within POSTINGS."""
    order = [place for place in np.argsort(having, kind="stable").tolist() if having[place]]
    visited = np.cumsum(having[order])
    return tuple(place for number, place in enumerate(order) if visited[number] <= POSTINGS or number == 0)


def gather(
    index: Searchable, terms: Terms, vector: Vectors | None, allowed: Ids | None, lexical: bool = True
) -> Candidates:
    """The candidates of a query. `vector` [dim] is None when only full text is asked; `allowed` are the ids of the
    units that pass its filters, ascending, None for all."""
    scored = _by_text(index, terms, allowed) if lexical else {}
    named = _by_name(index, terms, allowed) if lexical else {}
    nearest = _by_vector(index, vector, allowed) if vector is not None else np.empty(0, np.int64)
    units = np.unique(np.concatenate([np.array([*scored, *named], np.int64), nearest]))
    units = units[index.postings.living(units)]
    found = index.postings.find(units, terms.terms)
    files, of_unit = np.unique(found.files, return_inverse=True)
    nothing = np.zeros(len(units), np.float32)
    return Candidates(
        units,
        *found,
        _at(units, scored),
        _at(units, named).astype(np.uint8),
        nothing if vector is None else index.vectors.cosines(vector, units),
        nothing if vector is None else index.paths.cosines(vector, files.tolist())[of_unit],
        index.paths.of(files.tolist()),
    )


def _at(units: Ids, values: Mapping[int, float]) -> Scores:
    """The values of those `units`, ascending, that have one; 0 of the others."""
    having = np.fromiter(values.keys(), np.int64, len(values))
    here = among(having, units)
    found = np.zeros(len(units), np.float32)
    found[np.searchsorted(units, having[here])] = np.fromiter(values.values(), np.float32, len(values))[here]
    return found


def _by_vector(index: Searchable, vector: Vectors, allowed: Ids | None) -> Ids:
    """The nearest units that are not gone."""
    if allowed is not None and len(allowed) <= EXACT_UNITS:
        nearest, _ = index.vectors.search_among(vector, allowed, DENSE)
        return nearest
    count = DENSE
    if allowed is not None:
        count = min(MAX_NEIGHBOURS, math.ceil(2 * DENSE * index.postings.units / len(allowed)))
    seen = -1
    while True:
        found, _ = index.vectors.search(vector, count)
        passed: Ids = found[index.postings.living(found) & (True if allowed is None else among(found, allowed))]
        # A function that is edited again and again leaves vectors nearest to what asks for it: look beyond them.
        if len(passed) >= DENSE or len(found) == seen or count == MAX_NEIGHBOURS:
            return passed[:DENSE]
        seen, count = len(found), min(MAX_NEIGHBOURS, 4 * count)


def _by_text(index: Searchable, terms: Terms, allowed: Ids | None) -> dict[int, float]:
    """The best units by BM25, and their scores."""
    rare = [float(terms.rarity[place]) for place in terms.rare]
    units, scores = index.postings.sums(
        [terms.terms[place] for place in terms.rare],
        lambda number, counts, lengths: impact(counts, damping(lengths, terms.mean_length), rare[number]),
    )
    if allowed is not None:
        passing = among(units, allowed)
        units, scores = units[passing], scores[passing]
    if len(units) > LEXICAL:
        best = np.argpartition(-scores, LEXICAL)[:LEXICAL]
        units, scores = units[best], scores[best]
    return dict(zip(units.tolist(), scores.tolist(), strict=True))


def _by_name(index: Searchable, terms: Terms, allowed: Ids | None) -> dict[int, int]:
    """Units whose name is a word of the query: see `Candidates.named`."""
    found: dict[int, int] = {}
    for word in terms.identifiers:
        most = NAMED if allowed is None else -1  # thousands may be called `get`
        rows = index.store.rows("SELECT id, name FROM units WHERE name = ? COLLATE NOCASE LIMIT ?", (word, most))
        units = np.array([unit for unit, _ in rows], np.int64)
        passing = np.ones(len(units), bool) if allowed is None else among(units, allowed)
        passed = ((unit, name) for (unit, name), passes in zip(rows, passing.tolist(), strict=True) if passes)
        for unit, name in islice(passed, NAMED):
            found[unit] = named(name, terms.identifiers)
    return found


def named(name: str, identifiers: Collection[str]) -> int:
    """See `Candidates.named`."""
    if name in identifiers:
        return 2
    return int(name.casefold() in {each.casefold() for each in identifiers})
