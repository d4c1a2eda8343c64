"""A BERT of a few kilobytes in the layout of the released ones, and a corpus that it learns in seconds."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertModel

from .pairs import NOUNS, VERBS, code

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
CHARACTERS = string.ascii_lowercase + string.digits + string.punctuation
WORDS = [*VERBS, *NOUNS, "the", "def", "return", "func", "error", "how", "to", "elephant"]
VOCABULARY = [
    *SPECIAL,
    *(f"[unused{at}]" for at in range(5)),
    *CHARACTERS,
    *(f"##{character}" for character in string.ascii_lowercase + string.digits),
    *WORDS,
]
CONFIG: dict[str, Any] = {
    "model_type": "bert",
    "vocab_size": len(VOCABULARY),
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "initializer_range": 0.1,
}


def tokenizer() -> Tokenizer:
    """BERT's, of VOCABULARY."""
    made = Tokenizer(WordPiece({word: at for at, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    made.normalizer = BertNormalizer(lowercase=True)
    made.pre_tokenizer = BertPreTokenizer()
    made.add_special_tokens(SPECIAL)
    ends = [(word, VOCABULARY.index(word)) for word in ("[CLS]", "[SEP]")]
    made.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=ends
    )
    return made


def write_model(folder: Path) -> Path:
    """The model's folder, with the pooler that released ones have and the small model does not use."""
    folder.mkdir(parents=True, exist_ok=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        state = BertModel(BertConfig(**CONFIG)).state_dict()
    save_file({name: value.contiguous() for name, value in state.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def write_corpus(folder: Path) -> Path:
    """What export.corpus leaves: a function for each verb and noun, in two languages; the last noun is held out."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, nouns in (("train", NOUNS[:-1]), ("valid", NOUNS[-1:])):
        rows = [row(verb, noun, language) for language in ("python", "go") for verb in VERBS for noun in nouns]
        (folder / f"{part}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    return folder


def row(verb: str, noun: str, language: str) -> dict[str, str]:
    """A pair of the corpus."""
    name = f"{verb}_{noun}" if language == "python" else f"{verb.title()}{noun.title()}"
    query = f"{verb.title()}s the {noun}. Never fails."
    return {
        "language": language,
        "package": f"pypi-{noun}",
        "query": query,
        "code": code(verb, noun, language),
        "name": name,
    }
