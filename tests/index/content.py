"""What an index holds, in a form that two indexes of one tree have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from server.index.index import Index

UNIT_KEY = 4
"""Its place in a row of `content`; None for a file without units."""


def content(index: Index) -> list[tuple[Any, ...]]:
    """Every unit with its place, its full text and its vectors, in the order of the files; ids left out."""
    return index.store.rows(
        "SELECT f.path, f.digest, f.language, f.skipped, u.key, u.name, u.container, u.kind, u.start_line,"
        " u.end_line, u.name_line, u.name_start, u.name_end, u.preview,"
        " w.name, w.container, w.doc, w.path, w.body, e.vectors, p.vectors"
        " FROM files f LEFT JOIN units u ON u.file = f.id LEFT JOIN words w ON w.rowid = u.id"
        " LEFT JOIN embeddings e ON e.model = ?1 AND e.key = u.key"
        " LEFT JOIN embeddings p ON p.model = ?1 AND p.key = f.path_key"
        " ORDER BY f.path, u.start_line, u.end_line DESC, u.name",
        (index.bundle.fingerprint,),
    )


def orphans(index: Index) -> list[tuple[Any, ...]]:
    """Full text and units that nothing owns: none, ever."""
    return index.store.rows(
        "SELECT rowid FROM words WHERE rowid NOT IN (SELECT id FROM units)"
        " UNION ALL SELECT id FROM units WHERE file NOT IN (SELECT id FROM files)"
    )


def neighbours(index: Index, seed: int = 0) -> dict[str, float]:
    """What a random vector finds among the living units: `path:name` -> cosine."""
    query = np.random.default_rng(seed).normal(size=index.bundle.dim).astype(np.float32)
    query /= np.linalg.norm(query)
    index.vectors.follow()
    found = dict(index.vectors.search(query, 1000))
    rows = index.store.rows_in(
        "SELECT u.id, f.path, u.name FROM units u JOIN files f ON f.id = u.file WHERE u.id IN (?)", found
    )
    return {f"{path}:{name}": found[unit] for unit, path, name in rows}
