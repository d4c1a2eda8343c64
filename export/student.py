"""The student: hybrid neural bag of words. A text's vector is a mix of three poolings of its words' vectors.

Mean, maximum and self-attention pooling are mixed by learned weights, as in "Distilling Transformers for Neural
Cross-Domain Search". The attention's logit is a scalar of each word, one for queries and one for code, which starts at
the word's rarity: the model begins as an idf-weighted mean and learns from there. The table of word vectors is shared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

DIM = 256
REPEATS = 0.5
"""A word that stands n times in a text counts n ** REPEATS."""
"""Long code repeats its variables; what it is about is said once or twice."""


@dataclass(frozen=True)
class Bags:
    """A batch of texts as their distinct words, one text after the other."""

    ids: Tensor
    """int64 [words]."""
    counts: Tensor
    """float32 [words]: how often the word stands in its text."""
    offsets: Tensor
    """int64 [texts]: where each text starts in `ids`."""

    @property
    def text_of(self) -> Tensor:
        """int64 [words]: the text that each word is of."""
        sizes = torch.diff(self.offsets, append=torch.tensor([len(self.ids)]))
        return torch.repeat_interleave(torch.arange(len(self.offsets)), sizes)


class Student(nn.Module):
    """The table of word vectors [vocabulary, dim], an attention logit for each word, and the mix of the poolings."""

    def __init__(self, table: Tensor, logits: Tensor):
        super().__init__()
        self.table = nn.Parameter(table)
        self.logits = nn.Parameter(logits)
        self.mix = nn.Parameter(torch.tensor([1.0, 0.0]))
        """Weights of the attention's pooling and of the mean."""

    def forward(self, bags: Bags) -> Tensor:
        """Unit vectors [texts, dim]."""
        repeats = bags.counts**REPEATS
        attention = _normalised(repeats * torch.exp(self.logits[bags.ids]), bags)
        weights = self.mix[0] * attention + self.mix[1] * _normalised(repeats, bags)
        pooled = nn.functional.embedding_bag(bags.ids, self.table, bags.offsets, mode="sum", per_sample_weights=weights)
        return nn.functional.normalize(pooled, dim=1)


def _normalised(weights: Tensor, bags: Bags) -> Tensor:
    """The weights divided by their sum over each text."""
    text = bags.text_of
    sums = torch.zeros(len(bags.offsets)).index_add_(0, text, weights)
    return weights / sums.clamp_min(1e-9)[text]


def fresh(frequencies: Tensor, dim: int = DIM, seed: int = 0) -> Student:
    """An untrained student: random vectors, attention by rarity. `frequencies`: each word's share of the texts."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(len(frequencies), dim, generator=generator) / math.sqrt(dim)
    rarity = torch.log(1e-3 / (1e-3 + frequencies))  # smooth inverse frequency
    return Student(table, rarity)


def contrastive(queries: Tensor, codes: Tensor, temperature: float) -> Tensor:
    """InfoNCE over the batch in both directions; row i of each belongs together. Both are unit vectors [n, dim]."""
    scores = queries @ codes.T / temperature
    target = torch.arange(len(scores))
    return (nn.functional.cross_entropy(scores, target) + nn.functional.cross_entropy(scores.T, target)) / 2
