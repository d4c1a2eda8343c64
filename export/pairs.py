"""The corpus as numbers: each text a bag of its distinct words, all texts in flat arrays."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer

from .student import PLACES, Bags
from .tokenizer import UNKNOWN

ENCODE_AT_ONCE = 4_000
MAX_COUNT = 255


@dataclass(frozen=True)
class Row:
    """One line of the corpus, see export.corpus.harvest.Pair."""

    language: str
    package: str
    query: str
    code: str
    name: str = ""
    """Of the code, "" where it has none."""
    path: str = ""
    """Of its file, in its package."""


def read_rows(path: Path) -> Iterator[Row]:
    """The pairs of a corpus file."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            pair = json.loads(line)
            name, inside = pair.get("name", ""), pair.get("path", "")
            yield Row(pair["language"], pair["package"], pair["query"], pair["code"], name, inside)


@dataclass(frozen=True)
class Texts:
    """Many bags: text i is the entries starts[i]:starts[i + 1] of the other arrays, which are as in Bags."""

    words: npt.NDArray[np.int32]
    places: npt.NDArray[np.uint8]
    counts: npt.NDArray[np.uint8]
    totals: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def with_word(self, vocabulary: int) -> npt.NDArray[np.float64]:
        """[vocabulary]: how many of the texts each word is in."""
        return np.bincount(self.words, self.counts / self.totals, minlength=vocabulary).astype(np.float64)

    def bags(self, which: npt.NDArray[np.int64]) -> Bags:
        """The texts `which` as one batch."""
        sizes = self.starts[which + 1] - self.starts[which]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        at = np.arange(offsets[-1]) + np.repeat(self.starts[which] - offsets[:-1], sizes)
        return Bags(
            ids=torch.from_numpy(self.words[at].astype(np.int64)),
            places=torch.from_numpy(self.places[at].astype(np.int64)),
            counts=torch.from_numpy(self.counts[at].astype(np.float32)),
            totals=torch.from_numpy(self.totals[at].astype(np.float32)),
            offsets=torch.from_numpy(offsets[:-1].copy()),
        )


def encode(texts: Sequence[str], tokenizer: Tokenizer, max_tokens: int) -> Texts:
    """The bags of the texts' first `max_tokens` tokens. A text without any gets one unknown token."""
    unknown = tokenizer.token_to_id(UNKNOWN) or 0
    place_of = np.searchsorted(PLACES, np.arange(max_tokens), side="right") - 1
    words, places, counts, totals, sizes = [], [], [], [], []
    for at in range(0, len(texts), ENCODE_AT_ONCE):
        for encoding in tokenizer.encode_batch_fast(list(texts[at : at + ENCODE_AT_ONCE]), add_special_tokens=False):
            ids = np.array(encoding.ids[:max_tokens] or [unknown], dtype=np.int64)
            keys, repeats = np.unique(ids * len(PLACES) + place_of[: len(ids)], return_counts=True)
            found = keys // len(PLACES)
            words.append(found.astype(np.int32))
            places.append((keys % len(PLACES)).astype(np.uint8))
            counts.append(np.minimum(repeats, MAX_COUNT).astype(np.uint8))
            totals.append(np.minimum(_totals(found, repeats), MAX_COUNT).astype(np.uint8))
            sizes.append(len(found))
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Texts(np.concatenate(words), np.concatenate(places), np.concatenate(counts), np.concatenate(totals), starts)


def thinned(bags: Bags, share: float, random: np.random.Generator) -> Bags:
    """The bags without a random `share` of their entries; each keeps its first, so that none is empty."""
    kept = random.random(len(bags.ids)) >= share
    kept[bags.offsets.numpy()] = True
    before = np.concatenate([[0], np.cumsum(kept)])
    where = torch.from_numpy(np.flatnonzero(kept))
    return Bags(
        ids=bags.ids[where],
        places=bags.places[where],
        counts=bags.counts[where],
        totals=bags.totals[where],
        offsets=torch.from_numpy(before[bags.offsets.numpy()]),
    )


def _totals(words: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each entry of one text, sorted by word, the sum of the counts of all entries of its word."""
    first = np.flatnonzero(np.diff(words, prepend=-1))
    sizes = np.diff(first, append=len(words))
    return np.repeat(np.add.reduceat(counts, first), sizes)
