"""Text -> the words that full-text search and ranking compare: identifiers split, lower case, stemmed.

What an index keeps of a text are *terms*: 32-bit hashes of its stems, and how often each stands in which field.
"""

from __future__ import annotations

import re
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

import Stemmer

FIELDS = ("name", "container", "doc", "path", "body")
"""The fields of a unit, in the order of their bits in a count."""

MAX_REPEATS = 4
"""How often one word of a field counts: BM25 saturates there, and long tables of constants would fill the index."""

FIELD_BITS = 3
"""Of a count for each field, the first lowest: enough for MAX_REPEATS."""

MAX_WORD = 40
"""Longer runs of letters are data (hashes, encoded blobs), not words."""

_ASCII_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
"""A part of an identifier: `HTTPServer2` is HTTP, Server, 2."""

_ANY_PART = re.compile(r"[A-Za-z]*[^\W\d_A-Za-z][^\W\d_]*|" + _ASCII_PART.pattern)
"""The same where letters outside of ASCII occur: a word that has one is not split. Slower, so tried only there."""

_STOP = frozenset(
    "a an and are as at be been being but by can could did do does doing for from get had has have how i if in into is"
    " it its me my of on or our should so such than that the their them then there these they this those to us use"
    " used uses using via was we were what when where which while who why will with would you your".split()
)
"""Words of questions that say nothing about code. They are left out of queries only, never out of the index."""

_english = Stemmer.Stemmer("english", 0)


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """The stem of a lower-case word (Snowball's English stemmer, "Porter2")."""
    return str(_english.stemWord(word))


@lru_cache(maxsize=1 << 17)
def _stem_of(part: str) -> str:
    return stem(part.lower()) if len(part) <= MAX_WORD else ""


def _parts(text: str) -> list[str]:
    return (_ASCII_PART if text.isascii() else _ANY_PART).findall(text)


def stems(text: str) -> list[str]:
    """The stems of all words in `text`, in order, identifiers split at case changes, digits and punctuation."""
    return [word for word in map(_stem_of, _parts(text)) if word]


@lru_cache(maxsize=1 << 17)
def term(word: str) -> int:
    """The term of a stem: its CRC-32. (Of a hundred thousand stems one pair has the same.)"""
    return zlib.crc32(word.encode())


def counts(field: str, text: str) -> dict[int, int]:
    """Term -> how often it stands in `text`, in the bits of `field`."""
    shift = FIELD_BITS * FIELDS.index(field)
    found = Counter([term(word) for word in map(_stem_of, _parts(text)) if word])
    return {each: min(count, MAX_REPEATS) << shift for each, count in found.items()}


def packed(fields: Iterable[Mapping[int, int]]) -> bytes:
    """The terms of all fields as they are stored: n terms (uint32, ascending), then n counts (uint16)."""
    merged: dict[int, int] = {}
    for field in fields:
        for each, count in field.items():
            merged[each] = merged.get(each, 0) | count
    ordered = sorted(merged)
    return array("I", ordered).tobytes() + array("H", map(merged.__getitem__, ordered)).tobytes()


def query_stems(text: str) -> list[str]:
    """The distinct stems of a query, in order, without the words that say nothing about code.

    A query of such words alone ("how does it do this") keeps them all: something is better than nothing.
    """
    spoken = [part for part in _parts(text) if part.lower() not in _STOP]
    kept = [word for word in map(_stem_of, spoken) if word] or stems(text)
    return list(dict.fromkeys(kept))
