"""What a BERT says of each word alone: where a student's table begins, so that rare words have a meaning, too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from .encoders import CheckpointEncoder
from .metrics import Vectors
from .small import load_small

_PRINCIPAL = 20_000
"""The reduction is fitted on so many of the words, the most frequent."""
_TINY = 1e-6


def word_vectors(folder: Path, words: Sequence[str], dim: int) -> torch.Tensor:
    """Unit vectors [words, dim] by the BERT in `folder`, centred and reduced by PCA. Raises CheckpointError."""
    vectors = CheckpointEncoder(load_small(folder)).codes(words)
    return torch.from_numpy(reduced(vectors, dim))


def reduced(vectors: Vectors, dim: int) -> Vectors:
    """The principal `dim` numbers of each row, at length 1; zeros where there are not so many."""
    centred = vectors - vectors.mean(axis=0)
    directions = np.linalg.svd(centred[:_PRINCIPAL], full_matrices=False)[2][:dim]
    projected = np.zeros((len(vectors), dim), dtype=np.float32)
    projected[:, : len(directions)] = centred @ directions.T
    projected /= np.linalg.norm(projected, axis=1, keepdims=True).clip(_TINY)
    return projected
