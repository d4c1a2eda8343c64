"""python -m export.distill --student nbow --teacher TEACHER --samples 2: trains a student on what a teacher wrote.

The paper's method: the teacher writes M queries for each function and M functions for each query, and the student, two
bags of words that a query and code are put into, learns from all of these pairs. TEACHER is a file that `python -m
export.teacher sample` wrote, or a teacher, which then writes one into OUT. With --samples 0 there is no teacher: that
is the baseline. OUT gets log.jsonl (NLL and MRR by language), figures.json and the bundle, or one for each language.
What was killed goes on with the same command.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from .asked import QUERY_TOKENS, VOCABULARY_CODE_CHARS
from .bundle import MAX_TOKENS, write_bundle
from .command import told
from .contrastive import loss_of
from .data import Batches, Example, fingerprint
from .errors import ExportError
from .journal import say
from .loop import Run
from .metrics import mean, paired
from .pairs import Texts, encode, thinned
from .recipe import Recipe
from .student import ENCODERS, SHARED, Students
from .teacher import add_pairs, chosen
from .tokenizer import make_tokenizer, vocabulary, word_counts
from .train_student import embed
from .trainer import Pace, Stopped

BUNDLE, FIGURES, SAMPLES = "bundle", "figures.json", "samples.jsonl"
TOLD = ("mrr", "nll")
QUERY_DROPOUT, CODE_DROPOUT = 0.2, 0.4
"""The share of words that are left out, anew at each step."""
_INTERRUPTED = 130


@dataclass(frozen=True)
class Pairs:
    """Pairs as numbers, with what tells which codes answer a query too."""

    examples: Sequence[Example]
    queries: Texts
    codes: Texts
    same_query: Tensor
    """int64 [pairs]: equal for equal queries."""
    same_code: Tensor

    @classmethod
    def of(cls, examples: Sequence[Example], tokenizer: Tokenizer) -> Pairs:
        """The pairs in the tokenizer's words."""
        queries, codes = [each.query for each in examples], [each.code for each in examples]
        return cls(
            examples,
            encode(queries, tokenizer, QUERY_TOKENS),
            encode(codes, tokenizer, MAX_TOKENS),
            _numbered([each.query_key for each in examples]),
            _numbered(codes),
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    return told("export.distill", lambda: run(options), "try a smaller --batch")


def _parser() -> argparse.ArgumentParser:
    about, _, rest = __doc__.partition("\n\n")
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m export.distill", description=about, epilog=rest, formatter_class=raw
    )
    add_pairs(parser)
    add = parser.add_argument
    add("--valid", type=Path, nargs="+", required=True, metavar="PATH", help="pairs to measure with")
    add("--student", choices=("nbow",), default="nbow", help="a hybrid neural bag of words")
    add(
        "--encoders",
        choices=ENCODERS,
        default=SHARED,
        help="one for all, one for queries and one for code, or one for "
        "queries and one for the code of each language (default: %(default)s)",
    )
    add("--teacher", metavar="TEACHER", help="a file of samples, or the model that writes them")
    add("--samples", type=int, default=0, metavar="M", help="of each function and of each query (default: 0, none)")
    add("--style", choices=("document", "search"), default="document", help="of the queries that the teacher writes")
    add("--out", type=Path, required=True)
    add("--steps", type=int, default=1_200, help="default: %(default)s")
    add("--batch", type=int, default=256, help="pairs of a step (default: %(default)s)")
    add("--validate-every", type=int, default=100, metavar="STEPS", help="default: %(default)s")
    add("--save-minutes", type=float, default=2.0, help="between two saved states (default: %(default)s)")
    add("--learning-rate", type=float, default=4e-3, help="default: %(default)s")
    add("--seed", type=int, default=0)
    return parser


def run(options: argparse.Namespace) -> int:
    """Samples where that is asked for, trains, writes; returns the exit code."""
    torch.set_num_threads(1)  # The arithmetic is bound by memory; more threads only wait for each other.
    base = chosen(options.pairs, options.languages, options.of_a_language)
    languages = sorted({example.language for example in base})
    valid = chosen(options.valid, languages, None)
    train = _enlarged(base, options)
    tokenizer = words_of(base)
    students = Students(options.encoders, languages, frequencies(Pairs.of(base, tokenizer), tokenizer), options.seed)
    held_out = {name: Pairs.of([each for each in valid if each.language == name], tokenizer) for name in languages}
    recipe = Recipe(
        options.steps, full=True, batch=options.batch, learning_rate=options.learning_rate, seed=options.seed
    )
    say(f"{len(base)} pairs, {len(train) - len(base)} of a teacher, {len(valid)} to measure with")
    pace = Pace(options.save_minutes * 60, options.validate_every)
    try:
        figures = distil(students, Pairs.of(train, tokenizer), held_out, recipe, options.out, pace)
    except Stopped:
        say("stopped, the state is saved: the same command goes on from here")
        return _INTERRUPTED
    _write(options, students, tokenizer, recipe, figures)
    return 0


def words_of(examples: Sequence[Example]) -> Tokenizer:
    """A tokenizer of the pairs' words: the teacher's samples are read in the words of the pairs, whatever M is."""
    texts = (text for each in examples for text in (each.query, each.code[:VOCABULARY_CODE_CHARS]))
    return make_tokenizer(vocabulary(word_counts(texts)))


def frequencies(pairs: Pairs, tokenizer: Tokenizer) -> Tensor:
    """[vocabulary]: the share of texts that each word is in."""
    size = tokenizer.get_vocab_size()
    seen = pairs.queries.with_word(size) + pairs.codes.with_word(size)
    return torch.from_numpy(seen / (2 * len(pairs.examples))).float()


def distil(
    students: Students, train: Pairs, valid: Mapping[str, Pairs], recipe: Recipe, folder: Path, pace: Pace
) -> dict[str, float]:
    """Trains the students by the contrastive loss; returns MRR and NLL on `valid`: means of languages, and each's."""
    batches = Batches(train.examples, recipe.batch, recipe.seed)

    def batch_loss(step: int) -> tuple[Tensor, int]:
        rows = batches.at(step)
        random = np.random.default_rng([recipe.seed, step])
        queries = thinned(train.queries.bags(rows), QUERY_DROPOUT, random)
        codes = thinned(train.codes.bags(rows), CODE_DROPOUT, random)
        code = students.code(train.examples[rows[0]].language)
        counted = _counted(train, torch.from_numpy(rows))
        return _both_ways(students.query(queries), code(codes), counted), len(rows)

    facts = {"kind": students.kind, "data": fingerprint(train.examples), **asdict(recipe)}
    run = Run(folder, recipe.steps, facts, recipe.seed, pace)
    return run.train(students, recipe.rate, batch_loss, lambda: measured(students, valid))


def measured(students: Students, valid: Mapping[str, Pairs]) -> dict[str, float]:
    """MRR and NLL of each language's pairs among 1,000 of them, or all where there are fewer, and their means."""
    rows = {}
    for language, pairs in valid.items():
        figures = paired(embed(students.query, pairs.queries), embed(students.code(language), pairs.codes))
        rows[language] = {name: figures[name] for name in TOLD}
    each = {f"{name}_{language}": row[name] for language, row in rows.items() for name in TOLD}
    return mean(list(rows.values())) | each


def _both_ways(queries: Tensor, codes: Tensor, counted: Tensor) -> Tensor:
    return (loss_of(queries, codes, counted) + loss_of(codes, queries, counted.T)) / 2


def _counted(pairs: Pairs, rows: Tensor) -> Tensor:
    """bool [rows, rows]: a pair's own code, and those that neither have its query nor are its code."""
    query, code = pairs.same_query[rows], pairs.same_code[rows]
    apart = (query[:, None] != query) & (code[:, None] != code)
    return apart | torch.eye(len(rows), dtype=torch.bool)


def _enlarged(base: Sequence[Example], options: argparse.Namespace) -> list[Example]:
    from .samples import Order, enlarged, read_samples, write_samples
    from .writer import IMPLEMENT, load_writer

    if not options.samples:
        return enlarged(base, [], 0)
    if not options.teacher:
        raise ExportError("--samples: who writes them? Give a teacher or its samples with --teacher")
    path = Path(options.teacher)
    if not path.is_file() or path.suffix == ".gguf":
        path = options.out / SAMPLES
        write_samples(load_writer(options.teacher), base, Order(options.samples, (options.style, IMPLEMENT)), path)
    return enlarged(base, read_samples(path), options.samples, options.style)


def _write(
    options: argparse.Namespace, students: Students, tokenizer: Tokenizer, recipe: Recipe, figures: dict[str, float]
) -> None:
    training = {
        "method": f"hybrid neural bag of words, in-batch contrastive, encoders: {options.encoders}",
        "teacher": str(options.teacher) if options.samples else None,
        "samples": options.samples,
        "recipe": asdict(recipe),
        "figures": figures,
    }
    facts = {"source": "trained from nothing by export/distill.py", "licence": "unknown", "training": training}
    folder = options.out / BUNDLE
    shutil.rmtree(folder, ignore_errors=True)
    for name, code in students.encoders().items():
        write_bundle(folder / name, students.query, tokenizer, facts, None if code is students.query else code)
    (options.out / FIGURES).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    say(f"{folder}: {json.dumps({name: round(value, 4) for name, value in figures.items()})}")


def _numbered(keys: Sequence[str]) -> Tensor:
    numbers: dict[str, int] = {}
    return torch.tensor([numbers.setdefault(key, len(numbers)) for key in keys])


if __name__ == "__main__":
    sys.exit(main())
