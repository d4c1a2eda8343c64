"""Checkpoints of a few kilobytes, in the released ones' layout: a Qwen2 of two layers, a PMA head, a tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from torch import Tensor

from export.c2llm import HeadConfig, new_head

VOCABULARY = 300
WIDTH = 32
THETA = 1_000_000.0

CODE = [
    "def read_lines(path):\n    with open(path) as lines:\n        return [line.strip() for line in lines]",
    "def add(first, second):\n    return first + second",
    "class Stack:\n    def push(self, value):\n        self.items.append(value)",
    "for key, value in sorted(counts.items()):\n    print(key, value)",
    "function retry(send, attempts) { while (attempts--) { try { return send() } catch (error) {} } }",
    "public int size() { return this.count; }",
    "if not values:\n    raise ValueError('no values')",
    "x = 1",
]

CONFIG: dict[str, Any] = {
    "model_type": "qwen2",
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "rope_theta": THETA,
    "tie_word_embeddings": True,
    "use_sliding_window": False,
}
HEAD_CONFIG: dict[str, Any] = {
    "embedding_method": "pma",
    "compress_dim": WIDTH,
    "pma_num_heads": 4,
    "pma_ln": True,
    "pma_norm": False,
    "pma_norm_mode": "post_normal",
    "keep_max_layer": 2,
    "inf_seq_length": 128,
    "padding_side": "left",
}


def tokenizer() -> Tokenizer:
    """A byte-level BPE tokenizer, as Qwen2's, of at most VOCABULARY tokens."""
    made = Tokenizer(BPE())
    made.pre_tokenizer = ByteLevel(add_prefix_space=False)
    made.decoder = ByteLevelDecoder()
    made.train_from_iterator(
        CODE, BpeTrainer(vocab_size=VOCABULARY, initial_alphabet=ByteLevel.alphabet(), show_progress=False)
    )
    return made


def backbone_tensors(prefix: str, seed: int = 0) -> dict[str, Tensor]:
    """Random weights of CONFIG's backbone, large enough that every part of it matters."""
    random = torch.Generator().manual_seed(seed)
    width, inner, kv = WIDTH, CONFIG["intermediate_size"], WIDTH // 2
    shapes: dict[str, tuple[int, ...]] = {"embed_tokens.weight": (VOCABULARY, width), "norm.weight": (width,)}
    for layer in range(CONFIG["num_hidden_layers"]):
        for name, out, into, bias in (
            ("self_attn.q_proj", width, width, True),
            ("self_attn.k_proj", kv, width, True),
            ("self_attn.v_proj", kv, width, True),
            ("self_attn.o_proj", width, width, False),
            ("mlp.gate_proj", inner, width, False),
            ("mlp.up_proj", inner, width, False),
            ("mlp.down_proj", width, inner, False),
        ):
            shapes[f"layers.{layer}.{name}.weight"] = (out, into)
            if bias:
                shapes[f"layers.{layer}.{name}.bias"] = (out,)
        shapes[f"layers.{layer}.input_layernorm.weight"] = (width,)
        shapes[f"layers.{layer}.post_attention_layernorm.weight"] = (width,)
    return {
        prefix + name: torch.randn(shape, generator=random) * (0.2 if len(shape) == 2 else 0.1) + ("norm" in name)
        for name, shape in shapes.items()
    }


def head_tensors(head: HeadConfig, seed: int = 0) -> dict[str, Tensor]:
    """A PMA head's weights under their names in a checkpoint; LayerNorms that do something."""
    random = torch.Generator().manual_seed(seed)
    state = new_head(head, seed).state_dict()
    return {
        f"mha_pma.{name}": tensor + 0.1 * torch.randn(tensor.shape, generator=random) * (".ln" in name)
        for name, tensor in state.items()
    }


def write_checkpoint(
    folder: Path,
    changed: dict[str, Any] | None = None,
    tensors: dict[str, Tensor] | None = None,
    head: HeadConfig | None = None,
    shards: int = 1,
) -> Path:
    """A checkpoint with a head: `changed` keys of config.json (None leaves one out), other `tensors`."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {**CONFIG, **HEAD_CONFIG, **(changed or {})}
    if tensors is None:
        head = head or HeadConfig(WIDTH, WIDTH, HEAD_CONFIG["pma_num_heads"])
        tensors = backbone_tensors("plm_model.model.") | head_tensors(head)
    write_files(folder, {key: value for key, value in config.items() if value is not None}, tensors, shards)
    return folder


def write_plain(folder: Path) -> Path:
    """Weights of the language model alone, as Qwen2.5-Coder's."""
    folder.mkdir(parents=True, exist_ok=True)
    write_files(folder, CONFIG, backbone_tensors("model."), 1)
    return folder


def write_files(folder: Path, config: dict[str, Any], tensors: dict[str, Tensor], shards: int) -> None:
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer().save(str(folder / "tokenizer.json"))
    if shards == 1:
        save_file(tensors, folder / "model.safetensors")
        return
    names = sorted(tensors)
    shard_of = {name: f"model-{1 + at % shards:05}-of-{shards:05}.safetensors" for at, name in enumerate(names)}
    for shard in set(shard_of.values()):
        save_file({name: tensors[name] for name in names if shard_of[name] == shard}, folder / shard)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": shard_of}))
