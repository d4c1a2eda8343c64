"""Which units a query's filters allow."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pathspec import GitIgnoreSpec

from ..index.store import Store
from .answer import Query

_GLOB = re.compile(r"[*?\[]")


def allowed_units(store: Store, query: Query) -> frozenset[int] | None:
    """Ids of the units that pass the query's filters; None if it has none."""
    if not (query.languages or query.paths or query.kinds):
        return None
    sql = "SELECT u.id, f.path FROM units u JOIN files f ON f.id = u.file"
    conditions = []
    for column, values in (("f.language", query.languages), ("u.kind", query.kinds)):
        if values:
            conditions.append(f"{column} IN ({','.join('?' * len(values))})")
    if conditions:
        sql += " WHERE " + " AND ".join(conditions)
    rows = store.rows(sql, [*query.languages, *query.kinds])
    if not query.paths:
        return frozenset(unit for unit, _ in rows)
    matches = path_matcher(query.paths)
    passed = {path for path in {path for _, path in rows} if matches(path)}
    return frozenset(unit for unit, path in rows if path in passed)


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
