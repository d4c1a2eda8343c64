"""python -m export.train --checkpoint MODEL --data PATH --out FOLDER: fine-tunes a model on pairs of query and code.

MODEL is codefuse-ai/C2LLM-0.5B, a checkpoint's folder, or plain Qwen2.5-Coder weights, which get a fresh head. PATH is
a file of JSON lines {"query": …, "code": …, "language"?: …, "source"?: …}, or a folder of code, whose doc comments
become queries. FOLDER gets the log, the plot and the state; the same command goes on where a killed run was. At the
end it holds the adapter and, in FOLDER/checkpoint, the whole model, for python -m export.onnx --checkpoint.

Several processes: accelerate launch --multi_gpu --num_processes N -m export.train …
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from .command import told
from .data import Batches, Example, held_out, read_data, without
from .errors import ExportError
from .recipe import FRESH_HEAD_RATE, Recipe

if TYPE_CHECKING:
    import torch

    from .checkpoint import Checkpoint
    from .parallel import World

DEFAULT_MODEL = "codefuse-ai/C2LLM-0.5B"
CHECKPOINT = "checkpoint"
LESS_MEMORY = "try --parts 4, --gradient-checkpointing, a smaller --batch or --max-tokens, or fewer --negatives"
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    return told("export.train", lambda: run(options), LESS_MEMORY)


def _parser() -> argparse.ArgumentParser:
    about, _, rest = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m export.train",
        description=about,
        epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--checkpoint", default=DEFAULT_MODEL, metavar="MODEL", help="default: %(default)s")
    add("--revision", help="the hub's commit, if not the pinned one")
    add("--dim", type=_positive, help="width of the head that plain weights get")
    add("--data", type=Path, nargs="+", required=True, metavar="PATH", help="JSON lines or folders of code")
    add("--valid", type=Path, nargs="+", metavar="PATH", help="pairs to validate with (default: a part of the data)")
    add("--valid-pairs", type=_count, default=1_000, help="most pairs to validate with (default: %(default)s)")
    add("--out", type=Path, required=True, metavar="FOLDER")
    add("--steps", type=_positive, help="default: one pass over the data")
    add("--full", action="store_true", help="train all weights instead of LoRA factors and the head")
    add("--rank", type=_positive, default=Recipe.rank, help="default: %(default)s")
    add("--alpha", type=_number, default=Recipe.alpha, help="default: %(default)s")
    add("--batch", type=_positive, default=Recipe.batch, help="pairs of a step, all processes (default: %(default)s)")
    add(
        "--parts", type=_positive, default=Recipe.parts, help="embed a batch in so many parts: less memory, same result"
    )
    add("--negatives", type=_count, default=Recipe.negatives, help="hard ones of a pair (default: %(default)s)")
    add("--mine-every", type=_count, default=0, metavar="STEPS", help="mine anew (default: once, at the start)")
    add("--learning-rate", type=_number, default=Recipe.learning_rate, help="default: %(default)s")
    add("--head-rate", type=_number, help=f"the head's (default: the same; a fresh one's: {FRESH_HEAD_RATE})")
    add("--warm-up", type=_count, default=Recipe.warm_up, metavar="STEPS", help="default: %(default)s")
    add("--max-tokens", type=_positive, default=Recipe.max_tokens, help="longer code is cut (default: %(default)s)")
    add("--precision", choices=("auto", "bf16", "fp32"), default="auto", help="bf16 where the machine has it")
    add("--gradient-checkpointing", action="store_true", help="less memory, a third more time")
    add("--save-minutes", type=_number, default=5.0, help="between two saved states (default: %(default)s)")
    add("--validate-every", type=_positive, default=200, metavar="STEPS", help="default: %(default)s")
    add("--seed", type=_count, default=0)
    add("--cpu", action="store_true", help="leave the GPU alone")
    return parser


def run(options: argparse.Namespace) -> int:
    """Reads, trains, writes; returns the exit code."""
    from .journal import say
    from .parallel import world
    from .trainer import Pace, Stopped, Trainer

    with world(options.cpu) as here:
        train, valid = _pairs(options)
        checkpoint = _load(options)
        recipe = _recipe(options, train, checkpoint, here.device)
        _check_room(options.out, checkpoint, recipe, here)
        if here.first:
            options.out.mkdir(parents=True, exist_ok=True)
            say(
                f"{len(train)} pairs to train on, {len(valid)} held out, {recipe.steps} steps, "
                f"{'all weights' if recipe.full else f'LoRA of rank {recipe.rank} and head'}, "
                f"{'bf16' if recipe.bf16 else 'fp32'} on {here.size} x {here.device.type}"
            )
        pace = Pace(options.save_minutes * 60, options.validate_every)
        trainer = Trainer(checkpoint, train, valid, recipe, here, options.out, pace)
        try:
            trainer.run()
        except Stopped:
            if here.first:
                say("stopped, the state is saved: the same command goes on from here")
            return _INTERRUPTED
        if here.first:
            _write(options, checkpoint, recipe)
            say(f"{options.out / CHECKPOINT}: python -m export.onnx --checkpoint {options.out / CHECKPOINT}")
    return 0


def _pairs(options: argparse.Namespace) -> tuple[list[Example], list[Example]]:
    """What is trained on and what is validated with, which have nothing in common."""
    train = read_data(options.data)
    if options.valid is None:
        return held_out(train, options.valid_pairs)
    valid = read_data(options.valid)[: options.valid_pairs]
    train = without(train, valid)
    if not train:
        raise ExportError("every pair of --data is one of --valid: there is nothing to train on")
    return train, valid


def _load(options: argparse.Namespace) -> Checkpoint:
    from .checkpoint import load

    return load(options.checkpoint, options.revision, head_dim=options.dim)


def _recipe(
    options: argparse.Namespace, train: Sequence[Example], checkpoint: Checkpoint, device: torch.device
) -> Recipe:
    return Recipe(
        steps=options.steps or Batches(train, options.batch, options.seed).epoch_steps,
        full=options.full,
        rank=options.rank,
        alpha=options.alpha,
        batch=options.batch,
        parts=options.parts,
        negatives=options.negatives,
        mine_every=options.mine_every,
        learning_rate=options.learning_rate,
        head_rate=options.head_rate or (FRESH_HEAD_RATE if checkpoint.fresh_head else options.learning_rate),
        warm_up=options.warm_up,
        max_tokens=min(options.max_tokens, checkpoint.max_tokens),
        bf16=options.precision == "bf16" or (options.precision == "auto" and has_bf16(device)),
        checkpointing=options.gradient_checkpointing,
        seed=options.seed,
    )


def has_bf16(device: torch.device) -> bool:
    """Whether the device computes in bf16 itself: elsewhere it is slower than float32."""
    import torch

    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    try:
        return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
    except AttributeError:  # They are not a promise of torch's.
        return False


def _check_room(out: Path, checkpoint: Checkpoint, recipe: Recipe, here: World) -> None:
    """Weights, gradients, the optimiser's two moments; what the texts take shows in the run."""
    from .memory import check_disk, check_memory

    head, backbone = (
        sum(v.numel() for v in part.parameters()) for part in (checkpoint.model.head, checkpoint.model.backbone)
    )
    factors = 0 if recipe.full else _factors(checkpoint, recipe.rank)
    learned = head + (backbone if recipe.full else factors)
    more = 12 * learned  # The weights are in memory already.
    check_memory(more, here.device, LESS_MEMORY)
    check_disk(out, 2 * 12 * learned + 4 * (head + backbone))


def _factors(checkpoint: Checkpoint, rank: int) -> int:
    from torch import nn

    from .lora import TARGETS

    return sum(
        rank * (layer.in_features + layer.out_features)
        for name, layer in checkpoint.model.backbone.named_modules()
        if isinstance(layer, nn.Linear) and name.rpartition(".")[2] in TARGETS
    )


def _write(options: argparse.Namespace, checkpoint: Checkpoint, recipe: Recipe) -> None:
    """The adapter, and the whole model with the adapter in the weights as they were before bf16."""
    from .checkpoint import save
    from .lora import Adapter, save_adapter
    from .merge import load_any

    if not recipe.full:
        local = Path(options.checkpoint).exists()
        source = str(Path(options.checkpoint).resolve()) if local else options.checkpoint
        dim = checkpoint.model.dim if checkpoint.fresh_head else None
        adapter = Adapter(recipe.rank, recipe.alpha, source, options.revision, dim)
        save_adapter(options.out, checkpoint.model, adapter)
        checkpoint = load_any(str(options.out))
    shutil.rmtree(options.out / CHECKPOINT, ignore_errors=True)
    save(replace(checkpoint, source=f"{checkpoint.source}, fine-tuned"), options.out / CHECKPOINT)


def _positive(text: str) -> int:
    if (value := int(text)) < 1:
        raise ValueError
    return value


def _count(text: str) -> int:
    if (value := int(text)) < 0:
        raise ValueError
    return value


def _number(text: str) -> float:
    if not 0 < (value := float(text)) < float("inf"):
        raise ValueError
    return value


def _end(status: int) -> NoReturn:
    """One of several processes ends at once: torch's threads were seen to abort it while the interpreter ends."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    _end(main())
