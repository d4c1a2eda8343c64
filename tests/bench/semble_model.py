"""A model of the shape that semble loads, made here: run by semble's own interpreter, which has model2vec.

    python semble_model.py OUT TEXTS …

A WordPiece vocabulary of 30,000 tokens learned from the texts, and for each token 256 numbers drawn by chance. To look
up, add and compare such vectors takes as long as if they meant something; what they find means nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

TOKENS, WIDTH = 30_000, 256
SPECIAL = ["[PAD]", "[UNK]"]


def main() -> None:
    """Make it."""
    model = import_module("model2vec").StaticModel  # only semble's environment has it
    out, *texts = sys.argv[1:]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train(texts, trainers.WordPieceTrainer(vocab_size=TOKENS, special_tokens=SPECIAL, show_progress=False))
    count = tokenizer.get_vocab_size()
    vectors = np.random.default_rng(0).standard_normal((count, WIDTH), np.float32)
    model(vectors, tokenizer, {"normalize": True}, normalize=True).save_pretrained(out)
    print(count)


if __name__ == "__main__":
    main()
