"""python -m export.small_bundle CHECKPOINT --corpus CORPUS --out BUNDLE: the small model as a bundle of 8 bits.

CHECKPOINT is what `python -m export.train_small` left, or a BERT as it came. CORPUS is what it was trained on: its
words make the vocabulary, its held-out packages are what is measured with.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from server.embed.bundle import ONE_ENCODER, TOKENIZER

from . import quantize
from .bundle import write_manifest
from .command import told
from .corpus.manifest import Package
from .encoders import BundleEncoder, CheckpointEncoder, Encoder, padded, tokenized
from .errors import ExportError
from .evaluate import on_cosqa
from .exporter import new_folder
from .graph import OUTPUT, write_graph
from .journal import say
from .metrics import Vectors, paired
from .pairs import Row, read_rows
from .searches import CODE_CHARS
from .small import Small, for_code, load_small
from .train_small import TUNED
from .train_student import notice, used_packages
from .trim import trimmed, word_counts

NAME = "meaning-small"
VOCABULARY = 20_000
COUNTED = 50_000
"""Pairs whose words the vocabulary has to hold, spread over the corpus."""
MAX_TOKENS = 128
"""Longer code is embedded in parts. What a model of so few layers says of more is no better."""
OPSET = 18
MEASURED = 200
"""Functions that speed and precision are about."""
VALIDATED = 1_000
LEAST_PARITY = 0.9999
LEAST_COSINE = 0.99
"""On average over functions."""
_SEED = 0


@dataclass(frozen=True)
class Measured:
    """Held-out pairs, and the vectors of the first MEASURED codes by the model in float32 in torch."""

    rows: list[Row]
    vectors: Vectors

    @property
    def codes(self) -> list[str]:
        """The first MEASURED."""
        return [row.code for row in self.rows[:MEASURED]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m export.small_bundle", description=__doc__.partition("\n\n")[0])
    add = parser.add_argument
    add("checkpoint", type=Path)
    add("--corpus", type=Path, required=True)
    add("--out", type=Path, required=True, metavar="BUNDLE")
    add("--vocabulary", type=int, default=VOCABULARY, metavar="WORDS", help="default: %(default)s")
    add("--max-tokens", type=int, default=MAX_TOKENS, help="default: %(default)s")
    add("--cosqa", type=Path, metavar="FOLDER", help="CoSQA's development files, to measure")
    options = parser.parse_args(arguments)
    return told("export.small_bundle", lambda: run(options))


def run(options: argparse.Namespace) -> int:
    """Trims, traces, quantises, measures; only then is the bundle there. Returns the exit code."""
    small = for_code(load_small(options.checkpoint))
    train, valid = (list(read_rows(options.corpus / f"{part}.jsonl")) for part in ("train", "valid"))
    texts = [text for row in train[:: -(-len(train) // COUNTED)] for text in (row.query, row.code[:CODE_CHARS])]
    say(f"trimming the vocabulary to the words of {len(texts)} texts")
    small = trimmed(small, options.vocabulary, word_counts(small, texts))
    measured = _measured(small, valid, options.max_tokens)
    packages = used_packages(train)
    with new_folder(options.out) as folder:
        parity = _write_model(small, folder, measured, options.max_tokens)
        small.tokenizer.save(str(folder / TOKENIZER), pretty=False)
        (folder / "NOTICE").write_text(_notice(small, packages), encoding="utf-8")
        facts: dict[str, Any] = {
            "source": small.source,
            "licence": small.licence,
            "training": {"packages": len(packages), "date": time.strftime("%Y-%m-%d", time.gmtime())},
        }
        known = _known(small, options.max_tokens)
        write_manifest(folder, NAME, known, facts)  # Once for the measuring, and once with what it says.
        facts["training"]["figures"] = figures = {"fp32_parity": parity, **_figures(folder, measured, options.cosqa)}
        identity = write_manifest(folder, NAME, known, facts)
    say(f"{options.out}: {identity} {json.dumps(figures)}")
    return 0


def _known(small: Small, max_tokens: int) -> dict[str, Any]:
    return {
        "dim": small.model.dim,
        "max_tokens": max_tokens,
        "padding_side": "right",
        "query_prompt": small.query_prompt,
        "code_prompt": small.code_prompt,
        "outputs": [OUTPUT],
        "dtype": "int8",
        "normalized": True,
    }


def _measured(small: Small, valid: Sequence[Row], max_tokens: int) -> Measured:
    order = np.random.default_rng(_SEED).permutation(len(valid))[:VALIDATED]  # Else a pool is of one package.
    rows = [valid[at] for at in order]
    codes = [row.code for row in rows[:MEASURED]]
    return Measured(rows, CheckpointEncoder(small, max_tokens=max_tokens).codes(codes))


def _write_model(small: Small, folder: Path, measured: Measured, max_tokens: int) -> float:
    """Writes the graph of 8 bits; returns the least cosine of the one of float32 to torch's vectors."""
    traced = folder / "traced" / ONE_ENCODER
    traced.parent.mkdir()
    write_graph(small.model, traced, OPSET)
    rows = tokenized(small.tokenizer, small.code_prompt, measured.codes, max_tokens)
    parity = _least(_run_graph(traced, rows), measured.vectors)
    if parity < LEAST_PARITY:
        raise ExportError(f"the traced graph gives other vectors than the model (cosine {parity:.5f}); update torch")
    quantize.int8(traced, folder / ONE_ENCODER, parts=False)
    shutil.rmtree(traced.parent)
    return round(parity, 6)


def _run_graph(graph: Path, rows: Sequence[list[int]]) -> Vectors:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    names = ("input_ids", "attention_mask")
    found = [session.run([OUTPUT], dict(zip(names, padded([row]), strict=True)))[0] for row in rows]
    vectors: Vectors = np.concatenate(found)
    return vectors


def _figures(folder: Path, measured: Measured, cosqa: Path | None) -> dict[str, float]:
    encoder = BundleEncoder(folder)
    vectors, seconds = _timed(partial(encoder.codes, measured.codes))
    cosines = (vectors * measured.vectors).sum(axis=1)
    if cosines.mean() < LEAST_COSINE:
        raise ExportError(f"8 bits change vectors too much (mean cosine {cosines.mean():.4f}); quantise with parts")
    found = paired(
        encoder.queries([row.query for row in measured.rows]), encoder.codes([r.code for r in measured.rows])
    )
    told_figures = {
        "bytes": sum(path.stat().st_size for path in folder.iterdir()),
        "cosine_to_fp32_mean": round(float(cosines.mean()), 5),
        "cosine_to_fp32_min": round(float(cosines.min()), 5),
        "functions_per_second": round(len(vectors) / seconds, 1),
        "query_ms": round(_query_ms(encoder, [row.query for row in measured.rows[:50]]), 2),
        "held_out_packages_mrr_of_1000": round(found["mrr"], 4),
    }
    if cosqa:
        told_figures["cosqa_dev_mrr_at_10"] = round(on_cosqa(encoder, cosqa)["mrr@10"], 4)
    return told_figures


def _timed(work: Callable[[], Vectors]) -> tuple[Vectors, float]:
    started = time.perf_counter()
    return work(), time.perf_counter() - started


def _query_ms(encoder: Encoder, queries: Sequence[str]) -> float:
    """The median."""
    return float(np.median([_timed(partial(encoder.queries, [query]))[1] for query in queries])) * 1e3


def _least(vectors: Vectors, others: Vectors) -> float:
    return float((vectors * others).sum(axis=1).min())


def _notice(small: Small, packages: Sequence[Package]) -> str:
    return (
        f"The weights of this model began as those of {small.source.removesuffix(TUNED)},\n"
        f"under the licence {small.licence}, which is that of these weights too. They were changed: trained further\n"
        "on the packages below, rounded to 8 bits, without the words that code does not need.\n\n" + notice(packages)
    )


if __name__ == "__main__":
    sys.exit(main())
