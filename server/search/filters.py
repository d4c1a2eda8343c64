"""Which units a query's filters allow."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from pathspec import GitIgnoreSpec

from ..index.store import Store
from .answer import Query

Ids = npt.NDArray[np.int64]

_GLOB = re.compile(r"[*?\[]")


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


def path_matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """A test of relative paths: True where one of the patterns matches.

    A pattern with `*`, `?` or `[` is a glob as in .gitignore (`*.py` at any depth, `src/**/test_*`). Any other has to
    begin at a part of the path, in any case: `http/` the folder, `retry` also retry_policy.py. Raises ValueError for a
    glob that is none.
    """
    globs = [pattern for pattern in patterns if _GLOB.search(pattern)]
    plain = [pattern.lower() for pattern in patterns if not _GLOB.search(pattern)]
    try:
        spec = GitIgnoreSpec.from_lines(globs)
    except (ValueError, re.error) as error:
        raise ValueError(f"not a glob ({error})") from None

    def matches(path: str) -> bool:
        lowered = "/" + path.lower()
        return any("/" + start.lstrip("/") in lowered for start in plain) or spec.match_file(path)

    return matches
