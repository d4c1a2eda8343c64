"""The corpus as a student learns from it, in numbers: each pair asked in every way, its code, its file's path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer

from server.index.prepare import path_words

from .bundle import MAX_TOKENS
from .corpus.quality import pieces
from .pairs import Row, Texts, encode
from .searches import NAME_WORDS, bare_words, question, without_name
from .tokenizer import make_tokenizer, vocabulary, word_counts

QUERY_TOKENS = 64
VOCABULARY_CODE_CHARS = 3_000
PATH_PARTS = 4
"""The last ones of a path: those before are where its package was installed to."""
WAYS = ("doc", "words", "question", "name")
"""How a pair is asked: as its doc comment, by its bare words, as a question, by the words of the function's name."""
NAME = WAYS.index("name")

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Data:
    """The encoded corpus; `queries`, `codes`, `nameless` and `paths` have a text for each pair."""

    tokenizer: Tokenizer
    queries: Mapping[str, Texts]
    """By way of asking."""
    codes: Texts
    nameless: Texts
    """Code without its name, every second one with its doc comment: what is asked for by its name."""
    paths: Texts
    packages: Numbers
    """[pairs]: the number of the package that each is from."""
    named: npt.NDArray[np.bool_]
    """[pairs]: whether the function's name says enough to ask for it."""
    frequencies: torch.Tensor
    """[vocabulary]: the share of texts that each word is in."""

    def __len__(self) -> int:
        return len(self.codes)


def prepare(rows: Sequence[Row], seed: int) -> Data:
    """Makes the vocabulary from the pairs and encodes them."""
    counts = word_counts(text for row in rows for text in (row.query, row.code[:VOCABULARY_CODE_CHARS]))
    words = vocabulary(counts)
    tokenizer = make_tokenizer(words)
    random = np.random.default_rng(seed)

    def encoded(texts: Sequence[str], most: int = QUERY_TOKENS) -> Texts:
        return encode(texts, tokenizer, most)

    queries = {
        "doc": encoded([row.query for row in rows]),
        "words": encoded([bare_words(row.query) or row.query for row in rows]),
        "question": encoded([question(row.query, random) for row in rows]),
        "name": encoded([" ".join(pieces(row.name)) or row.query for row in rows]),
    }
    codes = encoded([row.code for row in rows], MAX_TOKENS)
    seen = queries["doc"].with_word(len(words)) + codes.with_word(len(words))
    return Data(
        tokenizer=tokenizer,
        queries=queries,
        codes=codes,
        nameless=encoded([without_name(row, random) for row in rows], MAX_TOKENS),
        paths=encoded([last_words(row.path) for row in rows]),
        packages=np.unique([row.package for row in rows], return_inverse=True)[1].astype(np.int64),
        named=np.array([len(pieces(row.name)) >= NAME_WORDS for row in rows]),
        frequencies=torch.from_numpy(seen / (2 * len(rows))).float(),
    )


def last_words(path: str) -> str:
    """The end of a path as the words that the index has of it."""
    return path_words("/".join(PurePosixPath(path).parts[-PATH_PARTS:])) if path else ""
