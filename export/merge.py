"""python -m export.merge A:0.6 B:0.4 --out C: the weighted mean of checkpoints, as C2LLM's own recipe ends.

Each is a checkpoint's folder, a hub id, or the folder of a training run, whose adapter is merged into the weights
first. Weights are divided by their sum; without any, all count the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .command import told
from .errors import ExportError

if TYPE_CHECKING:
    from .checkpoint import Checkpoint

_WEIGHTLESS = frozenset({"meaning_lsp", "_name_or_path", "transformers_version", "torch_dtype", "dtype"})
"""Keys of config.json that say nothing of what is computed."""


@dataclass(frozen=True)
class Part:
    """A checkpoint and its weight."""

    source: str
    weight: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m export.merge", description=__doc__.partition("\n\n")[0])
    parser.add_argument("parts", nargs="+", metavar="CHECKPOINT[:WEIGHT]")
    parser.add_argument("--out", type=Path, required=True, help="the new checkpoint's folder")
    options = parser.parse_args(arguments)
    return told("export.merge", lambda: merge([read_part(text) for text in options.parts], options.out))


def read_part(text: str) -> Part:
    """`A:0.6`, or `A` for `A:1`. A colon that no number follows is a part of the name."""
    source, colon, number = text.rpartition(":")
    try:
        part = Part(source, float(number)) if colon else Part(text, 1.0)
    except ValueError:
        part = Part(text, 1.0)
    if not 0 < part.weight < float("inf"):
        raise ExportError(f"{text}: the weight is {part.weight:g}, it should be a positive number")
    return part


def merge(parts: Sequence[Part], out: Path) -> int:
    """Writes the weighted mean of the parts. Raises ExportError where they are not of one shape."""
    from .checkpoint import save

    if out.exists() and any(out.iterdir()):
        raise ExportError(f"{out}: is not empty; give a new folder")
    merged = mean(parts)
    save(merged, out)
    print(f"{out}: {' + '.join(f'{part.weight:g} {part.source}' for part in parts)}")  # noqa: T201
    return 0


def mean(parts: Sequence[Part]) -> Checkpoint:
    """The weighted mean of the parts' weights, otherwise the first one; two of them are in memory at once."""
    import torch

    whole = sum(part.weight for part in parts)
    first = load_any(parts[0].source)
    tensors = first.model.state_dict()
    with torch.no_grad():
        for value in tensors.values():
            value.mul_(parts[0].weight / whole)
        for part in parts[1:]:
            other = load_any(part.source)
            _check_alike(first, other, part.source)
            for name, value in other.model.state_dict().items():
                tensors[name].add_(value, alpha=part.weight / whole)
    return replace(first, source=" + ".join(f"{part.weight / whole:.4g} {Path(part.source).name}" for part in parts))


def _check_alike(first: Checkpoint, other: Checkpoint, source: str) -> None:
    mine, theirs = first.model.state_dict(), other.model.state_dict()
    for name in [*mine, *theirs]:
        if name not in mine or name not in theirs:
            raise ExportError(f"{source}: the tensor {name} is in only one of the checkpoints")
        if mine[name].shape != theirs[name].shape:
            shapes = f"{list(theirs[name].shape)}, that of the first is {list(mine[name].shape)}"
            raise ExportError(f"{source}: the tensor {name} is {shapes}")
    for key in sorted((first.config.keys() | other.config.keys()) - _WEIGHTLESS):
        if first.config.get(key) != other.config.get(key):
            a, b = first.config.get(key), other.config.get(key)
            raise ExportError(
                f"{source}: config.json has {key} {b!r}, that of the first {a!r}; they compute other things"
            )
    if first.tokenizer.to_str() != other.tokenizer.to_str():
        raise ExportError(f"{source}: its tokenizer is another than that of the first")


def load_any(source: str, revision: str | None = None) -> Checkpoint:
    """A checkpoint, or that of a training run's adapter with the adapter in its weights; float32, in memory."""
    from .checkpoint import load
    from .lora import apply_adapter, is_adapter, read_adapter

    folder = Path(source)
    if not is_adapter(folder):
        return load(source, revision)
    adapter = read_adapter(folder)
    checkpoint = load(adapter.source, adapter.revision, head_dim=adapter.head_dim)
    apply_adapter(checkpoint.model, folder, adapter)
    return checkpoint


if __name__ == "__main__":
    sys.exit(main())
