"""Hard negatives: code that the current model takes for the answer to a query, and is not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from .data import Example, Ids
from .metrics import Vectors

NONE = -1
"""Stands for a negative where there are too few."""
_QUERIES_AT_ONCE = 512

Embed = Callable[[Sequence[str]], Vectors]


def mine(examples: Sequence[Example], used: Iterable[int], count: int, queries: Embed, codes: Embed) -> dict[int, Ids]:
    """For each of the examples `used`: the `count` of their codes, as numbers of examples, that score highest with its
    query but do not answer it, best first, NONE where there are not so many.

    They are of its language and source, and never its own code, a near-duplicate of it, or an answer to the same query.
    """
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number in sorted(set(used)):
        groups[examples[number].group].append(number)
    found: dict[int, Ids] = {}
    for _, group in sorted(groups.items()):
        numbers = np.array(group)
        asked = queries([examples[number].query for number in group])
        answers = codes([examples[number].code for number in group])
        wrong = answers_apart([examples[number] for number in group])
        for start in range(0, len(group), _QUERIES_AT_ONCE):
            rows = slice(start, start + _QUERIES_AT_ONCE)
            scores = np.where(wrong(rows), asked[rows] @ answers.T, -np.inf)
            best = np.argsort(-scores, axis=1, kind="stable")[:, :count]
            kept = np.where(np.isfinite(np.take_along_axis(scores, best, axis=1)), numbers[best], NONE)
            short = np.full((len(kept), count - kept.shape[1]), NONE)
            found.update(zip(group[rows], np.concatenate([kept, short], axis=1), strict=True))
    return found


def answers_apart(examples: Sequence[Example]) -> Callable[[slice], npt.NDArray[np.bool_]]:
    """A function of some rows: [rows, examples], whether an example's code is a wrong answer to a row's query."""
    code = _numbered([example.code_key for example in examples])
    query = _numbered([example.query_key for example in examples])
    return lambda rows: (code[rows, None] != code) & (query[rows, None] != query)


def _numbered(keys: Sequence[str]) -> Ids:
    return np.unique(np.array(keys, dtype=object), return_inverse=True)[1].astype(np.int64).reshape(-1)
