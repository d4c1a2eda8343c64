"""The text that a user types -> a Query: filters taken out, values checked."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from ..index.prepare import TEXT_LANGUAGE
from ..parse import KINDS, LANGUAGES, language_of
from .answer import Query
from .globs import path_matcher

MAX_QUERY = 10_000
"""Characters of a query that are looked at: a whole pasted function, not a whole pasted file."""

MAX_LIMIT = 1_000

_LANGUAGE_NAMES = frozenset(language.name for language in LANGUAGES) | {TEXT_LANGUAGE}

_FILTER, _ORG_FILTER = (
    re.compile(rf'(?:^|(?<=\s))({names}):("[^"]*"|\S*)(?=\s|$)') for names in ("lang|path|kind", "lang|path|kind|repo")
)


class QueryError(ValueError):
    """A query that cannot be answered; the message names what is wrong and what would be right."""


def parse_query(
    text: str,
    limit: int = 10,
    languages: Iterable[str] = (),
    paths: Iterable[str] = (),
    kinds: Iterable[str] = (),
    only: str | None = None,
    repositories: Iterable[str] | None = None,
) -> Query:
    """A Query from typed text and from arguments.

    Filters may stand in the text: `lang:go path:internal/ kind:method retry with backoff`; several values are joined
    by commas (`lang:c,cpp`), one with blanks is quoted. They add to those of the arguments. `repo:` is a filter where
    many repositories are searched, which `repositories` says by not being None; else it is a word like any other.
    Raises QueryError for an empty text, an unknown language or kind, and a limit out of range.
    """
    typed: dict[str, list[str]] = {"lang": [], "path": [], "kind": [], "repo": []}
    filters = _FILTER if repositories is None else _ORG_FILTER
    for name, value in filters.findall(text):
        typed[name] += [part for part in value.strip('"').split(",") if part]
    rest = " ".join(filters.sub(" ", text[:MAX_QUERY]).split())
    if not rest:
        beside = " but for its filters" if any(typed.values()) else ""
        raise QueryError(f"the query is empty{beside}: say in words what the code does, or name a symbol")
    if not 1 <= limit <= MAX_LIMIT:
        raise QueryError(f"limit {limit}: not a number from 1 to {MAX_LIMIT}")
    return Query(
        rest,
        limit,
        frozenset(_language(name) for name in [*languages, *typed["lang"]]),
        tuple(_path(path) for path in [*paths, *typed["path"]]),
        frozenset(_kind(kind) for kind in [*kinds, *typed["kind"]]),
        only,
        (*(repositories or ()), *typed["repo"]),
    )


def _language(name: str) -> str:
    lowered = name.lower()
    if lowered in _LANGUAGE_NAMES:
        return lowered
    by_suffix = language_of(f"x.{lowered}")
    if by_suffix is None:
        raise QueryError(_unknown("language", name, _LANGUAGE_NAMES))
    return by_suffix.name


def _kind(kind: str) -> str:
    lowered = kind.lower()
    if lowered not in KINDS:
        raise QueryError(_unknown("kind", kind, KINDS))
    return lowered


def _path(path: str) -> str:
    """A pattern with `/`. Raises QueryError for a glob that is none, such as `[z-a]`."""
    pattern = path.replace("\\", "/").removeprefix("./")
    try:
        path_matcher([pattern])("x")
    except ValueError as error:
        raise QueryError(f"path {path!r}: {error}") from None
    return pattern


def _unknown(what: str, value: str, known: Iterable[str]) -> str:
    names = sorted(known)
    close = difflib.get_close_matches(value.lower(), names, 1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"unknown {what} {value!r}: {hint}known are {', '.join(names)}"
