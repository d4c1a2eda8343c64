"""Candidates -> their order: a linear score of signals with fitted weights, then repeats of a file moved down.

The weights stand in ranking.json, written by `python -m tests.bench.fit_ranking`; nothing here is set by hand.
"""

from __future__ import annotations

import heapq
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .answer import Query
from .candidates import Candidate
from .features import FEATURES, Matrix

Scores = npt.NDArray[np.float32]

WEIGHTS_FILE = Path(__file__).parent / "ranking.json"

_SYMBOL = re.compile(r"[\w.$:#/~<>-]+(\(\))?$")


@dataclass(frozen=True)
class Ranking:
    """Fitted weights: one for each signal, for two sorts of queries."""

    sentence: Matrix
    symbol: Matrix
    repeat: float
    """What each better unit of the same file takes off a unit's score."""

    @classmethod
    @cache
    def shipped(cls) -> Ranking:
        """The weights that came with this version."""
        return cls.of(json.loads(WEIGHTS_FILE.read_text("utf-8")))

    @classmethod
    def of(cls, values: dict[str, dict[str, float]]) -> Ranking:
        """From what ranking.json holds; a signal that it does not name weighs nothing."""
        sentence, symbol = (
            np.array([values[part].get(name, 0.0) for name in FEATURES], np.float32) for part in ("sentence", "symbol")
        )
        return cls(sentence, symbol, values["files"]["repeat"])

    def scores(self, query: Query, features: Matrix) -> Scores:
        """The score of each row of the features [candidates]."""
        return features @ (self.symbol if is_symbol(query.text) else self.sentence)


def is_symbol(text: str) -> bool:
    """Whether a query is a name, not a description: one word, as `retry`, `parseCron`, `http::Client.get()`."""
    return bool(_SYMBOL.match(text.strip()))


def order(candidates: Sequence[Candidate], scores: Scores, repeat: float, limit: int) -> list[tuple[Candidate, float]]:
    """The best candidates with their final scores, best first.

    The n-th unit of one file loses n times `repeat`, so that the files which answer stand side by side, and still
    nothing is hidden from who asks for more.
    """
    heap = [
        (-float(score), c.path, c.start_line, place)
        for place, (c, score) in enumerate(zip(candidates, scores, strict=True))
    ]
    heapq.heapify(heap)
    taken: dict[str, int] = defaultdict(int)
    charged: dict[int, int] = {}
    best: list[tuple[Candidate, float]] = []
    while heap and len(best) < limit:
        negative, path, line, place = heapq.heappop(heap)
        owed = taken[path] - charged.get(place, 0)
        if owed:  # others of its file were taken since it was scored
            charged[place] = taken[path]
            heapq.heappush(heap, (negative + owed * repeat, path, line, place))
            continue
        taken[path] += 1
        best.append((candidates[place], -negative))
    return best
