"""Which units may answer, asked of PostgreSQL, as what ranking takes.

All that hangs on the form of the local search's candidates is here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..index.vectors import Vectors
from ..index.words import query_stems
from ..parse import KINDS
from ..search.answer import Query
from ..search.candidates import DENSE, FIELD_WEIGHTS, LEXICAL, NAMED, POSTINGS, Candidate, Terms
from ..search.filters import path_matcher
from .filters import Allowed, Workspaces
from .names import is_name, is_path
from .wire import IMPACTS, as_text, bm25

if TYPE_CHECKING:
    import psycopg

EXACT_UNITS = 10_000
"""Up to so many units that may pass the filters, vectors are compared one by one: 10 ms. Above, the graph is asked, and
goes on until enough of its answers pass."""

SPARE_PARTS = 2
"""So many times as many parts as units are asked for: a long unit has several."""

SPARE_TEXTS = 2
"""PostgreSQL ranks texts roughly; of so many times as many, the best by BM25 are taken."""

MAX_TEXT = 10_000
"""Characters of a name or a preview. Nothing that we publish comes near."""

MAX_LINE = 2**31 - 2

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_MAX_NAME = 200
"""Characters of a name that are compared; see the index in the schema."""


@dataclass(frozen=True)
class Found:
    """A candidate, and where it is from. The candidate's path begins with the workspace's name: for ranking, all
    workspaces are folders of one tree."""

    candidate: Candidate
    workspace: str
    path: str


def terms_of(connection: psycopg.Connection, text: str, among: Workspaces) -> Terms:
    """The query's stems with their weights in these workspaces."""
    stems = query_stems(text)
    some = "" if among.all else " AND workspace = ANY(%(workspaces)s)"
    rows = connection.execute(
        f"SELECT word, sum(units) FROM words WHERE word = ANY(%(stems)s){some} GROUP BY word".encode(),
        {"stems": stems, "workspaces": list(among.names)},
    ).fetchall()
    counts = {word: int(units) for word, units in rows}
    return _weighed(text, stems, counts, among.units)


def _weighed(text: str, stems: Sequence[str], counts: Mapping[str, int], units: int) -> Terms:
    frequency = {stem: math.log(1 + (units + 1) / (counts.get(stem, 0) + 0.5)) for stem in stems}
    total = sum(frequency.values()) or 1.0
    rare: list[str] = []
    visited = 0
    for stem in sorted((s for s in stems if s in counts), key=counts.__getitem__):
        visited += counts[stem]
        if visited > POSTINGS and rare:
            break
        rare.append(stem)
    identifiers = tuple(dict.fromkeys(_IDENTIFIER.findall(text)))
    weights = {stem: value / total for stem, value in frequency.items()}
    return Terms(weights, tuple(rare), identifiers, {stem: _rarity(counts.get(stem, 0), units) for stem in stems})


def _rarity(having: int, units: int) -> float:
    return max(1e-6, math.log((max(0, units - having) + 0.5) / (having + 0.5)))


def gather(
    connection: psycopg.Connection,
    query: Query,
    terms: Terms,
    vector: Vectors | None,
    among: Workspaces,
    passing: Allowed,
    odd: Callable[[str], None],
) -> list[Found]:
    """The candidates of a query, in no order. `vector` [dim] is None when only full text is asked.

    `odd` hears of rows that nobody of us can have published; they are left out.
    """
    texts, others = set[int](), set[int]()
    if query.only != "dense":
        texts, others = _by_text(connection, terms, passing), _by_name(connection, terms, passing)
    if vector is not None:
        others |= _by_vector(connection, vector, passing)
    found = _matching(_load(connection, texts | others, vector, among, odd), query.paths)
    scores = _text_scores(found, texts, terms, among)
    return [
        replace(each, candidate=replace(each.candidate, lexical=scores.get(each.candidate.unit, 0.0)))
        for each in found
        if each.candidate.unit in scores or each.candidate.unit in others
    ]


def _by_vector(connection: psycopg.Connection, vector: Vectors, passing: Allowed) -> set[int]:
    exactly = " + 0" if passing.units <= EXACT_UNITS else ""  # of which the graph knows nothing
    rows = connection.execute(
        f"SELECT unit FROM parts WHERE {passing.sql} ORDER BY (combined <=> %(vector)s::halfvec){exactly}"
        f" LIMIT {SPARE_PARTS * DENSE}".encode(),
        {**passing.values, "vector": as_text(vector)},
    ).fetchall()
    return set(list(dict.fromkeys(unit for (unit,) in rows))[:DENSE])


def _by_text(connection: psycopg.Connection, terms: Terms, passing: Allowed) -> set[int]:
    if not terms.rare:
        return set()
    quoted = ["'" + stem.replace("'", "''").replace("\\", "\\\\") + "'" for stem in terms.rare]
    values: dict[str, Any] = {"any": " | ".join(quoted), "impacts": list(IMPACTS)}
    for number, (stem, text) in enumerate(zip(terms.rare, quoted, strict=True)):
        values |= {f"stem{number}": text, f"rarity{number}": terms.rarity[stem]}
    score = " + ".join(
        f"%(rarity{number})s * ts_rank(%(impacts)s::real[], lexemes, %(stem{number})s::tsquery)"
        for number in range(len(quoted))
    )
    rows = connection.execute(
        f"SELECT id FROM units WHERE lexemes @@ %(any)s::tsquery AND {passing.sql} ORDER BY {score} DESC, id"
        f" LIMIT {SPARE_TEXTS * LEXICAL}".encode(),
        {**passing.values, **values},
    ).fetchall()
    return {unit for (unit,) in rows}


def _by_name(connection: psycopg.Connection, terms: Terms, passing: Allowed) -> set[int]:
    names = [name for name in terms.identifiers if len(name) <= _MAX_NAME]
    rows = connection.execute(
        "SELECT named.id FROM unnest(%(names)s::text[]) AS wanted, LATERAL (SELECT id FROM units"
        f" WHERE lower(left(name, {_MAX_NAME})) = lower(wanted) AND {passing.sql} LIMIT {NAMED}) AS named".encode(),
        {**passing.values, "names": names},
    ).fetchall()
    return {unit for (unit,) in rows}


_COLUMNS = (
    "u.id, u.workspace, f.path, u.language, u.name, u.container, u.kind, u.start_line, u.end_line, u.name_line,"
    " u.name_start, u.name_end, u.head, u.preview, u.key, u.words, f.digest"
)
_COSINES = (
    " CROSS JOIN LATERAL (SELECT 1 - (p.code <=> %(vector)s::halfvec) AS code, 1 - (f.path_vector <=>"
    " %(vector)s::halfvec) AS path, 1 - (p.combined <=> %(vector)s::halfvec) AS dense FROM parts p"
    " WHERE p.unit = u.id ORDER BY dense DESC LIMIT 1) AS best"
)


def _load(
    connection: psycopg.Connection,
    units: set[int],
    vector: Vectors | None,
    among: Workspaces,
    odd: Callable[[str], None],
) -> list[Found]:
    cosines, best = (", best.code, best.path, best.dense", _COSINES) if vector is not None else (", 0, 0, 0", "")
    rows = connection.execute(
        f"SELECT {_COLUMNS}{cosines} FROM units u JOIN files f ON f.id = u.file{best}"
        " WHERE u.id = ANY(%(units)s)".encode(),
        {"units": list(units), "vector": None if vector is None else as_text(vector)},
    ).fetchall()
    found = list[Found]()
    for row in rows:
        name = among.names.get(row[1])
        if name is not None and _is_sound(name, row):
            found.append(_found(name, row))
        else:
            odd(name or "?")
    return found


def _is_sound(name: str, row: Sequence[Any]) -> bool:
    """Whether a row may be believed: that somebody of us wrote it, one knows only by its form."""
    path, _, *texts = row[2:6]
    kind, (start, end, *place), (head, preview), words, numbers = row[6], row[7:12], row[12:14], row[15], row[17:20]
    return (
        is_name(name)
        and is_path(path)
        and kind in KINDS
        and all(len(text) <= MAX_TEXT for text in (path, *texts, head, preview))
        and 0 <= start <= end <= MAX_LINE
        and all(0 <= number <= MAX_LINE for number in place)
        and len(words) == len(FIELD_WEIGHTS)
        and None not in words
        and all(map(math.isfinite, numbers))
    )


def _found(name: str, row: Sequence[Any]) -> Found:
    unit, _, path, language, own_name, container, kind, start, end, line, first, last, head, preview, key = row[:15]
    words, digest, code_cosine, path_cosine, dense = row[15:]
    candidate = Candidate(
        unit, f"{name}/{path}", language, own_name, container, kind, start, end, (line, first, last), head, preview,
        bytes(key), tuple(words), code_cosine, path_cosine, dense, 0.0, "", bytes(digest),
    )  # fmt: skip
    return Found(candidate, name, path)


def _matching(found: list[Found], patterns: Sequence[str]) -> list[Found]:
    matches = path_matcher(patterns) if patterns else lambda _: True
    return [each for each in found if matches(each.path)]


def _text_scores(found: list[Found], texts: set[int], terms: Terms, among: Workspaces) -> dict[int, float]:
    """Unit -> BM25, of the best of those that full text chose."""
    usual = among.words / max(among.units, 1)
    rarity = {stem: terms.rarity[stem] for stem in terms.rare}
    candidates = (each.candidate for each in found if each.candidate.unit in texts)
    scores = {c.unit: bm25(c.words, rarity, usual) for c in candidates}
    return {unit: scores[unit] for unit in sorted(scores, key=lambda unit: -scores[unit])[:LEXICAL]}
