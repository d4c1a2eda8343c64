"""python -m export.teacher train | sample | filter | score: a model that writes queries for functions, and functions.

train    makes a small seq2seq teacher from pairs, in both directions, or trains one further
sample   has a teacher write M queries for each function and M functions for each query, as pairs in JSON lines
filter   keeps the sampled pairs whose query finds its function by a bundle
score    the teacher's own MRR: every function of a small set scored for every query

A teacher is the folder or hub id of any seq2seq or causal model of transformers. Pairs are JSON lines {"query": …,
"code": …, "language"?: …}. What was killed goes on with the same command.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .command import told
from .data import Example, read_data
from .errors import ExportError

if TYPE_CHECKING:
    from .writer import Writer

CHECKPOINT = "checkpoint"
TASKS = ("document", "search", "implement")
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    return told("export.teacher", lambda: int(options.run(options)), "try a smaller --batch")


def add_pairs(parser: argparse.ArgumentParser) -> None:
    """The options that say which pairs are taken."""
    add = parser.add_argument
    add("--pairs", type=Path, nargs="+", required=True, metavar="PATH", help="JSON lines, or folders of code")
    add("--languages", nargs="+", metavar="LANGUAGE", help="these alone (default: all)")
    add("--of-a-language", type=int, metavar="PAIRS", help="at most, drawn by chance (default: all)")


def chosen(paths: Sequence[Path], languages: Sequence[str] | None, most: int | None) -> list[Example]:
    """The pairs of the languages, at most `most` of each: always the same ones, languages one after the other.

    Raises ExportError where a language has none.
    """
    groups: dict[str, list[Example]] = {}
    for example in read_data(paths):
        if languages is None or example.language in languages:
            groups.setdefault(example.language, []).append(example)
    if lacking := set(languages or ()) - groups.keys():
        raise ExportError(
            f"{', '.join(map(str, paths))}: no pairs of {min(lacking)}; there are {', '.join(sorted(groups))}"
        )
    random = np.random.default_rng(0)
    return [group[at] for _, group in sorted(groups.items()) for at in random.permutation(len(group))[:most]]


def _parser() -> argparse.ArgumentParser:
    about, _, rest = __doc__.partition("\n\n")
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m export.teacher", description=about, epilog=rest, formatter_class=raw
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, add_options, run in (
        ("train", _train_options, train_teacher),
        ("sample", _sample_options, sample_pairs),
        ("filter", _filter_options, filter_samples),
        ("score", _score_options, score_teacher),
    ):
        command = commands.add_parser(name)
        add_options(command)
        command.set_defaults(run=run)
    return parser


def _train_options(parser: argparse.ArgumentParser) -> None:
    add_pairs(parser)
    add = parser.add_argument
    add("--valid", type=Path, nargs="+", required=True, metavar="PATH", help="pairs to validate with")
    add("--valid-pairs", type=int, default=500, help="of all languages (default: %(default)s)")
    add("--out", type=Path, required=True, metavar="RUN", help="RUN/checkpoint becomes the teacher")
    add("--teacher", metavar="MODEL", help="train this one further (default: one made from nothing)")
    add("--dim", type=int, default=192, help="of one made from nothing (default: %(default)s)")
    add("--layers", type=int, default=3, help="of its encoder, and of its decoder (default: %(default)s)")
    add("--vocabulary", type=int, default=8_000, help="its words and parts of words (default: %(default)s)")
    add("--steps", type=int, required=True)
    add("--batch", type=int, default=64, help="pairs of a step (default: %(default)s)")
    add("--learning-rate", type=float, default=2e-3, help="default: %(default)s")
    add("--validate-every", type=int, default=250, metavar="STEPS", help="default: %(default)s")
    add("--save-minutes", type=float, default=5.0, help="between two saved states (default: %(default)s)")
    add("--precision", choices=("auto", "bf16", "fp32"), default="auto", help="bf16 where the machine has it")
    add("--threads", type=int, help="of the processor (default: all; one is quicker on a machine with other work)")
    add("--seed", type=int, default=0)


def _sample_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("teacher", metavar="TEACHER")
    add_pairs(parser)
    add("--out", type=Path, required=True, metavar="FILE", help="JSON lines")
    add("--samples", type=int, default=2, metavar="M", help="of each pair and task (default: %(default)s)")
    add(
        "--tasks",
        nargs="+",
        choices=TASKS,
        default=["document", "implement"],
        help="queries as doc comments, queries as searches, functions (default: document implement)",
    )
    add("--temperature", type=float, default=1.0, help="default: %(default)s")
    add("--top-p", type=float, default=0.95, help="default: %(default)s")
    add("--most-tokens", type=int, default=64, help="of a function (default: %(default)s)")
    add("--batch", type=int, default=64, help="pairs at once (default: %(default)s)")
    add("--threads", type=int, help="of the processor (default: all)")
    add("--seed", type=int, default=0)


def _filter_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("samples", type=Path, metavar="FILE", help="what sample wrote")
    add("--by", required=True, metavar="BUNDLE", help="the bundle or checkpoint that has to find the function")
    add("--among", type=int, default=1_000, metavar="N", help="functions of its language (default: %(default)s)")
    add("--top", type=int, default=10, metavar="K", help="places that are found (default: %(default)s)")
    add("--out", type=Path, required=True, metavar="FILE")


def _score_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("teacher", metavar="TEACHER")
    add_pairs(parser)
    add("--query-tokens", type=int, default=24, help="of a query that are scored (default: %(default)s)")
    add("--code-tokens", type=int, default=64, help="of a function (default: %(default)s)")
    add("--threads", type=int, help="of the processor (default: all)")


def train_teacher(options: argparse.Namespace) -> int:
    """Trains a teacher and writes it; returns the exit code."""
    import torch

    from .journal import say
    from .recipe import Recipe
    from .teaching import Size, new_teacher, teach
    from .train import has_bf16
    from .trainer import Pace, Stopped
    from .writer import load_writer, save_writer

    _take_threads(options)
    train = chosen(options.pairs, options.languages, options.of_a_language)
    valid = chosen(options.valid, sorted({example.language for example in train}), None)
    valid = [valid[at] for at in np.random.default_rng(0).permutation(len(valid))[: options.valid_pairs]]
    if options.teacher:
        writer = load_writer(options.teacher)
    else:
        writer = new_teacher(train, Size(options.dim, options.layers, vocabulary=options.vocabulary), options.seed)
    bf16 = options.precision == "bf16" or (options.precision == "auto" and has_bf16(torch.device("cpu")))
    recipe = Recipe(
        steps=options.steps,
        full=True,
        batch=options.batch,
        negatives=0,
        learning_rate=options.learning_rate,
        bf16=bf16,
        seed=options.seed,
    )
    size = sum(value.numel() for value in writer.model.parameters()) / 1e6
    say(f"{len(train)} pairs, {len(valid)} to validate with, {size:.1f} M parameters, {recipe.steps} steps")
    pace = Pace(options.save_minutes * 60, options.validate_every)
    try:
        teach(replace(writer, bf16=bf16), train, valid, recipe, options.out, pace)
    except Stopped:
        say("stopped, the state is saved: the same command goes on from here")
        return _INTERRUPTED
    save_writer(writer, options.out / CHECKPOINT)
    say(f"{options.out / CHECKPOINT}: python -m export.teacher sample {options.out / CHECKPOINT} …")
    return 0


def sample_pairs(options: argparse.Namespace) -> int:
    """Writes the samples; returns the exit code."""
    from .journal import say
    from .samples import Order, write_samples
    from .writer import Sampling

    _take_threads(options)
    writer = _quick(options.teacher)
    sampling = Sampling(options.temperature, options.top_p, options.most_tokens)
    order = Order(options.samples, tuple(options.tasks), sampling, batch=options.batch, seed=options.seed)
    write_samples(writer, chosen(options.pairs, options.languages, options.of_a_language), order, options.out)
    say(f"{options.out}: python -m export.distill --teacher {options.out} --samples {options.samples} …")
    return 0


def filter_samples(options: argparse.Namespace) -> int:
    """Writes the samples whose query finds its function; returns the exit code."""
    from .encoders import open_encoder
    from .journal import say
    from .samples import read_samples, round_trip

    samples = read_samples(options.samples)
    kept = round_trip(samples, open_encoder(options.by), options.among, options.top)
    options.out.write_text("".join(sample.line for sample in kept), encoding="utf-8")
    say(f"{options.out}: {len(kept)} of {len(samples)} samples find their function")
    return 0


def score_teacher(options: argparse.Namespace) -> int:
    """Prints the teacher's figures for each language as JSON lines; returns the exit code."""
    from .scoring import teacher_figures
    from .writer import load_writer

    _take_threads(options)
    writer = load_writer(options.teacher)
    pairs = chosen(options.pairs, options.languages, options.of_a_language)
    for language in sorted({pair.language for pair in pairs}):
        some = [pair for pair in pairs if pair.language == language]
        for name, figures in teacher_figures(writer, some, options.code_tokens, options.query_tokens).items():
            line = {"language": language, "by": name, "figures": {**figures, "functions": len(some)}}
            print(json.dumps(line), flush=True)  # noqa: T201
    return 0


def _quick(teacher: str) -> Writer:
    """The teacher as it writes quickest: in bf16 where the machine has it."""
    import torch

    from .train import has_bf16
    from .writer import load_writer

    return load_writer(teacher, dtype=torch.bfloat16 if has_bf16(torch.device("cpu")) else torch.float32)


def _take_threads(options: argparse.Namespace) -> None:
    import torch

    if options.threads:
        torch.set_num_threads(options.threads)


if __name__ == "__main__":
    sys.exit(main())
