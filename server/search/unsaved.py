"""Candidates from open documents, comparable with those of the index."""

from __future__ import annotations

from dataclasses import replace

from ..index.buffers import Buffers
from .answer import Query
from .candidates import Candidates, Terms, Vectors, gather, rare_of
from .filters import allowed_units


def gather_unsaved(buffers: Buffers, query: Query, terms: Terms, vector: Vectors | None) -> Candidates:
    """What open documents have for a query whose `terms` the index has weighed: a few documents say nothing of how rare
    a word is. The ids of units and files are negative."""
    here = replace(terms, rare=rare_of(buffers.postings.frequencies(terms.terms)))
    found = gather(buffers, here, vector, allowed_units(buffers.store, query), lexical=query.only != "dense")
    paths = {-file: path for file, path in found.paths.items()}
    return replace(found, units=-found.units, files=-found.files, paths=paths)
