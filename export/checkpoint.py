"""Checkpoints of the C2LLM family: read and written as data, whatever version of transformers is installed.

A checkpoint is a folder of config.json, safetensors (one file or shards) and tokenizer.json. Nothing of it is run: no
remote code, no pickle. Every tensor in it is used and none is missing, but for a language model's output layer
(`lm_head`), which an embedder does not have, and old tables of rotary frequencies, which are computed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from .c2llm import C2LLM, LAST, PMA, HeadConfig, new_head
from .config import SENTENCE_TOKENS, backbone_config, head_config, head_keys, rope_theta
from .errors import one_line
from .hub import KNOWN, CheckpointError, Source, locate
from .weights import WHOLE, read_json, read_tensors

__all__ = ["Checkpoint", "CheckpointError", "load", "save"]

CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
OURS = "meaning_lsp"
"""The key of config.json under which `save` keeps what the family's config has no place for."""
QUERY_PROMPT = "Given a query from a web search, retrieve code that is helpful in addressing the query.\n"
CODE_PROMPT = "Retrieved Answer:"
UNKNOWN_LICENCE = "unknown"
FRESH_HEADS_WIDTH = 64
"""The width of one head of a fresh PMA."""
HEAD = "mha_pma."
BACKBONE = "plm_model.model."
"""Before the backbone's names as `save` writes them: a language model inside the checkpoint's model."""
_BACKBONES = (BACKBONE, "plm_model.", "model.", "")
_UNUSED = ("lm_head.weight", "rotary_emb.inv_freq")


@dataclass(frozen=True)
class Checkpoint:
    """A model with its tokenizer and what there is to know about it."""

    model: C2LLM
    tokenizer: Tokenizer
    config: Mapping[str, Any]
    """config.json, with the keys of the head that the model really has."""
    query_prompt: str
    code_prompt: str
    max_tokens: int
    """The longest text that it is meant for."""
    source: str
    licence: str
    revision: str | None
    """The hub's commit; None for a local one."""
    fresh_head: bool = False
    """Whether the weights had no head, and it got one that knows nothing yet."""


def load(
    source: str, revision: str | None = None, dtype: torch.dtype = torch.float32, head_dim: int | None = None
) -> Checkpoint:
    """Reads a checkpoint: a folder, a .gguf file, or a hub id, at its pinned revision unless another is named.

    Weights without a head, as plain Qwen2.5-Coder's, get a fresh one of width `head_dim` (the backbone's if None). A
    checkpoint that has a head keeps it, and `head_dim` may only be its width. Raises CheckpointError.
    """
    found = locate(source, revision)
    if found.path.suffix == ".gguf":
        from .gguf import read_gguf

        config, tensors, tokenizer = read_gguf(found.path, dtype)
    elif found.path.is_dir():
        config = read_json(found.path / CONFIG)
        tokenizer = read_tokenizer(found.path / TOKENIZER)
        tensors = read_tensors(found.path, dtype)
    else:
        raise CheckpointError(f"{source}: neither a folder nor a .gguf file; give the checkpoint's folder")
    return _assemble(found, config, tensors, tokenizer, dtype, head_dim)


def save(checkpoint: Checkpoint, folder: Path) -> None:
    """Writes the checkpoint into `folder`, in the layout that `load` and the family's own code read."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    model = checkpoint.model
    tensors = {BACKBONE + name: tensor for name, tensor in model.backbone.state_dict().items()}
    tensors |= {HEAD + name: tensor for name, tensor in model.head.state_dict().items()}
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    config = json.dumps(saved_config(checkpoint), indent=2) + "\n"
    # Each under another name first: a kill leaves the old file or the new one, never half of one.
    with whole(folder / WHOLE) as part:
        save_file(tensors, part, metadata={"format": "pt"})
    with whole(folder / TOKENIZER) as part:
        checkpoint.tokenizer.save(str(part))
    with whole(folder / CONFIG) as part:
        part.write_text(config, encoding="utf-8")


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Where to write a file that takes the name `path` when it is all there."""
    part = path.with_name(path.name + ".part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def saved_config(checkpoint: Checkpoint) -> dict[str, Any]:
    """config.json as `save` writes it: with rope theta where transformers 4 and where 5 look for it."""
    model, theta = checkpoint.model, rope_theta(checkpoint.config, Path(CONFIG))
    return {
        **{key: value for key, value in checkpoint.config.items() if key not in ("auto_map", "transformers_version")},
        **head_keys(model.head.config, model.backbone.config.num_hidden_layers),
        "rope_theta": theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": theta},
        "inf_seq_length": checkpoint.max_tokens,
        OURS: {
            "query_prompt": checkpoint.query_prompt,
            "code_prompt": checkpoint.code_prompt,
            "source": checkpoint.source,
            "licence": checkpoint.licence,
            "revision": checkpoint.revision,
        },
    }


def _assemble(
    found: Source,
    config: dict[str, Any],
    tensors: dict[str, Tensor],
    tokenizer: Tokenizer,
    dtype: torch.dtype,
    head_dim: int | None,
) -> Checkpoint:
    where = found.path / CONFIG
    heads = {name.removeprefix(HEAD): tensors.pop(name) for name in list(tensors) if name.startswith(HEAD)}
    backbone = _backbone(found, backbone_config(config, where), tensors)
    if heads:
        head = _head(found, head_config(config, _shapes(heads), where), heads)
        if head_dim not in (None, head.config.dim):
            raise CheckpointError(f"{found.path}: has a head of width {head.config.dim}, not {head_dim}")
    else:
        width = backbone.config.hidden_size
        head = new_head(fresh_head(width, width if head_dim is None else head_dim)).to(dtype)
    ours = config.get(OURS) or {}
    known = KNOWN.get(found.name)
    limit = int(config.get("inf_seq_length") or SENTENCE_TOKENS)
    return Checkpoint(
        model=C2LLM(backbone, head).eval(),
        tokenizer=tokenizer,
        config={**config, **head_keys(head.config, backbone.config.num_hidden_layers)},
        query_prompt=ours.get("query_prompt", QUERY_PROMPT),
        code_prompt=ours.get("code_prompt", CODE_PROMPT),
        max_tokens=min(limit, backbone.config.max_position_embeddings),
        source=ours.get("source", found.name),
        licence=ours.get("licence", known.licence if known else UNKNOWN_LICENCE),
        revision=ours.get("revision", found.revision),
        fresh_head=not heads,
    )


def _backbone(found: Source, config: Any, tensors: dict[str, Tensor]) -> Any:
    """The Qwen2Model that the tensors fill. They are taken as they are, without a copy."""
    from transformers import Qwen2Model
    from transformers.models.qwen2.modeling_qwen2 import Qwen2RotaryEmbedding

    prefix = next((p for p in _BACKBONES if f"{p}embed_tokens.weight" in tensors), None)
    if prefix is None:
        raise CheckpointError(f"{found.path}: no tensor {BACKBONE}embed_tokens.weight; it is no Qwen2")
    with torch.device("meta"):
        model = Qwen2Model(config)
    named = {name: tensor for name, tensor in tensors.items() if not name.endswith(_UNUSED)}
    _fill(model, named, prefix, found)
    model.rotary_emb = Qwen2RotaryEmbedding(config)  # Its table is computed, so on no other device than the CPU.
    _check_rope(model, config, found)
    return model


def _head(found: Source, config: HeadConfig, tensors: dict[str, Tensor]) -> PMA:
    with torch.device("meta"):
        head = PMA(config)
    _fill(head, {HEAD + name: tensor for name, tensor in tensors.items()}, HEAD, found)
    return head


def _fill(module: nn.Module, tensors: Mapping[str, Tensor], prefix: str, found: Source) -> None:
    """Gives the module its tensors, each of which must have its place in it and the right shape."""
    wanted = {prefix + name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    for name in sorted(wanted.keys() | tensors.keys()):
        if name not in tensors:
            raise CheckpointError(f"{found.path}: the tensor {name} {list(wanted[name])} is missing")
        if name not in wanted:
            raise CheckpointError(f"{found.path}: there is no place for the tensor {name} {list(tensors[name].shape)}")
        if (shape := tuple(tensors[name].shape)) != wanted[name]:
            raise CheckpointError(
                f"{found.path}: the tensor {name} is {list(shape)}, by {CONFIG} it should be {list(wanted[name])}"
            )
    module.load_state_dict({name.removeprefix(prefix): tensor for name, tensor in tensors.items()}, assign=True)
    module.requires_grad_(True)


def _check_rope(model: Any, config: Any, found: Source) -> None:
    """The frequencies are of the theta that was asked for: versions of transformers have lost it silently."""
    asked = config.rope_parameters["rope_theta"]
    width = 2 * len(model.rotary_emb.inv_freq)
    expected = asked ** (-torch.arange(0, width, 2, dtype=torch.float32) / width)
    if not torch.allclose(model.rotary_emb.inv_freq.float(), expected):
        raise CheckpointError(f"{found.path}: this transformers ignores rope theta {asked:g}; install 4.57 or 5")


def fresh_head(backbone_dim: int, dim: int, layer: int = LAST) -> HeadConfig:
    """A head to be trained: of the released form, its heads FRESH_HEADS_WIDTH wide where that divides `dim`."""
    heads, rest = divmod(dim, FRESH_HEADS_WIDTH)
    return HeadConfig(backbone_dim, dim, 1 if rest else heads, layer=layer)


def read_tokenizer(path: Path) -> Tokenizer:
    if not path.exists():
        raise CheckpointError(f"{path}: missing; a checkpoint has this file, copy it again")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # The library raises nothing more precise.
        raise CheckpointError(f"{path}: not a tokenizer ({one_line(error)}); copy the checkpoint again") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}
