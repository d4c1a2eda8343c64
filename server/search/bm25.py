"""BM25 over several fields: https://www.sqlite.org/fts5.html#the_bm25_function has the formula and its constants."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ..index.words import FIELD_BITS, FIELDS

Scores = npt.NDArray[np.float32]

FIELD_WEIGHTS = {"name": 6.0, "container": 2.0, "doc": 3.0, "path": 3.0, "body": 1.0}
"""How much more a word says that stands there."""

_K1, _B = np.float32(1.2), np.float32(0.75)

MAX_IMPACT = float(_K1) + 1
"""What the impact of a word of rarity 1 comes near to the more often it stands there."""

_ALL_COUNTS = np.arange(1 << FIELD_BITS * len(FIELDS))
_WEIGHED: Scores = np.sum(
    [
        FIELD_WEIGHTS[field] * (_ALL_COUNTS >> FIELD_BITS * number & (1 << FIELD_BITS) - 1)
        for number, field in enumerate(FIELDS)
    ],
    axis=0,
    dtype=np.float32,
)
"""Counts of a term, of all fields together -> how often it stands there, weighed."""


def rarity(having: int, units: int) -> float:
    """A word's weight when so many of all units have it. Never nothing, however common it is."""
    return max(1e-6, math.log((max(0, units - having) + 0.5) / (having + 0.5)))


def damping(lengths: npt.NDArray[np.uint16], mean_length: float) -> Scores:
    """What the length of each unit (in words) does to its counts."""
    damped: Scores = _K1 * (1 - _B + _B * lengths.astype(np.float32) / np.float32(max(mean_length, 1e-6)))
    return damped


def impact(counts: npt.NDArray[np.uint16], damped: Scores, rare: float) -> Scores:
    """What a term adds to the scores of units that have it so often, see `server.index.words`."""
    weighed = _WEIGHED[counts]
    scores: Scores = np.float32(rare) * weighed * (_K1 + 1) / (weighed + damped)
    return scores
