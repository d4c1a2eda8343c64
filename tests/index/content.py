"""What an index holds, in a form that two indexes of one tree have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from server.index.index import Index
from server.index.segment import TERM_BYTES

UNIT_KEY = 4
"""Its place in a row of `content`; None for a file without units."""


def content(index: Index) -> list[tuple[Any, ...]]:
    """Every unit with its place, its full text and its vectors, in the order of the files; ids left out."""
    return index.store.rows(
        "SELECT f.path, f.digest, f.language, f.skipped, u.key, u.name, u.container, u.kind, u.start_line,"
        " u.end_line, u.name_line, u.name_start, u.name_end, u.preview,"
        " t.terms, e.vectors, p.vectors"
        " FROM files f LEFT JOIN units u ON u.file = f.id LEFT JOIN terms t ON t.unit = u.id"
        " LEFT JOIN embeddings e ON e.model = ?1 AND e.key = u.key"
        " LEFT JOIN embeddings p ON p.model = ?1 AND p.key = f.path_key"
        " ORDER BY f.path, u.start_line, u.end_line DESC, u.name",
        (index.bundle.fingerprint,),
    )


def orphans(index: Index) -> list[tuple[Any, ...]]:
    """Full text and units that nothing owns: none, ever."""
    return index.store.rows(
        "SELECT unit FROM terms WHERE unit NOT IN (SELECT id FROM units)"
        " UNION ALL SELECT id FROM units WHERE file NOT IN (SELECT id FROM files)"
    )


def neighbours(index: Index, seed: int = 0) -> dict[str, float]:
    """What a random vector finds among the living units: `path:name` -> cosine."""
    query = np.random.default_rng(seed).normal(size=index.bundle.dim).astype(np.float32)
    query /= np.linalg.norm(query)
    index.vectors.follow()
    units, cosines = index.vectors.search(query, 1000)
    found = dict(zip(units.tolist(), cosines.tolist(), strict=True))
    rows = index.store.rows_in(
        "SELECT u.id, f.path, u.name FROM units u JOIN files f ON f.id = u.file WHERE u.id IN (?)", found
    )
    return {f"{path}:{name}": found[unit] for unit, path, name in rows}


def full_text(index: Index) -> dict[str, object]:
    """What full text has of the living units: how many there are, how long, and how many have each term."""
    index.postings.follow()
    terms: set[int] = set()
    for (packed,) in index.store.rows("SELECT terms FROM terms"):
        terms.update(np.frombuffer(packed, np.uint32, len(packed) // TERM_BYTES).tolist())
    known = sorted(terms)
    return {
        "units": index.postings.units,
        "mean length": round(index.postings.mean_length, 6),
        "units with each term": dict(zip(known, index.postings.frequencies(known).tolist(), strict=True)),
    }
