"""LoRA: a frozen linear layer W x becomes W x + (alpha / rank) B A x, of which only A and B are trained."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from .c2llm import C2LLM
from .errors import ExportError, one_line

ADAPTER = "adapter.safetensors"
ADAPTER_CONFIG = "adapter.json"
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""Every linear layer of the backbone."""
_FORMAT = 1


@dataclass(frozen=True)
class Adapter:
    """What adapter.json says: the shape of the factors, and the checkpoint that they are for."""

    rank: int
    alpha: float
    source: str
    """Hub id or folder."""
    revision: str | None
    head_dim: int | None
    """The width of the head that was put in the place of the checkpoint's own, None for that one."""


class LoraLinear(nn.Module):
    """A linear layer with its two factors, which stay float32 whatever the layer is."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.base = base
        self.scale = alpha / rank
        self.lora_a = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] -> [..., out], in the dtype of `x`."""
        inner = nn.functional.linear(x, self.lora_a.to(x.dtype))
        added = nn.functional.linear(inner, self.lora_b.to(x.dtype))
        out: Tensor = self.base(x) + added * self.scale
        return out

    def merged(self) -> nn.Linear:
        """The base layer with the factors' product in its weights."""
        with torch.no_grad():
            weight = self.base.weight
            weight.copy_((weight.float() + self.scale * self.lora_b @ self.lora_a).to(weight.dtype))
        return self.base


def add_lora(model: C2LLM, rank: int, alpha: float, seed: int) -> None:
    """Freezes the backbone and gives its linear layers factors; B starts at 0, so nothing changes yet."""
    model.backbone.requires_grad_(False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for parent in list(model.backbone.modules()):
            for name, child in list(parent.named_children()):
                if name in TARGETS and isinstance(child, nn.Linear):
                    setattr(parent, name, LoraLinear(child, rank, alpha))


def fold_lora(model: C2LLM) -> None:
    """Puts the factors into the weights: the model is a plain one again and gives the same vectors."""
    for parent in list(model.backbone.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, LoraLinear):
                setattr(parent, name, child.merged())


def trained(model: nn.Module) -> dict[str, Tensor]:
    """The tensors that are trained, by name."""
    return {name: value.detach() for name, value in model.named_parameters() if value.requires_grad}


def put(model: nn.Module, tensors: dict[str, Tensor], place: Path) -> None:
    """Sets what is trained. Raises ExportError, by tensor name, where names or shapes are not those of the model."""
    mine = {name: value for name, value in model.named_parameters() if value.requires_grad}
    if odd := sorted(mine.keys() ^ tensors.keys()):
        raise ExportError(f"{place}: tensor {odd[0]} is {'missing' if odd[0] in mine else 'not one of the model'}")
    with torch.no_grad():
        for name, value in tensors.items():
            if value.shape != mine[name].shape:
                raise ExportError(
                    f"{place}: tensor {name} is {list(value.shape)}, the model has {list(mine[name].shape)}"
                )
            mine[name].copy_(value)


def save_adapter(folder: Path, model: C2LLM, adapter: Adapter) -> None:
    """Writes what was trained, factors and head, and what it belongs to."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: value.contiguous().cpu() for name, value in trained(model).items()}, str(folder / ADAPTER))
    config = {"format": _FORMAT, **asdict(adapter)}
    (folder / ADAPTER_CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter rather than a checkpoint."""
    return (folder / ADAPTER_CONFIG).is_file()


def read_adapter(folder: Path) -> Adapter:
    """What adapter.json says. Raises ExportError where it is not what `save_adapter` wrote."""
    path = folder / ADAPTER_CONFIG
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if values.pop("format") != _FORMAT:
            raise ValueError("of another format")
        return Adapter(**values)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ExportError(f"{path}: not an adapter of this version ({one_line(error)}); train it again") from None


def apply_adapter(model: C2LLM, folder: Path, adapter: Adapter) -> None:
    """Merges the adapter of a folder into a model of the checkpoint that it was trained on."""
    add_lora(model, adapter.rank, adapter.alpha, seed=0)
    put(model, read_tensors(folder / ADAPTER), folder / ADAPTER)
    fold_lora(model)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file. Raises ExportError where it is damaged or not there."""
    try:
        with safe_open(str(path), framework="pt") as stream:
            return {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
    except Exception as error:  # Its exceptions have no base of their own.
        raise ExportError(f"{path}: cannot be read ({one_line(error)}); copy it or train it again") from None
