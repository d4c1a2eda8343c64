"""A checkpoint's config.json -> what is built: the backbone's Qwen2Config and the head's HeadConfig.

Every key that changes what is computed is read here, and a value that is not known here is refused by name: a
checkpoint that loads and means something else would be worse than one that does not load.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .c2llm import LAST, HeadConfig
from .hub import CheckpointError

SIZES = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "max_position_embeddings",
)
BACKBONE_TYPE = "qwen2"
SENTENCE_TOKENS = 1024
"""The length that the family was trained at, for a config that names none."""
_NORMS_OF = {
    "post_normal": {"ln0", "ln1"},
    "pre_normal": {"ln_q", "ln_kv", "ln_o", "ln_final"},
    "pre_gptj": {"ln_q", "ln_kv", "ln_final"},
}


def backbone_config(config: Mapping[str, Any], where: Path) -> Any:
    """The Qwen2Config. It is made of the keys that we know, and none of it comes from anybody's code."""
    from transformers import Qwen2Config

    _refuse_unknown(config, where)
    theta = rope_theta(config, where)
    optional = {
        key: config[key]
        for key in ("rms_norm_eps", "hidden_act", "head_dim", "initializer_range", "attention_dropout")
        if config.get(key) is not None
    }
    return Qwen2Config(
        **{key: _size(config, key, where) for key in SIZES},
        **optional,
        tie_word_embeddings=bool(config.get("tie_word_embeddings", False)),
        # transformers 4 reads the first and ignores the second; 5 reads the second.
        rope_theta=theta,
        rope_parameters={"rope_type": "default", "rope_theta": theta},
        use_cache=False,
    )


def rope_theta(config: Mapping[str, Any], where: Path) -> float:
    """The base of the rotary embedding: at the top as transformers 4 writes it, or in rope_parameters as 5 does."""
    inner = config.get("rope_parameters") or {}
    scaling = config.get("rope_scaling") or {}
    kind = inner.get("rope_type", scaling.get("rope_type", scaling.get("type", "default")))
    if kind != "default":
        raise CheckpointError(f"{where}: rope type {kind!r} is not known here, only 'default'")
    named = {float(value) for value in (config.get("rope_theta"), inner.get("rope_theta")) if value is not None}
    if len(named) != 1:
        told = f"both {' and '.join(f'{value:g}' for value in sorted(named))}" if named else "no value"
        raise CheckpointError(f"{where}: gives {told} for `rope_theta`; write the one that the model was trained with")
    return named.pop()


def head_config(config: Mapping[str, Any], tensors: Mapping[str, tuple[int, ...]], where: Path) -> HeadConfig:
    """The head, from the config and, where that is silent, from its tensors' names and shapes (without `mha_pma.`)."""
    if (method := config.get("embedding_method", "pma")) != "pma":
        raise CheckpointError(f"{where}: `embedding_method` {method!r} is not known here, only 'pma'")
    if isinstance(config.get("pma_num_heads"), bool) or not isinstance(config.get("pma_num_heads"), int):
        raise CheckpointError(f"{where}: `pma_num_heads` is missing; write how many heads the PMA head has")
    seed = tensors.get("S", ())
    if len(seed) != 3 or seed[:2] != (1, 1):
        raise CheckpointError(f"{where}: the tensor mha_pma.S is {list(seed) or 'missing'}, it should be [1, 1, width]")
    norms = {name.split(".")[1] for name in tensors if name.startswith("mab.ln")}
    width = seed[-1] if config.get("compress_dim") is None else _size(config, "compress_dim", where)
    layers = _size(config, "num_hidden_layers", where)
    layer = config.get("keep_max_layer", LAST)
    try:
        return HeadConfig(
            backbone_dim=_size(config, "hidden_size", where),
            dim=width,
            heads=config["pma_num_heads"],
            norm_mode=config.get("pma_norm_mode") or _mode_of(norms, where),
            layer_norms=config.get("pma_ln", bool(norms)),
            residual=config.get("pma_residual", "seed"),
            layer=LAST if layer in (LAST, layers) else _layer(layer, layers),
        )
    except ValueError as error:
        raise CheckpointError(f"{where}: {error}") from None


def head_keys(head: HeadConfig, layers: int) -> dict[str, Any]:
    """The family's keys for a head; `head_config` reads them back."""
    return {
        "embedding_method": "pma",
        "compress_dim": head.dim,
        "pma_num_heads": head.heads,
        "pma_ln": head.layer_norms,
        # False: the vector is divided by its length after the head. (True in the family leaves that to the caller;
        # here vectors always have unit length, which changes no direction.)
        "pma_norm": False,
        "pma_norm_mode": head.norm_mode,
        "pma_residual": head.residual,
        "keep_max_layer": layers if head.layer == LAST else head.layer,
        "padding_side": "left",
    }


def _mode_of(norms: set[str], where: Path) -> str:
    """The way of the head whose LayerNorms these are."""
    for mode, names in _NORMS_OF.items():
        if norms == names:
            return mode
    raise CheckpointError(f"{where}: `pma_norm_mode` is missing; write it (LayerNorms found: {sorted(norms)})")


def _layer(layer: Any, layers: int) -> int:
    if isinstance(layer, bool) or not isinstance(layer, int) or not 0 < layer < layers:
        raise ValueError(f"keep_max_layer {layer!r} is none of the {layers} layers")
    return layer


def _refuse_unknown(config: Mapping[str, Any], where: Path) -> None:
    from transformers import CONFIG_MAPPING

    # The family's own models have types of their own; what transformers knows under another name is another model.
    if (kind := config.get("model_type", BACKBONE_TYPE)) != BACKBONE_TYPE and kind in CONFIG_MAPPING:
        raise CheckpointError(f"{where}: `model_type` {kind!r} is another architecture; give a {BACKBONE_TYPE} one")
    if config.get("use_sliding_window") or "sliding_attention" in config.get("layer_types", ()):
        raise CheckpointError(f"{where}: `use_sliding_window` is on, which is not known here")
    if config.get("quantization_config"):
        raise CheckpointError(f"{where}: quantised weights (`quantization_config`) are not known here; take full ones")


def _size(config: Mapping[str, Any], key: str, where: Path) -> int:
    value = config.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise CheckpointError(f"{where}: `{key}` is {value!r}, it should be a positive whole number")
    return value
