"""Which units may answer, asked of PostgreSQL, as what ranking takes.

All that hangs on the form of the local search's candidates is here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..index.segment import TERM_BYTES, Segment, UnitTerms
from ..index.store import StoredUnit
from ..index.vectors import Vectors
from ..index.words import query_stems, term
from ..parse import KINDS
from ..search.answer import Query
from ..search.bm25 import Scores, damping, impact
from ..search.candidates import DENSE, LEXICAL, NAMED, Candidates, Terms, named, weigh
from ..search.globs import path_matcher
from .filters import Allowed, Workspaces
from .names import is_name, is_path
from .wire import IMPACTS, as_lexeme, as_text

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

_MAX_NAME = 200
"""Characters of a name that are compared; see the index in the schema."""


class OrgUnit(NamedTuple):
    """A unit that somebody published."""

    stored: StoredUnit
    """Its path is that in its workspace, its id its place among what was found."""
    workspace: str


@dataclass(frozen=True)
class Found:
    """What may answer: as ranking takes it, and as it was published."""

    candidates: Candidates
    """Their paths begin with the workspaces' names: for ranking, all workspaces are folders of one tree."""
    units: list[OrgUnit]
    """The candidates' ids are their places here."""


class _Row(NamedTuple):
    """A unit as it was read, before it is numbered."""

    id: int
    file: int
    unit: OrgUnit
    terms: bytes
    path_cosine: float
    dense: float


def terms_of(connection: psycopg.Connection, text: str, among: Workspaces) -> Terms:
    """The query's stems with their weights in these workspaces."""
    stems = query_stems(text)
    lexemes = [as_lexeme(term(stem)) for stem in stems]
    some = "" if among.all else " AND workspace = ANY(%(workspaces)s)"
    rows = connection.execute(
        f"SELECT term, sum(units) FROM terms WHERE term = ANY(%(terms)s){some} GROUP BY term".encode(),
        {"terms": lexemes, "workspaces": list(among.names)},
    ).fetchall()
    counts = {lexeme: int(units) for lexeme, units in rows}
    having = np.array([counts.get(lexeme, 0) for lexeme in lexemes], np.int64)
    return weigh(text, stems, having, among.units, among.words / max(among.units, 1))


def gather(
    connection: psycopg.Connection,
    query: Query,
    terms: Terms,
    vector: Vectors | None,
    among: Workspaces,
    passing: Allowed,
    odd: Callable[[str], None],
) -> Found:
    """The candidates of a query, in no order. `vector` [dim] is None when only full text is asked.

    `odd` hears of rows that nobody of us can have published; they are left out.
    """
    texts, others = set[int](), set[int]()
    if query.only != "dense":
        texts, others = _by_text(connection, terms, passing), _by_name(connection, terms, passing)
    if vector is not None:
        others |= _by_vector(connection, vector, passing)
    rows = _matching(_load(connection, texts | others, vector, among, odd), query.paths)
    # In the order of the tree, so that what scores the same has one.
    rows.sort(key=lambda row: (row.unit.workspace, row.unit.stored.path, row.unit.stored.start_line))
    found = _found(rows, terms)
    lexical = _best(found.candidates.lexical * [row.id in texts for row in rows])
    chosen = (lexical > 0) | np.array([row.id in others for row in rows], bool)
    return replace(found, candidates=replace(found.candidates, lexical=lexical).where(chosen))


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
    lexemes = {place: f"'{as_lexeme(terms.terms[place])}'" for place in terms.rare}
    values: dict[str, Any] = {"any": " | ".join(lexemes.values()), "impacts": list(IMPACTS)}
    for place, lexeme in lexemes.items():
        values |= {f"term{place}": lexeme, f"rarity{place}": float(terms.rarity[place])}
    score = " + ".join(
        f"%(rarity{place})s * ts_rank(%(impacts)s::real[], lexemes, %(term{place})s::tsquery)" for place in lexemes
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
    "u.id, u.file, u.workspace, f.path, u.language, u.name, u.container, u.kind, u.start_line, u.end_line, u.name_line,"
    " u.name_start, u.name_end, u.head, u.preview, u.key, f.digest, u.terms"
)
_COSINES = (
    " CROSS JOIN LATERAL (SELECT 1 - (f.path_vector <=> %(vector)s::halfvec) AS path,"
    " 1 - (p.combined <=> %(vector)s::halfvec) AS dense FROM parts p"
    " WHERE p.unit = u.id ORDER BY dense DESC LIMIT 1) AS best"
)


def _load(
    connection: psycopg.Connection,
    units: set[int],
    vector: Vectors | None,
    among: Workspaces,
    odd: Callable[[str], None],
) -> list[_Row]:
    cosines, best = (", best.path, best.dense", _COSINES) if vector is not None else (", 0, 0", "")
    rows = connection.execute(
        f"SELECT {_COLUMNS}{cosines} FROM units u JOIN files f ON f.id = u.file{best}"
        " WHERE u.id = ANY(%(units)s)".encode(),
        {"units": list(units), "vector": None if vector is None else as_text(vector)},
    ).fetchall()
    found = list[_Row]()
    for row in rows:
        name = among.names.get(row[2])
        if name is not None and _is_sound(name, row):
            found.append(_row(name, row))
        else:
            odd(name or "?")
    return found


def _is_sound(name: str, row: Sequence[Any]) -> bool:
    """Whether a row may be believed: that somebody of us wrote it, one knows only by its form."""
    path, _, *texts = row[3:7]
    kind, (start, end, *place), (head, preview), terms, cosines = row[7], row[8:13], row[13:15], row[17], row[18:20]
    return (
        is_name(name)
        and is_path(path)
        and kind in KINDS
        and all(len(text) <= MAX_TEXT for text in (path, *texts, head, preview))
        and 0 <= start <= end <= MAX_LINE
        and all(0 <= number <= MAX_LINE for number in place)
        and len(terms) % TERM_BYTES == 0
        and all(map(math.isfinite, cosines))
    )


def _row(workspace: str, row: Sequence[Any]) -> _Row:
    path, language, name, container, kind, start, end, line, first, last, head, preview, key, digest = row[3:17]
    stored = StoredUnit(
        0, bytes(key), name, container, kind, start, end, (line, first, last), head, preview, path, bytes(digest),
        language, "",
    )  # fmt: skip
    return _Row(row[0], row[1], OrgUnit(stored, workspace), bytes(row[17]), *row[18:20])


def _matching(rows: list[_Row], patterns: Sequence[str]) -> list[_Row]:
    matches = path_matcher(patterns) if patterns else lambda _: True
    return [row for row in rows if matches(row.unit.stored.path)]


def _found(rows: list[_Row], terms: Terms) -> Found:
    """The rows as candidates, with BM25 of them all. Units and files are numbered anew: their ids may be too great for
    a segment's."""
    files = {file: number for number, file in enumerate(dict.fromkeys(row.file for row in rows))}
    units = [OrgUnit(replace(row.unit.stored, id=number), row.unit.workspace) for number, row in enumerate(rows)]
    segment = Segment.of(
        [
            UnitTerms(unit.id, files[row.file], unit.kind, unit.end_line - unit.start_line + 1, row.terms)
            for row, (unit, _) in zip(rows, units, strict=True)
        ]
    )
    counts = segment.counts_of(np.arange(len(rows), dtype=np.uint32), terms.terms)
    damped, lexical = damping(segment.lengths, terms.mean_length), np.zeros(len(rows), np.float32)
    for place in terms.rare:
        lexical += impact(counts[:, place], damped, float(terms.rarity[place]))
    candidates = Candidates(
        segment.units.astype(np.int64),
        segment.files.astype(np.int64),
        segment.kinds,
        segment.lines,
        segment.name_lengths,
        counts,
        lexical,
        np.array([named(unit.name, terms.identifiers) for unit, _ in units], np.uint8),
        np.array([row.dense for row in rows], np.float32),
        np.array([row.path_cosine for row in rows], np.float32),
        {files[row.file]: f"{row.unit.workspace}/{row.unit.stored.path}" for row in rows},
    )
    return Found(candidates, units)


def _best(lexical: Scores) -> Scores:
    """The LEXICAL greatest, 0 in place of the others."""
    if len(lexical) <= LEXICAL:
        return lexical
    kept = np.argpartition(-lexical, LEXICAL)[:LEXICAL]
    best = np.zeros_like(lexical)
    best[kept] = lexical[kept]
    return best
