"""The student: hybrid neural bag of words. A text's vector is a mix of two poolings of its words' vectors.

The mean and a self-attention pooling are mixed by learned weights, as in "Distilling Transformers for Neural
Cross-Domain Search". (Maximum pooling, the paper's third part, made every measure worse here and is left out.) The
attention's logit is a scalar of the word, which starts at its rarity, plus a scalar of the place where it stands, which
starts at 0: the model begins as an idf-weighted mean and learns from there. Queries and code share all of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

DIM = 256
REPEATS = 0.5
"""A word that stands n times in a text counts n ** REPEATS: long code repeats its variables."""
PLACES = (0, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256)
"""Where the stretches of a text start, in tokens, whose words share a logit: a unit starts with name and signature."""


@dataclass(frozen=True)
class Bags:
    """A batch of texts as their distinct words in each stretch, one text after the other."""

    ids: Tensor
    """int64 [entries]: words."""
    places: Tensor
    """int64 [entries]: the stretch, an index into PLACES."""
    counts: Tensor
    """float32 [entries]: how often the word stands in that stretch of its text."""
    totals: Tensor
    """float32 [entries]: how often it stands in the whole text."""
    offsets: Tensor
    """int64 [texts]: where each text starts in `ids`."""

    @property
    def text_of(self) -> Tensor:
        """int64 [entries]: the text that each entry is of."""
        sizes = torch.diff(self.offsets, append=torch.tensor([len(self.ids)]))
        return torch.repeat_interleave(torch.arange(len(self.offsets)), sizes)


class Student(nn.Module):
    """The table of word vectors [vocabulary, dim], the attention's logits, and the mix of the poolings."""

    def __init__(self, table: Tensor, logits: Tensor):
        super().__init__()
        self.table = nn.Parameter(table)
        self.logits = nn.Parameter(logits)
        """[vocabulary]."""
        self.place_logits = nn.Parameter(torch.zeros(len(PLACES)))
        self.mix = nn.Parameter(torch.tensor([1.0, 0.0]))
        """Weights of the attention's pooling and of the mean."""

    def forward(self, bags: Bags) -> Tensor:
        """Unit vectors [texts, dim]."""
        repeats = bags.counts * bags.totals ** (REPEATS - 1)
        attention = repeats * torch.exp(self.logits[bags.ids] + self.place_logits[bags.places])
        weights = self.mix[0] * _normalised(attention, bags) + self.mix[1] * _normalised(repeats, bags)
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
