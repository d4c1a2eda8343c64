"""A Qwen2 backbone from a .gguf file, for experiments where no safetensors are to be had. Needs the `gguf` package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from .errors import one_line
from .hub import CheckpointError

ARCHITECTURE = "qwen2"
_SIZES = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "max_position_embeddings": "context_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "rope_theta": "rope.freq_base",
}
_IN_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_EMBEDDING, _OUTPUT, _NORM = "token_embd.weight", "output.weight", "output_norm.weight"


def read_gguf(path: Path, dtype: torch.dtype) -> tuple[dict[str, Any], dict[str, Tensor], Tokenizer]:
    """The config and the tensors (dequantised, of the names of a plain Qwen2), and the tokenizer."""
    try:
        from gguf import GGUFReader
    except ImportError:
        raise CheckpointError(f"{path}: reading it needs another package; run `pip install gguf`") from None
    try:
        reader = GGUFReader(path)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: not a GGUF file ({one_line(error)}); copy it again") from None
    kind = _field(reader, "general.architecture", path)
    if kind != ARCHITECTURE:
        raise CheckpointError(f"{path}: its architecture is {kind!r}, only {ARCHITECTURE!r} is known here")
    config = {key: _field(reader, f"{ARCHITECTURE}.{name}", path) for key, name in _SIZES.items()}
    tensors = _tensors(reader, dtype, path)
    config |= {"model_type": ARCHITECTURE, "tie_word_embeddings": True}
    config["vocab_size"] = len(tensors["model.embed_tokens.weight"])
    return config, tensors, _tokenizer(path)


def _field(reader: Any, name: str, path: Path) -> Any:
    field = reader.get_field(name)
    if field is None:
        raise CheckpointError(f"{path}: `{name}` is missing; copy the file again")
    return field.contents()


def _tensors(reader: Any, dtype: torch.dtype, path: Path) -> dict[str, Tensor]:
    from gguf import dequantize

    found: dict[str, Any] = {tensor.name: tensor for tensor in reader.tensors}
    if _OUTPUT in found and _EMBEDDING in found:
        # One table in Qwen2 (at these sizes); the output's copy is kept with more bits.
        found[_EMBEDDING] = found.pop(_OUTPUT)
    return {
        _name(name, path): torch.tensor(dequantize(tensor.data, tensor.tensor_type), dtype=dtype)
        for name, tensor in found.items()
    }


def _name(name: str, path: Path) -> str:
    """A tensor's name in a Qwen2."""
    if name == _EMBEDDING:
        return "model.embed_tokens.weight"
    if name == _NORM:
        return "model.norm.weight"
    block, _, rest = name.removeprefix("blk.").partition(".")
    part, _, kind = rest.rpartition(".")
    if not block.isdigit() or part not in _IN_LAYER:
        raise CheckpointError(f"{path}: there is no place for the tensor {name}")
    return f"model.layers.{block}.{_IN_LAYER[part]}.{kind}"


def _tokenizer(path: Path) -> Tokenizer:
    from transformers import AutoTokenizer

    tokenizer: Tokenizer = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name).backend_tokenizer
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
