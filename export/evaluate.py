"""python -m export.evaluate MODEL …: how well models find code, on pairs, on CoSQA, on judged repositories, by MTEB.

MODEL is a bundle's folder, a checkpoint's folder or hub id, or the folder of a training run. On a terminal it prints a
table, else JSON: one object {model, benchmark, figures} a line.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .command import told
from .data import read_data
from .encoders import Encoder, open_encoder
from .errors import ExportError, one_line
from .journal import progress
from .judged import evaluate_repository, repositories
from .metrics import Vectors, figures, mean, nll, paired, ranks_of, reciprocal_ranks

COSQA_CODES, COSQA_QUERIES = "code_idx_map.txt", "cosqa-retrieval-dev-500.json"
COUNTS = ("queries", "functions")
"""Figures that say how much was measured, not how well."""
_SHUFFLE_SEED = 0


@dataclass(frozen=True)
class Result:
    """What one model did on one benchmark."""

    model: str
    benchmark: str
    figures: Mapping[str, float]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m export.evaluate", description=__doc__)
    add = parser.add_argument
    add("models", nargs="+", metavar="MODEL")
    add("--revision", help="a hub checkpoint's commit, if not the pinned one")
    add("--pairs", type=Path, nargs="+", default=[], metavar="PATH", help="JSON lines, or folders of code to harvest")
    add("--cosqa", type=Path, metavar="FOLDER", help="CoSQA's development files")
    add("--bench", type=Path, help="judged repositories, laid out as tests/bench/quality.py says")
    add("--repos", nargs="+", metavar="NAME", help="these of them alone")
    add("--mteb", nargs="+", default=[], metavar="TASK", help="tasks of the installed mteb package")
    add("--max-tokens", type=int, help="cut code there (default: the model's own limit)")
    add("--json", action="store_true", help="JSON on a terminal too")
    options = parser.parse_args(arguments)
    if not (options.pairs or options.cosqa or options.bench or options.mteb):
        parser.error("nothing to measure with: give --pairs, --cosqa, --bench or --mteb")
    return told("export.evaluate", lambda: run(options))


def run(options: argparse.Namespace) -> int:
    """Measures each model on each benchmark."""
    as_json = options.json or not sys.stdout.isatty()
    results = []
    for model in options.models:
        encoder = open_encoder(model, options.revision, options.max_tokens, progress(f"{model}: embedded"))
        for result in measure(encoder, options):
            results.append(result)
            if as_json:
                line = {"model": result.model, "benchmark": result.benchmark, "figures": rounded(result.figures)}
                print(json.dumps(line), flush=True)  # noqa: T201
    if not as_json:
        print(table(results))  # noqa: T201
    return 0


def measure(encoder: Encoder, options: argparse.Namespace) -> Iterator[Result]:
    """The results of one model, each as soon as it is there."""
    for path in options.pairs:
        yield Result(encoder.name, path.stem, on_pairs(encoder, path))
    if options.cosqa:
        yield Result(encoder.name, "cosqa", on_cosqa(encoder, options.cosqa))
    if options.bench:
        rows = []
        for repository in repositories(options.bench, options.repos):
            rows.append(evaluate_repository(encoder, repository))
            yield Result(encoder.name, repository.name, rows[-1])
        means = {name: value for name, value in mean(rows).items() if name not in COUNTS}
        yield Result(encoder.name, "mean of repositories", {**means, "repositories": len(rows)})
    if options.mteb:
        from .mteb_model import run_tasks

        for task, score in run_tasks(encoder, options.mteb):
            yield Result(encoder.name, task, {"main_score": score})


def on_pairs(encoder: Encoder, path: Path) -> dict[str, float]:
    """The figures on pairs, each query among up to 1,000 codes of all languages."""
    examples = read_data([path])
    # In a fixed shuffle: neighbours in a file are of one project, which makes the right one harder to tell.
    order = np.random.default_rng(_SHUFFLE_SEED).permutation(len(examples))
    queries = encoder.queries([examples[at].query for at in order])
    return paired(queries, encoder.codes([examples[at].code for at in order]))


def on_cosqa(encoder: Encoder, folder: Path) -> dict[str, float]:
    """The figures of CoSQA's 500 development queries from web search among its 6,267 codes."""
    questions, codes, right = read_cosqa(folder)
    asked, answers = encoder.queries(questions), encoder.codes(codes)
    told_figures = figures(ranks_of(asked, answers, right))
    return {**told_figures, "nll": nll(asked, answers, right), "queries": len(questions)}


def cosqa_mrr(folder: Path, encode: Callable[[Sequence[str]], Vectors]) -> float:
    """MRR@10 on CoSQA of an encoder that knows no prompts: texts -> unit vectors [texts, dim]."""
    questions, codes, right = read_cosqa(folder)
    return float(reciprocal_ranks(encode(questions), encode(codes), right, limit=10).mean())


def read_cosqa(folder: Path) -> tuple[list[str], list[str], Any]:
    """Queries, codes, and each query's row in the codes. Raises ExportError where the files are not CoSQA's."""
    try:
        indexes: dict[str, int] = json.loads((folder / COSQA_CODES).read_text(encoding="utf-8"))
        questions = json.loads((folder / COSQA_QUERIES).read_text(encoding="utf-8"))
        right = np.array([question["retrieval_idx"] for question in questions], dtype=np.int64)
        return [question["doc"] for question in questions], sorted(indexes, key=indexes.__getitem__), right
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        names = f"{COSQA_CODES} and {COSQA_QUERIES}"
        raise ExportError(f"{folder}: not a folder with CoSQA's {names} ({one_line(error)})") from None


def rounded(values: Mapping[str, float]) -> dict[str, float]:
    """For output: counts as whole numbers, the rest to four places."""
    return {name: value if isinstance(value, int) else round(value, 4) for name, value in values.items()}


def table(results: Sequence[Result]) -> str:
    """A row for each result; columns are all figures that any has."""
    columns = list(dict.fromkeys(name for result in results for name in result.figures))
    head = ["model", "benchmark", *columns]
    rows = [head]
    for result in results:
        shown = rounded(result.figures)
        rows.append([result.model, result.benchmark, *(str(shown.get(name, "")) for name in columns)])
    widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at < 2 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


if __name__ == "__main__":
    sys.exit(main())
