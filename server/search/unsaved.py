"""Candidates from open documents, comparable with those of the index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..index.buffers import Buffers
from .answer import Query
from .candidates import FIELD_WEIGHTS, Candidate, Terms, Vectors, gather, terms_of
from .filters import allowed_units

_K1, _B = 1.2, 0.75
"""FTS5's constants of BM25."""


def gather_unsaved(
    buffers: Buffers, query: Query, terms: Terms, vector: Vectors | None, beside: Sequence[Candidate]
) -> list[Candidate]:
    """What open documents have for a query whose `terms` the index has weighed, `beside` its own candidates.

    Their unit ids are negative. A few documents say nothing of how rare a word is, so their BM25 is reckoned with the
    index's numbers.
    """
    here = replace(terms, rare=terms_of(buffers, query.text).rare)
    lexical = query.only != "dense"
    found = gather(buffers, here, vector, allowed_units(buffers.store, query), lexical)
    usual = _mean_length(beside) or _mean_length(found)
    return [replace(c, unit=-c.unit, lexical=_bm25(c, terms, usual) if c.lexical else 0.0) for c in found]


def _bm25(c: Candidate, terms: Terms, usual_length: float) -> float:
    """As FTS5 defines it: https://www.sqlite.org/fts5.html#the_bm25_function."""
    counts: Counter[str] = Counter()
    for weight, words in zip(FIELD_WEIGHTS, c.words, strict=True):
        for word in words.split():
            if word in terms.rarity:
                counts[word] += weight  # type: ignore[assignment]  # a Counter adds what it is given
    damping = _K1 * (1 - _B + _B * _length(c) / usual_length)
    return sum(terms.rarity[word] * count * (_K1 + 1) / (count + damping) for word, count in counts.items())


def _mean_length(candidates: Sequence[Candidate]) -> float:
    return sum(map(_length, candidates)) / len(candidates) if candidates else 0.0


def _length(c: Candidate) -> int:
    return sum(len(words.split()) for words in c.words)
