"""The student: hybrid neural bag of words. A text's vector is a mix of poolings of its words' vectors.

The mean, a self-attention pooling and the maximum are mixed by learned weights, as in "Distilling Transformers for
Neural Cross-Domain Search". (The shipped model leaves the maximum out, which made every measure worse.) The attention's
logit is a scalar of the word, which starts at its rarity, plus a scalar of the place where it stands, which starts at
0: the model begins as an idf-weighted mean and learns from there. Queries and code share all of it, or each has its own
(`Students`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

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

    def __init__(self, table: Tensor, logits: Tensor, maximum: bool = False):
        super().__init__()
        self.table = nn.Parameter(table)
        self.logits = nn.Parameter(logits)
        """[vocabulary]."""
        self.place_logits = nn.Parameter(torch.zeros(len(PLACES)))
        self.mix = nn.Parameter(torch.tensor([1.0, 0.0, 0.0][: 2 + maximum]))
        """Weights of the attention's pooling, of the mean and, where it is a part, of the maximum."""

    def forward(self, bags: Bags) -> Tensor:
        """Unit vectors [texts, dim]."""
        repeats = bags.counts * bags.totals ** (REPEATS - 1)
        attention = repeats * torch.exp(self.logits[bags.ids] + self.place_logits[bags.places])
        weights = self.mix[0] * _normalised(attention, bags) + self.mix[1] * _normalised(repeats, bags)
        pooled = nn.functional.embedding_bag(bags.ids, self.table, bags.offsets, mode="sum", per_sample_weights=weights)
        if len(self.mix) > 2:
            pooled = pooled + self.mix[2] * nn.functional.embedding_bag(bags.ids, self.table, bags.offsets, mode="max")
        return nn.functional.normalize(pooled, dim=1)


def _normalised(weights: Tensor, bags: Bags) -> Tensor:
    """The weights divided by their sum over each text."""
    text = bags.text_of
    sums = torch.zeros(len(bags.offsets)).index_add_(0, text, weights)
    return weights / sums.clamp_min(1e-9)[text]


SHARED, TWO, LANGUAGES = "shared", "two", "languages"
ENCODERS = (SHARED, TWO, LANGUAGES)
_ANY = ""
"""Stands for every language."""


class Students(nn.Module):
    """An encoder of queries, and of code: the same one, another one, or one for each language."""

    def __init__(self, kind: str, languages: Sequence[str], frequencies: Tensor, seed: int) -> None:
        """`kind`: one of ENCODERS. All start from the same weights."""
        super().__init__()
        self.kind = kind
        names = {SHARED: [], TWO: [_ANY], LANGUAGES: languages}[kind]
        self.query = fresh(frequencies, seed=seed, maximum=True)
        self.codes = nn.ModuleList([fresh(frequencies, seed=seed, maximum=True) for _ in names])
        self._place = {name: at for at, name in enumerate(names)}

    def code(self, language: str) -> Student:
        """The encoder of a language's code."""
        return self.encoders().get(language) or self.encoders()[_ANY]

    def encoders(self) -> dict[str, Student]:
        """Those of code by language; the one for all languages is that of "" alone."""
        found = {name: cast(Student, self.codes[at]) for name, at in self._place.items()}
        return found or {_ANY: self.query}


def fresh(frequencies: Tensor, dim: int = DIM, seed: int = 0, maximum: bool = False) -> Student:
    """An untrained student: random vectors, attention by rarity. `frequencies`: each word's share of the texts."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(len(frequencies), dim, generator=generator) / math.sqrt(dim)
    rarity = torch.log(1e-3 / (1e-3 + frequencies))  # smooth inverse frequency
    return Student(table, rarity, maximum)


def contrastive(queries: Tensor, codes: Tensor, temperature: float) -> Tensor:
    """InfoNCE over the batch in both directions; row i of each belongs together. Both are unit vectors [n, dim]."""
    scores = queries @ codes.T / temperature
    target = torch.arange(len(scores))
    return (nn.functional.cross_entropy(scores, target) + nn.functional.cross_entropy(scores.T, target)) / 2
