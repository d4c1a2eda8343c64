"""A small model without the words that it does not need: half of a BERT's weights are its table of words."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tokenizers import Tokenizer
from torch import nn

from .small import MeanPooled, Small

_UNUSED = "[unused"
"""How BERT's vocabulary names rows that stand for nothing."""


def word_counts(small: Small, texts: Sequence[str], at_once: int = 4_000) -> Counter[int]:
    """How often each token's id occurs in the texts."""
    counts: Counter[int] = Counter()
    for start in range(0, len(texts), at_once):
        for encoding in small.tokenizer.encode_batch_fast(list(texts[start : start + at_once])):
            counts.update(encoding.ids)
    return counts


def trimmed(small: Small, size: int, counts: Counter[int]) -> Small:
    """The model with a vocabulary of `size`: special tokens, what `counts` has, and what BERT holds most frequent.

    A word that is left out becomes the parts that it has in the new vocabulary; all single characters stay in it.
    """
    state = json.loads(small.tokenizer.to_str())
    names = {number: word for word, number in state["model"]["vocab"].items()}
    special = [token["id"] for token in state["added_tokens"]]
    characters = (number for number, word in names.items() if len(word.removeprefix("##")) == 1)
    used = (number for number, _ in counts.most_common())
    frequent = (number for number in sorted(names) if not names[number].startswith(_UNUSED))
    kept = sorted(_first([*special, *characters, *used, *frequent], size))
    new = {old: number for number, old in enumerate(kept)}
    state["model"]["vocab"] = {names[old]: number for old, number in new.items()}
    for token in state["added_tokens"]:
        token["id"] = new[token["id"]]
    for token in (state["post_processor"] or {}).get("special_tokens", {}).values():
        token["ids"] = [new[number] for number in token["ids"]]
    backbone = copy.deepcopy(small.model.backbone)
    rows = backbone.embeddings.word_embeddings.weight.detach()[kept]
    backbone.embeddings.word_embeddings = nn.Embedding(len(kept), rows.shape[1], _weight=rows)
    backbone.config.vocab_size = len(kept)
    return replace(
        small,
        model=MeanPooled(backbone).eval(),
        tokenizer=Tokenizer.from_str(json.dumps(state)),
        config={**small.config, "vocab_size": len(kept)},
    )


def _first(numbers: Iterable[int], size: int) -> list[int]:
    """The first `size` different ones."""
    return list(dict.fromkeys(numbers))[:size]
