"""A folder's safetensors files -> its tensors; whole or sharded, never pickles."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from .errors import one_line
from .hub import CheckpointError

WHOLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
BYTES_IN_GGUF = 0.7
"""Of a weight, in the coarser kinds of file."""
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file of the checkpoint."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror or error}; a checkpoint has this file, copy it again") from None
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: not JSON ({one_line(error)}); copy the checkpoint again") from None
    if not isinstance(values, dict):
        raise CheckpointError(f"{path}: no JSON object; copy the checkpoint again")
    return values


def read_tensors(folder: Path, dtype: torch.dtype) -> dict[str, Tensor]:
    """Every tensor in the folder's safetensors, as `dtype`."""
    if not (folder / INDEX).exists():
        if not (folder / WHOLE).exists():
            raise CheckpointError(_nothing(folder))
        return _read_file(folder / WHOLE, dtype)
    shard_of = read_json(folder / INDEX).get("weight_map")
    if not isinstance(shard_of, dict) or not all(isinstance(name, str) for name in shard_of.values()):
        raise CheckpointError(f"{folder / INDEX}: `weight_map` is missing or damaged; copy the checkpoint again")
    tensors: dict[str, Tensor] = {}
    for name in sorted(set(shard_of.values())):
        if Path(name).name != name:
            raise CheckpointError(f"{folder / INDEX}: names the shard {name!r}, which is not in its folder")
        tensors |= _read_file(folder / name, dtype)
    if absent := sorted(shard_of.keys() - tensors.keys()):
        raise CheckpointError(f"{folder / INDEX}: {absent[0]} is in no shard; copy the checkpoint again")
    return tensors


def parameters(path: Path) -> int:
    """How many weights a checkpoint's folder holds, or about how many a .gguf file: read off sizes, without loading."""
    if path.is_file():
        return int(path.stat().st_size / BYTES_IN_GGUF)
    try:
        return sum(_weights_in(file) for file in path.glob("*.safetensors"))
    except (OSError, SafetensorError):
        return 0  # Loading will say what is wrong.


def _weights_in(path: Path) -> int:
    with safe_open(path, framework="pt") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118


def _read_file(path: Path, dtype: torch.dtype) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt") as file:
            # A tensor is a view of the mapped file; the copy outlives it, and a file that is overwritten.
            return {name: file.get_tensor(name).to(dtype, copy=True) for name in file.keys()}  # noqa: SIM118
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror or one_line(error)}; copy the checkpoint again") from None
    except SafetensorError as error:
        raise CheckpointError(
            f"{path}: damaged or cut short ({one_line(error)}); copy or download the checkpoint again"
        ) from None


def _nothing(folder: Path) -> str:
    for pattern in _PICKLES:
        if pickled := sorted(folder.glob(pattern)):
            return (
                f"{pickled[0]}: a pickle, which can run code when it is read, and is not; "
                f"convert it to {WHOLE} where you trust it"
            )
    return f"{folder}: holds neither {WHOLE} nor {INDEX}; give a folder with a checkpoint in it"
