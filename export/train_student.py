"""python -m export.train_student --corpus CORPUS --out BUNDLE: trains the student and writes it as a model bundle.

CORPUS is what `python -m export.corpus --out CORPUS` left. Runs on one core in minutes; the same corpus gives the same
bundle. `--cosqa FOLDER` also measures CoSQA's development queries.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer

from .bundle import MAX_TOKENS, write_bundle
from .corpus.manifest import Package, read_manifest
from .evaluate import cosqa_mrr
from .metrics import Vectors, held_out_mrr
from .pairs import Row, Texts, encode, read_rows, thinned
from .student import Student, contrastive, fresh
from .tokenizer import make_tokenizer, vocabulary, word_counts

LICENCE = "Apache-2.0"
QUERY_TOKENS = 64
VOCABULARY_CODE_CHARS = 3_000
ENCODE_BATCH = 2_048
LOG_STEPS = 100


@dataclass(frozen=True)
class Recipe:
    """How a student is trained."""

    steps: int = 1_600
    batch: int = 1_024
    learning_rate: float = 4e-3
    temperature: float = 0.05
    query_dropout: float = 0.2
    """The share of a query's words that are left out, anew at each step."""
    code_dropout: float = 0.4
    warm_up: int = 50
    """Steps in which the learning rate rises; then it falls along a cosine."""
    final_rate: float = 0.02
    """The share of the learning rate that is left at the end."""
    seed: int = 0


@dataclass(frozen=True)
class Data:
    """The encoded corpus."""

    tokenizer: Tokenizer
    queries: Texts
    codes: Texts
    frequencies: torch.Tensor
    """[vocabulary]: the share of texts that each word is in."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m export.train_student", description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True, help="what python -m export.corpus wrote")
    parser.add_argument("--out", type=Path, required=True, help="the bundle's folder")
    parser.add_argument("--cosqa", type=Path, help="folder of CoSQA's development set, to measure")
    parser.add_argument("--steps", type=int, default=Recipe.steps)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # The arithmetic is bound by memory; more threads only wait for each other.
    recipe = Recipe(steps=options.steps)
    rows = list(read_rows(options.corpus / "train.jsonl"))
    data = prepare(rows)
    student = train(data, recipe)
    valid = list(read_rows(options.corpus / "valid.jsonl"))
    figures = measure(student, data.tokenizer, valid, options.cosqa)
    packages = used_packages(rows)
    facts = {
        "source": "trained from nothing by export/train_student.py on the packages named in NOTICE",
        "licence": LICENCE,
        "training": training_facts(options.corpus, recipe, packages, figures),
    }
    identity = write_bundle(options.out, student, data.tokenizer, facts)
    (options.out / "NOTICE").write_text(notice(packages), encoding="utf-8")
    _say(f"{identity}: {json.dumps(figures)}")
    return 0


def prepare(rows: Sequence[Row]) -> Data:
    """Makes the vocabulary from the pairs and encodes them."""
    counts = word_counts(text for row in rows for text in (row.query, row.code[:VOCABULARY_CODE_CHARS]))
    words = vocabulary(counts)
    tokenizer = make_tokenizer(words)
    queries = encode([row.query for row in rows], tokenizer, QUERY_TOKENS)
    codes = encode([row.code for row in rows], tokenizer, MAX_TOKENS)
    seen = queries.with_word(len(words)) + codes.with_word(len(words))
    return Data(tokenizer, queries, codes, torch.from_numpy(seen / (2 * len(rows))).float())


def train(data: Data, recipe: Recipe) -> Student:
    """A student trained on the pairs."""
    student = fresh(data.frequencies, seed=recipe.seed)
    optimiser = torch.optim.Adam(student.parameters(), lr=recipe.learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: rate(step, recipe))
    losses: list[float] = []
    started = time.monotonic()
    batches = endless_batches(len(data.queries), recipe)
    random = np.random.default_rng(recipe.seed)
    for step in range(1, recipe.steps + 1):
        which = next(batches)
        queries = thinned(data.queries.bags(which), recipe.query_dropout, random)
        codes = thinned(data.codes.bags(which), recipe.code_dropout, random)
        loss = contrastive(student(queries), student(codes), recipe.temperature)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
        if step % LOG_STEPS == 0:
            _say(f"step {step}: loss {np.mean(losses[-LOG_STEPS:]):.3f}, {time.monotonic() - started:.0f} s")
    return student


def rate(step: int, recipe: Recipe) -> float:
    """The learning rate's factor at a step: a linear rise, then a cosine down to `final_rate`."""
    rise = min(1.0, (step + 1) / recipe.warm_up)
    fall = (1 + math.cos(math.pi * min(1.0, step / recipe.steps))) / 2
    return rise * (recipe.final_rate + (1 - recipe.final_rate) * fall)


def endless_batches(pairs: int, recipe: Recipe) -> Iterator[npt.NDArray[np.int64]]:
    """Batches of pairs' numbers, every pair once an epoch but for what fills no batch."""
    size = min(recipe.batch, pairs)
    random = np.random.default_rng(recipe.seed)
    while True:
        order = random.permutation(pairs)
        yield from (order[start : start + size] for start in range(0, pairs - size + 1, size))


def embed(student: Student, texts: Texts) -> Vectors:
    """Unit vectors [texts, dim]."""
    with torch.no_grad():
        parts = [
            student(texts.bags(np.arange(start, min(start + ENCODE_BATCH, len(texts))))).numpy()
            for start in range(0, len(texts), ENCODE_BATCH)
        ]
    return np.concatenate(parts)


def measure(student: Student, tokenizer: Tokenizer, valid: Sequence[Row], cosqa: Path | None) -> dict[str, float]:
    """The figures that bundle.json tells."""
    figures: dict[str, float] = {}

    def embed_texts(texts: Sequence[str]) -> Vectors:
        return embed(student, encode(texts, tokenizer, MAX_TOKENS))

    if valid:
        order = np.random.default_rng(0).permutation(len(valid))  # else a pool is of one package
        queries = embed_texts([valid[at].query for at in order])
        codes = embed_texts([valid[at].code for at in order])
        figures["held_out_packages_mrr_of_1000"] = round(held_out_mrr(queries, codes), 4)
    if cosqa:
        figures["cosqa_dev_mrr_at_10"] = round(cosqa_mrr(cosqa, embed_texts), 4)
    return figures


def used_packages(rows: Sequence[Row]) -> list[Package]:
    """The manifest's packages that the pairs come from."""
    used = {row.package for row in rows}
    return [package for package in read_manifest() if package.key in used]


def training_facts(
    corpus: Path, recipe: Recipe, packages: Sequence[Package], figures: dict[str, float]
) -> dict[str, Any]:
    """What bundle.json says of the training."""
    counts = json.loads((corpus / "counts.json").read_text())
    return {
        "method": "hybrid neural bag of words, in-batch contrastive, no teacher",
        "docstring_code_pairs": counts["train"],
        "packages": len(packages),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "recipe": asdict(recipe),
        "figures": figures,
    }


def notice(packages: Sequence[Package]) -> str:
    """The packages that the training data came from, with their licences."""
    lines = "".join(f"{p.registry}\t{p.name}\t{p.version}\t{p.licence}\n" for p in packages)
    return (
        "The weights of this model were trained on pairs of documentation and code from the packages below, each\n"
        "under the licence that its own metadata states. No text of them is part of the model.\n"
        "registry (deb: Debian binary package, src: Debian source package), name, version, licence\n\n" + lines
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
