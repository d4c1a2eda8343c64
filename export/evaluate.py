"""How well an encoder finds code: the mean reciprocal rank of the right code among others."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
Encoder = Callable[[Sequence[str]], Vectors]
"""Texts -> unit vectors [texts, dim]."""

POOL = 1_000
"""Each held-out query looks for its code among this many."""


def reciprocal_ranks(
    queries: Vectors, codes: Vectors, right: npt.NDArray[np.int64], limit: int
) -> npt.NDArray[np.float64]:
    """1 / rank of each query's right code, 0 where it is beyond `limit`. Ties count against the query."""
    scores = queries @ codes.T
    mine = scores[np.arange(len(right)), right]
    ranks = (scores >= mine[:, None]).sum(axis=1)
    return np.where(ranks <= limit, 1.0 / ranks, 0.0)


def held_out_mrr(queries: Vectors, codes: Vectors) -> float:
    """MRR of pairs (row i of each belongs together), each among POOL, or fewer if there are not so many."""
    pool = min(POOL, len(queries))
    found = []
    for start in range(0, len(queries) - pool + 1, pool):
        rows = slice(start, start + pool)
        found.append(reciprocal_ranks(queries[rows], codes[rows], np.arange(pool), pool))
    return float(np.mean(np.concatenate(found)))


def cosqa_mrr(folder: Path, encode: Encoder) -> float:
    """MRR@10 of CoSQA's 500 development queries from web search among its 6,267 codes."""
    indexes: dict[str, int] = json.loads((folder / "code_idx_map.txt").read_text(encoding="utf-8"))
    questions = json.loads((folder / "cosqa-retrieval-dev-500.json").read_text(encoding="utf-8"))
    codes = sorted(indexes, key=indexes.__getitem__)
    right = np.array([question["retrieval_idx"] for question in questions])
    ranks = reciprocal_ranks(encode([question["doc"] for question in questions]), encode(codes), right, limit=10)
    return float(ranks.mean())
