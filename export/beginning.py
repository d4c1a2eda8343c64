"""Where a student begins: at what a BERT says of each word alone, and then of doc comments as people search.

So rare words have a meaning, too, and a text's vector is more than the mean of what its words mean alone. No code is
part of it: that the student learns by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from .asked import Data
from .encoders import CheckpointEncoder
from .metrics import Vectors
from .pairs import Row, thinned
from .small import load_small
from .student import Student

DOCS = 150_000
"""So many doc comments are listened to."""
STEPS = 400
BATCH = 2_048
LEARNING_RATE = 3e-3
WARM_UP = 50
DROPOUT = 0.1
"""The share of a doc comment's words that are left out, anew at each step."""
PHRASINGS = ("doc", "words", "question")
"""The ways of asking that say what the doc comment says, in turn."""
_DIRECTIONS_FROM = 40_000
"""Doc comments that the principal directions are fitted on."""
_TINY = 1e-6


@dataclass(frozen=True)
class Said:
    """What a BERT says, in the student's width, at length 1."""

    words: torch.Tensor
    """[vocabulary, dim]."""
    pairs: npt.NDArray[np.int64]
    """[docs]: the pairs whose doc comments it was asked about."""
    docs: torch.Tensor
    """[docs, dim]."""


def said_by(folder: Path, words: Sequence[str], rows: Sequence[Row], dim: int, seed: int) -> Said:
    """What the BERT in `folder` says of each word and of up to DOCS doc comments. Raises CheckpointError."""
    encoder = CheckpointEncoder(load_small(folder))
    pairs = np.sort(np.random.default_rng(seed).permutation(len(rows))[:DOCS])
    docs = encoder.queries([rows[pair].query for pair in pairs])
    directions = principal(docs[:: -(-len(docs) // _DIRECTIONS_FROM)], dim)
    table, targets = (torch.from_numpy(reduced(each, directions)) for each in (encoder.codes(words), docs))
    return Said(table, pairs, targets)


def principal(vectors: Vectors, dim: int) -> Vectors:
    """The directions [dim, width] in which the vectors differ most; zeros where there are not so many."""
    found: Vectors = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)[2][:dim]
    return np.pad(found, ((0, dim - len(found)), (0, 0)))


def reduced(vectors: Vectors, directions: Vectors) -> Vectors:
    """The vectors, centred, along the directions, at length 1."""
    projected: Vectors = (vectors - vectors.mean(axis=0)) @ directions.T
    projected /= np.linalg.norm(projected, axis=1, keepdims=True).clip(_TINY)
    return projected


def begin(student: Student, data: Data, said: Said, seed: int, steps: int = STEPS) -> float:
    """Changes the student to one that says of doc comments what was said; returns the last step's 1 - cosine."""
    with torch.no_grad():
        student.table.copy_(said.words)
    optimiser = torch.optim.Adam(student.parameters(), lr=LEARNING_RATE, fused=True)
    random = np.random.default_rng(seed)
    apart = 0.0
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = LEARNING_RATE * min(1.0, (step + 1) / WARM_UP) * (1 - step / steps)
        at = np.sort(random.permutation(len(said.pairs))[:BATCH])
        asked = data.queries[PHRASINGS[step % len(PHRASINGS)]].bags(said.pairs[at])
        loss = 1 - (student(thinned(asked, DROPOUT, random)) * said.docs[torch.from_numpy(at)]).sum(dim=1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        apart = loss.item()
    return apart
