"""Which units a query's filters allow."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt

from ..index.store import Store
from .answer import Query
from .globs import path_matcher

Ids = npt.NDArray[np.int64]


def allowed_units(store: Store, query: Query) -> Ids | None:
    """Ids of the units that pass the query's filters, ascending; None if it has none."""
    if not (query.languages or query.paths or query.kinds):
        return None
    conditions, values = [], list[str]()
    if query.languages or query.paths:
        conditions.append("file IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(_allowed_files(store, query)))
    if query.kinds:
        conditions.append(f"kind IN ({','.join('?' * len(query.kinds))})")
        values.extend(query.kinds)
    rows = store.rows(f"SELECT id FROM units WHERE {' AND '.join(conditions)}", values)
    return np.sort(np.fromiter((unit for (unit,) in rows), np.int64, len(rows)))


def _allowed_files(store: Store, query: Query) -> list[int]:
    rows = store.rows("SELECT id, path, language FROM files WHERE skipped = ''")
    matches = path_matcher(query.paths) if query.paths else lambda _: True
    return [file for file, path, language in rows if language in (query.languages or (language,)) and matches(path)]
