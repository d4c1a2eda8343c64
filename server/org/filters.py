"""Which rows a query's filters allow, as conditions of SQL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pathspec import GitIgnoreSpec

from ..search.answer import Query
from .connect import OrgError
from .names import repository_matcher

if TYPE_CHECKING:
    import psycopg

SHOWN_NAMES = 10
"""Of the workspaces there are, told to who names one that is not."""

_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Workspaces:
    """Those that a query is about, and their numbers."""

    names: dict[int, str]
    units: int
    words: int
    """Of all units together."""
    pending: int
    """Files that a publication which runs, or broke off, has still to send."""
    all: bool
    """Whether they are all there are."""


@dataclass(frozen=True)
class Allowed:
    """The condition that a row of `units` or `parts` has to meet."""

    sql: str
    values: dict[str, Any] = field(default_factory=dict)
    units: int = 0
    """No more than so many meet it."""


def workspaces(connection: psycopg.Connection, query: Query) -> Workspaces:
    """Raises OrgError where no name matches: to find nothing would not tell that nothing was searched."""
    rows = connection.execute("SELECT id, name, units, words, pending FROM workspaces ORDER BY name").fetchall()
    matches = repository_matcher(query.repositories)
    chosen = [row for row in rows if matches(row[1])]
    if rows and not chosen:
        names = ", ".join(row[1] for row in rows[:SHOWN_NAMES])
        more = f" and {len(rows) - SHOWN_NAMES} more" if len(rows) > SHOWN_NAMES else ""
        raise OrgError(f"no repository is called {' or '.join(query.repositories)}: there are {names}{more}")
    units, words, pending = (sum(row[column] for row in chosen) for column in (2, 3, 4))
    return Workspaces({row[0]: row[1] for row in chosen}, units, words, pending, len(chosen) == len(rows))


def allowed(connection: psycopg.Connection, query: Query, among: Workspaces) -> Allowed:
    """The query's filters. Those on paths are answered here and now, by the files' ids."""
    conditions = list[str]()
    values = dict[str, Any]()
    if not among.all:
        conditions.append("workspace = ANY(%(workspaces)s)")
        values["workspaces"] = list(among.names)
    if query.languages:
        conditions.append("language = ANY(%(languages)s)")
        values["languages"] = sorted(query.languages)
    units = among.units
    if query.paths:
        where = " AND ".join([*conditions, _path_condition(query.paths, values)])
        rows = connection.execute(f"SELECT id, units FROM files WHERE {where}".encode(), values).fetchall()
        conditions = ["file = ANY(%(files)s)"]
        values = {"files": [file for file, _ in rows]}
        units = sum(count for _, count in rows)
    if query.kinds:
        conditions.append("kind = ANY(%(kinds)s)")
        values["kinds"] = sorted(query.kinds)
    return Allowed(" AND ".join(conditions) or "true", values, units)


def _path_condition(patterns: Sequence[str], values: dict[str, Any]) -> str:
    """As `server.search.globs.path_matcher`, but that it may allow too much: what a `!` takes out is left to it."""
    values["starts"] = ["/" + start.lower().lstrip("/") for start in patterns if not _GLOB.search(start)]
    globs = GitIgnoreSpec.from_lines(pattern for pattern in patterns if _GLOB.search(pattern))
    # Python's named groups are all that PostgreSQL's expressions lack.
    values["globs"] = [
        re.sub(r"\(\?P<\w+>", "(?:", each.regex.pattern) for each in globs.patterns if each.include and each.regex
    ]
    return (
        "(path ~ ANY(%(globs)s) OR EXISTS (SELECT FROM unnest(%(starts)s::text[]) AS start"
        " WHERE strpos('/' || lower(path), start) > 0))"
    )
