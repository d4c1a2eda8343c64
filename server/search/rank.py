"""Candidates -> their order: a linear score of signals with fitted weights, then repeats of a file moved down.

The weights stand in ranking.json, written by `python -m export.fit_ranking`; nothing here is set by hand.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..installation import shipped
from ..parse import KINDS
from .candidates import Candidates
from .features import FEATURES, MODULE, Matrix

Scores = npt.NDArray[np.float32]

WEIGHTS_FILE = Path(__file__).parent / "ranking.json"

_SHAPE = [FEATURES.index(name) for name in ("type_kind", "module_kind", "text_kind", "size")]
"""Signals of a unit's shape. (A namespace has none but its members', so it stands behind them.)"""

_NAMES = [FEATURES.index(name) for name in ("name", "name_precision", "exact", "exact_case")]
"""Signals of a unit's name. A module's is its file's, and tells nothing of its units."""

_NAMESPACE = KINDS.index("namespace")

_SYMBOL = re.compile(r"[\w.$:#/~<>-]+(\(\))?$")


class Ranked(NamedTuple):
    """A unit's id, negative for an open document's, and its final score."""

    unit: int
    score: float


@dataclass(frozen=True)
class Ranking:
    """Fitted weights: one for each signal, for two sorts of queries."""

    sentence: Matrix
    symbol: Matrix
    repeat: float
    """What each better unit of the same file takes off a unit's score."""
    refine: float
    """What a score gains where a better model, whose bundle says nothing of it, finds a unit's cosine higher by 1; see
    `server.search.refine`."""

    @classmethod
    @cache
    def shipped(cls) -> Ranking:
        """The weights that came with this version. Raises DamagedInstallation."""
        with shipped(WEIGHTS_FILE):
            return cls.of(json.loads(WEIGHTS_FILE.read_text("utf-8")))

    @classmethod
    def of(cls, values: dict[str, dict[str, float]]) -> Ranking:
        """From what ranking.json holds; a signal that it does not name weighs nothing."""
        sentence, symbol = (
            np.array([values[part].get(name, 0.0) for name in FEATURES], np.float32) for part in ("sentence", "symbol")
        )
        return cls(sentence, symbol, values["files"]["repeat"], values["refine"]["weight"])

    def scores(self, symbol: bool, candidates: Candidates, features: Matrix) -> Scores:
        """The score of each candidate, whose signals are a row of `features`; `symbol` says which sort the query is.

        The weights tell best which file answers. Which of its units does is told by what the unit says, not by how
        large it is or what kind: so the units of a file exchange their scores until the best answer has the best one.
        """
        weights = self.symbol if symbol else self.sentence
        scores: Scores = features @ weights
        own = scores - features[:, _SHAPE] @ weights[_SHAPE]
        modules = candidates.kinds == MODULE
        own[modules] -= features[np.ix_(modules, _NAMES)] @ weights[_NAMES]
        encloses = candidates.kinds == _NAMESPACE
        by_own = np.lexsort((-own, encloses, candidates.files))
        scores[by_own] = scores[np.lexsort((-scores, candidates.files))]
        return scores


def is_symbol(text: str) -> bool:
    """Whether a query is a name, not a description: one word, as `retry`, `parseCron`, `http::Client.get()`."""
    return bool(_SYMBOL.match(text.strip()))


def order(candidates: Candidates, scores: Scores, repeat: float, limit: int) -> list[Ranked]:
    """The best candidates, best first.

    The n-th unit of one file loses n times `repeat`, so that the files which answer stand side by side, and still
    nothing is hidden from who asks for more.
    """
    by_file = np.lexsort((-scores, candidates.files))
    files = candidates.files[by_file]
    nth = np.arange(len(files)) - np.searchsorted(files, files)
    final = np.empty(len(files))
    final[by_file] = scores[by_file] - nth * repeat
    best = np.argsort(-final, kind="stable")[:limit]
    return list(map(Ranked, candidates.units[best].tolist(), final[best].tolist()))
