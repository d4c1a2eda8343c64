"""The small model: a BERT whose token states are averaged to a unit vector, and its checkpoint on disk.

Its tokenizer splits words as programmers join them before it makes them lower case: `parseHTTPResponse` is three words
that the model knows, `parsehttpresponse` is fragments. Of punctuation in a row the first sign stays, which saves a
tenth of code's tokens. (To leave it all out saves a third, and costs 0.05 of MRR on web queries: by it the model tells
sentences and calls apart.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, normalizers
from torch import Tensor, nn

from .checkpoint import CONFIG, OURS, TOKENIZER, UNKNOWN_LICENCE, read_tokenizer, whole
from .hub import CheckpointError
from .tokenizer import CAMEL
from .weights import WHOLE, read_json, read_tensors

BERT = "bert"
"""The `model_type` of config.json."""
MAX_TOKENS = 512
_UNUSED = ("pooler.", "embeddings.position_ids")
"""Of BERT's checkpoints: a layer for its first task, and a table of 0, 1, 2, …"""
_AS_WORDS = ((CAMEL, " "), (r"_+", " "), (r"(?<=[^\w\s])[^\w\s]+", ""))
"""What the tokenizer replaces, in this order."""
_TINY = 1e-12


class MeanPooled(nn.Module):
    """`backbone` (a transformers BertModel without pooler) and the mean over its token states."""

    def __init__(self, backbone: Any) -> None:
        super().__init__()
        self.backbone = backbone

    @property
    def dim(self) -> int:
        """Width of the embedding."""
        return int(self.backbone.config.hidden_size)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Both int64 [batch, tokens], 1 in the mask for a token and 0 for padding -> unit vectors float32 [batch, dim].

        Padding may be on either side: places are counted from a text's own first token.
        """
        states = self.backbone(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=(attention_mask.cumsum(-1) - 1).clamp_min(0),
        ).last_hidden_state
        weights = attention_mask.unsqueeze(-1).float()
        pooled = (states.float() * weights).sum(1) / weights.sum(1).clamp_min(1)
        return nn.functional.normalize(pooled, dim=-1, eps=_TINY)


@dataclass(frozen=True)
class Small:
    """A small model with its tokenizer and what there is to know about it."""

    model: MeanPooled
    tokenizer: Tokenizer
    config: Mapping[str, Any]
    max_tokens: int
    """The longest text that it is meant for, special tokens included."""
    source: str
    licence: str
    query_prompt: str = ""
    code_prompt: str = ""


def is_small(folder: Path) -> bool:
    """Whether a folder holds a checkpoint that `load_small` reads."""
    return (folder / CONFIG).is_file() and read_json(folder / CONFIG).get("model_type") == BERT


def load_small(folder: Path) -> Small:
    """Reads a BERT's folder: config.json, tokenizer.json, safetensors. Raises CheckpointError."""
    config = read_json(folder / CONFIG)
    if config.get("model_type") != BERT:
        raise CheckpointError(f"{folder / CONFIG}: model_type {config.get('model_type')!r}, it should be {BERT!r}")
    ours = config.get(OURS) or {}
    model = MeanPooled(_backbone(folder, config))
    return Small(
        model=model.eval(),
        tokenizer=read_tokenizer(folder / TOKENIZER),
        config=config,
        max_tokens=min(MAX_TOKENS, model.backbone.config.max_position_embeddings),
        source=ours.get("source", folder.resolve().name),
        licence=ours.get("licence", UNKNOWN_LICENCE),
    )


def save_small(small: Small, folder: Path) -> None:
    """Writes what `load_small` reads; a kill leaves each file as it was or new, never half of one."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    known = {"source": small.source, "licence": small.licence}
    config = json.dumps({**small.config, OURS: known}, indent=2) + "\n"
    tensors = {name: value.detach().cpu().contiguous() for name, value in small.model.backbone.state_dict().items()}
    with whole(folder / WHOLE) as part:
        save_file(tensors, part, metadata={"format": "pt"})
    with whole(folder / TOKENIZER) as part:
        small.tokenizer.save(str(part))
    with whole(folder / CONFIG) as part:
        part.write_text(config, encoding="utf-8")


def for_code(small: Small) -> Small:
    """The same model with a tokenizer that takes joined words apart and signs in a row as one, if it does not yet."""
    tokenizer = Tokenizer.from_str(small.tokenizer.to_str())
    joined, apart = (tokenizer.encode(text).tokens for text in ("fooBar(a_b))", "foo bar(a b)"))
    if joined != apart:
        words = [normalizers.Replace(Regex(pattern), instead) for pattern, instead in _AS_WORDS]
        tokenizer.normalizer = normalizers.Sequence([*words, tokenizer.normalizer])
    return replace(small, tokenizer=tokenizer)


def mix(model: MeanPooled, other: MeanPooled, share: float) -> None:
    """Changes the model's weights to their mean with those of `other`, of the same shape, which has `share` of it."""
    with torch.no_grad():
        for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
            mine.lerp_(theirs.to(mine.device), share)


def _backbone(folder: Path, config: Mapping[str, Any]) -> Any:
    """The BertModel that the folder's tensors fill. Without dropout: no text is seen often enough to be learned."""
    from transformers import BertConfig, BertModel

    calm = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    settings = BertConfig(**{key: value for key, value in config.items() if key != OURS} | calm)
    backbone = BertModel(settings, add_pooling_layer=False)
    tensors = read_tensors(folder, torch.float32)
    kept = {name.removeprefix("bert."): value for name, value in tensors.items()}
    kept = {name: value for name, value in kept.items() if not name.startswith(_UNUSED)}
    wanted = {name: value.shape for name, value in backbone.state_dict().items()}
    for name in sorted(wanted.keys() ^ kept.keys()):
        raise CheckpointError(f"{folder}: the tensor {name} is {'missing' if name in wanted else 'not one of a BERT'}")
    for name, value in kept.items():
        if value.shape != wanted[name]:
            raise CheckpointError(
                f"{folder}: the tensor {name} is {list(value.shape)}, by {CONFIG} it should be {list(wanted[name])}"
            )
    backbone.load_state_dict(kept)
    return backbone
