"""How our values go to PostgreSQL: vectors and lexemes in bulk, in its binary form, a question's vector as text."""

from __future__ import annotations

from dataclasses import dataclass
from struct import pack
from typing import TYPE_CHECKING

import numpy as np

from ..index.segment import Segment, UnitTerms
from ..index.vectors import Vectors
from ..search.bm25 import MAX_IMPACT, damping, impact
from .connect import OrgError

if TYPE_CHECKING:
    import psycopg

USUAL_WORDS = 60
"""Words of a usual unit. Impacts are stored, so this cannot follow the index; only the choice of candidates hangs on
it."""

IMPACTS = (0.25, 0.5, 0.75, 1.0)
"""What PostgreSQL's ts_rank takes the labels D, C, B and A for."""


@dataclass(frozen=True, slots=True)
class HalfVector:
    """A vector [dim] as `halfvec`."""

    numbers: Vectors


@dataclass(frozen=True, slots=True)
class Lexemes:
    """A unit's terms as `tsvector`: each, in hexadecimal, at one position, whose label tells how much the unit is about
    it."""

    impacts: dict[str, int]
    """Term -> index into IMPACTS."""
    words: int
    """Of the unit, in all fields."""


def lexemes_of(terms: bytes) -> Lexemes:
    """From a unit's terms (`server.index.words.packed`): BM25's share of each in four steps."""
    unit = Segment.of([UnitTerms(0, 0, "", 0, terms)])
    damped = damping(np.full(len(unit.counts), unit.lengths[0]), USUAL_WORDS)
    steps = impact(unit.counts, damped, 1.0) * (len(IMPACTS) / MAX_IMPACT)
    return Lexemes(
        dict(zip(map(as_lexeme, unit.terms.tolist()), steps.astype(int).tolist(), strict=True)), int(unit.lengths[0])
    )


def as_lexeme(term: int) -> str:
    """A term as it stands in a `tsvector` and in the table `terms`."""
    return format(term, "x")


def as_text(vector: Vectors) -> str:
    """A vector as pgvector reads it."""
    return f"[{','.join(map(str, vector.tolist()))}]"


def teach(connection: psycopg.Connection) -> None:
    """Let a connection take our types in a binary COPY. Raises OrgError where pgvector is too old."""
    from psycopg.adapt import Dumper
    from psycopg.pq import Format
    from psycopg.types import TypeInfo

    info = TypeInfo.fetch(connection, "halfvec")
    if info is None:
        raise OrgError("organisation index: its pgvector has no halfvec; have it updated to 0.8 or newer")

    halfvec = info.oid

    class Halves(Dumper):
        format = Format.BINARY
        oid = halfvec

        def dump(self, obj: HalfVector) -> bytes:
            return pack(">hh", len(obj.numbers), 0) + obj.numbers.astype(">f2").tobytes()

    class Stems(Dumper):
        format = Format.BINARY
        oid = connection.adapters.types["tsvector"].oid

        def dump(self, obj: Lexemes) -> bytes:
            each = (
                word.encode() + b"\0" + pack(">HH", 1, impact << 14 | 1) for word, impact in sorted(obj.impacts.items())
            )
            return pack(">i", len(obj.impacts)) + b"".join(each)

    info.register(connection)
    connection.adapters.register_dumper(HalfVector, Halves)
    connection.adapters.register_dumper(Lexemes, Stems)
