"""How well vectors find code: ranks of the right answers among all, and what is told of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
"""Unit vectors [texts, dim]."""
Ranks = npt.NDArray[np.int64]
"""The place of each query's right answer among all, from 1."""

POOL = 1_000
"""Each held-out query looks for its code among this many, as CodeSearchNet has it."""
TEMPERATURE = 0.05
"""Scores are divided by it before the softmax, in training and in the validation NLL."""
CUTOFFS = (1, 5, 10, 100)
"""Where Recall@k is told."""
NDCG_CUTOFF = 10
_QUERIES_AT_ONCE = 512


def ranks_of(queries: Vectors, codes: Vectors, right: npt.NDArray[np.int64]) -> Ranks:
    """The rank of each query's right code, `right` its row in `codes`. Ties count against the query."""
    ranks = np.empty(len(right), dtype=np.int64)
    for start in range(0, len(right), _QUERIES_AT_ONCE):
        rows = slice(start, start + _QUERIES_AT_ONCE)
        scores = queries[rows] @ codes.T
        mine = scores[np.arange(len(scores)), right[rows]]
        ranks[rows] = (scores >= mine[:, None]).sum(axis=1)
    return ranks


def reciprocal_ranks(
    queries: Vectors, codes: Vectors, right: npt.NDArray[np.int64], limit: int
) -> npt.NDArray[np.float64]:
    """1 / rank of each query's right code, 0 where it is beyond `limit`. Ties count against the query."""
    ranks = ranks_of(queries, codes, right)
    return np.where(ranks <= limit, 1.0 / ranks, 0.0)


def nll(queries: Vectors, codes: Vectors, right: npt.NDArray[np.int64], temperature: float = TEMPERATURE) -> float:
    """The contrastive loss on held-out data: mean -log of the softmax that the right code gets among `codes`."""
    losses = np.empty(len(right), dtype=np.float64)
    for start in range(0, len(right), _QUERIES_AT_ONCE):
        rows = slice(start, start + _QUERIES_AT_ONCE)
        scores = (queries[rows] @ codes.T).astype(np.float64) / temperature
        top = scores.max(axis=1)
        total = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
        losses[rows] = total - scores[np.arange(len(scores)), right[rows]]
    return float(losses.mean())


def figures(ranks: Ranks) -> dict[str, float]:
    """MRR, MRR@10, Recall@k and NDCG@10 where each query has one right answer."""
    near = ranks <= NDCG_CUTOFF
    told = {
        "mrr": float(np.mean(1.0 / ranks)),
        f"mrr@{NDCG_CUTOFF}": float(np.mean(np.where(near, 1.0 / ranks, 0.0))),
        f"ndcg@{NDCG_CUTOFF}": float(np.mean(np.where(near, 1.0 / np.log2(ranks + 1.0), 0.0))),
    }
    return told | {f"recall@{k}": float(np.mean(ranks <= k)) for k in CUTOFFS}


def paired(queries: Vectors, codes: Vectors, pool: int = POOL) -> dict[str, float]:
    """All figures of pairs (row i of each belongs together), each among `pool`, or fewer if there are not so many.

    What fills no pool is left out: a rank among few would count for as much as one among many.
    """
    size = min(pool, len(queries))
    right = np.arange(size)
    starts = range(0, len(queries) - size + 1, size)
    pools = [(queries[start : start + size], codes[start : start + size]) for start in starts]
    ranks = np.concatenate([ranks_of(*both, right) for both in pools])
    return {**figures(ranks), "nll": float(np.mean([nll(*both, right) for both in pools])), "queries": len(ranks)}


def held_out_mrr(queries: Vectors, codes: Vectors) -> float:
    """MRR of pairs (row i of each belongs together), each among POOL, or fewer if there are not so many."""
    return paired(queries, codes)["mrr"]


def several(found: Sequence[int], targets: int, cutoff: int = NDCG_CUTOFF) -> dict[str, float]:
    """MRR, NDCG and Recall at `cutoff` of one query with several right answers.

    `found`: for each of the targets that came within the results, its rank. Two that share one fill one rank.
    """
    within = [rank for rank in found if rank <= cutoff]
    gained = sum(1 / np.log2(rank + 1) for rank in sorted(set(within)))
    ideal = sum(1 / np.log2(rank + 1) for rank in range(1, min(cutoff, targets) + 1))
    return {
        f"mrr@{cutoff}": 1 / min(within) if within else 0.0,
        f"ndcg@{cutoff}": float(gained / ideal) if ideal else 0.0,
        f"recall@{cutoff}": len(within) / targets if targets else 0.0,
    }


def mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each figure; all rows have the same ones."""
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]} if rows else {}
