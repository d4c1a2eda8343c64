"""How our values go to PostgreSQL: vectors and lexemes in bulk, in its binary form, a question's vector as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from struct import pack
from typing import TYPE_CHECKING

from ..index.vectors import Vectors
from ..search.candidates import FIELD_WEIGHTS
from .connect import OrgError

if TYPE_CHECKING:
    import psycopg

USUAL_WORDS = 60
"""Words of a usual unit. Impacts are stored, so this cannot follow the index; only the choice of candidates hangs on
it."""

IMPACTS = (0.25, 0.5, 0.75, 1.0)
"""What PostgreSQL's ts_rank takes the labels D, C, B and A for."""

_K1, _B = 1.2, 0.75
"""BM25's constants, as in FTS5."""


@dataclass(frozen=True, slots=True)
class HalfVector:
    """A vector [dim] as `halfvec`."""

    numbers: Vectors


@dataclass(frozen=True, slots=True)
class Lexemes:
    """A unit's stems as `tsvector`: each at one position, whose label tells how much the unit is about it."""

    impacts: dict[str, int]
    """Stem -> index into IMPACTS."""


def lexemes_of(words: Sequence[str]) -> Lexemes:
    """From the stems of name, container, doc, path and body: BM25's share of each in four steps."""
    counts: Counter[str] = Counter()
    length = 0
    for weight, field in zip(FIELD_WEIGHTS, words, strict=True):
        found = field.split()
        length += len(found)
        for word in found:
            counts[word] += weight  # type: ignore[assignment]  # a Counter adds what it is given
    damping = _K1 * (1 - _B + _B * length / USUAL_WORDS)
    last = len(IMPACTS) - 1
    return Lexemes({word: min(last, int(len(IMPACTS) * count / (count + damping))) for word, count in counts.items()})


def bm25(words: Sequence[str], rarity: dict[str, float], usual_length: float) -> float:
    """As FTS5 reckons it, with FIELD_WEIGHTS: https://www.sqlite.org/fts5.html#the_bm25_function."""
    counts: dict[str, float] = {}
    length = 0
    for weight, field in zip(FIELD_WEIGHTS, words, strict=True):
        found = field.split()
        length += len(found)
        for word in found:
            if word in rarity:
                counts[word] = counts.get(word, 0.0) + weight
    damping = _K1 * (1 - _B + _B * length / max(usual_length, 1.0))
    return sum(rarity[word] * count * (_K1 + 1) / (count + damping) for word, count in counts.items())


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
