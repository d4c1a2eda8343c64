"""The student's tokenizer: a plain `tokenizers` file, words split as programmers join them, in lower case.

`getHTTPResponse_v2` -> get http response v 2. A word outside of the vocabulary becomes the longest words of it that it
begins with, down to single characters, so nothing that is written in ASCII is lost.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

PAD, UNKNOWN = "[PAD]", "[UNK]"
VOCABULARY_SIZE = 50_000
MIN_COUNT = 3
"""A word seen less often has learned nothing; better its parts."""
MAX_WORD_CHARS = 32
"""Longer runs of letters are base64 and the like: one unknown token."""

CAMEL = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"
_WORD = r"[a-z]+|[0-9]+"


def word_counts(texts: Iterable[str]) -> Counter[str]:
    """How often each word occurs, split as the tokenizer splits."""
    splitter = _splitter()
    counts: Counter[str] = Counter()
    for text in texts:
        normal = splitter.normalizer.normalize_str(text)
        counts.update(word for word, _ in splitter.pre_tokenizer.pre_tokenize_str(normal))
    return counts


def vocabulary(counts: Counter[str], size: int = VOCABULARY_SIZE) -> list[str]:
    """Special tokens, every ASCII letter and digit, then the most frequent words (ties in alphabetical order)."""
    fixed = [PAD, UNKNOWN, *string.ascii_lowercase, *string.digits]
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    words = [w for w, n in ordered if n >= MIN_COUNT and 1 < len(w) <= MAX_WORD_CHARS]
    return fixed + words[: size - len(fixed)]


def make_tokenizer(words: list[str]) -> Tokenizer:
    """The tokenizer whose ids are the positions in `words`, as `vocabulary` gives them."""
    tokenizer = _splitter()
    tokenizer.model = models.WordPiece(
        vocab={word: at for at, word in enumerate(words)},
        unk_token=UNKNOWN,
        continuing_subword_prefix="",
        max_input_chars_per_word=MAX_WORD_CHARS,
    )
    return tokenizer


def _splitter() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(vocab={UNKNOWN: 0}, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Replace(Regex(CAMEL), " "), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_WORD), behavior="removed", invert=True)
    return tokenizer
