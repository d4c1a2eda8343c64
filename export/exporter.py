"""The work of python -m export.onnx: load, reduce, trace, quantise, measure; only then is the bundle there."""

from __future__ import annotations

import argparse
import copy
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from server.embed.bundle import MANIFEST, ONE_ENCODER, TOKENIZER

from . import quantize
from .bundle import write_manifest
from .calibration import functions
from .checkpoint import Checkpoint
from .encoders import BundleEncoder, tokenized
from .errors import ExportError
from .graph import OUTPUT, write_graph
from .hub import locate
from .memory import check_disk, check_memory
from .merge import load_any
from .reduce import DISTIL, Reduced, Vectors, by_distillation, by_pca, embed, nearest_agreement
from .weights import parameters

MEASURED = 200
"""Functions that the report is about."""
CALIBRATED = 1_000
"""Functions that a reduction is fitted to, at least; PER_DIM for each number of the vector if that is more."""
PER_DIM = 2
CALIBRATION_TOKENS = 256
"""Longer functions are cut for calibrating and measuring: that takes minutes, and the beginning says enough."""
BYTES_PER_WEIGHT = {"none": 4.1, "fp16": 2.1, "int8": 1.1, "int4": 0.8}
"""Of the bundle."""
MEMORY_PER_WEIGHT = {"none": 13, "fp16": 13, "int8": 9, "int4": 14}
"""Peak, in bytes, as measured with some room."""
BASE_BYTES = 5e8
"""What Python and its libraries take."""
SAY_EVERY_SECONDS = 10.0


@dataclass(frozen=True)
class Calibration:
    """Code as token lists, and its vectors by the checkpoint in float32."""

    texts: list[str]
    rows: list[list[int]]
    vectors: Vectors


def export(options: argparse.Namespace) -> int:
    """Writes the bundle that the command line asks for; returns the exit code. Raises ExportError."""
    _check_room(options)
    checkpoint = load_any(options.checkpoint, options.revision)
    dim = options.dim or checkpoint.model.dim
    most = options.max_tokens or checkpoint.max_tokens
    _check_fit(checkpoint, options, dim)
    dtype = "fp32" if options.quantize == "none" else options.quantize
    name = f"{Path(checkpoint.source).name}-{dim}-{dtype}"
    out = options.out or Path(name)
    with new_folder(out) as folder:
        reduced, measured = _narrowed(checkpoint, options, dim, most)
        _write_model(reduced.model, folder / ONE_ENCODER, options.quantize, options.opset)
        checkpoint.tokenizer.save(str(folder / TOKENIZER), pretty=False)
        known = {
            "dim": dim,
            "max_tokens": most,
            "padding_side": "left",
            "query_prompt": checkpoint.query_prompt,
            "code_prompt": checkpoint.code_prompt,
            "outputs": [OUTPUT],
            "dtype": dtype,
            "normalized": True,
        }
        facts: dict[str, Any] = {
            "source": checkpoint.source,
            "revision": checkpoint.revision,
            "licence": checkpoint.licence,
            "reduction": dict(reduced.facts) or None,
        }
        write_manifest(folder, name, known, facts)  # Once for the measuring, and once with what it says.
        facts["report"] = _measure(folder, measured)
        identity = write_manifest(folder, name, known, facts)
    _report(out, identity, facts)
    return 0


def _check_room(options: argparse.Namespace) -> None:
    """Whether the machine has the memory and the disk, before anything long begins."""
    weights = parameters(locate(options.checkpoint, options.revision).path)
    need = BASE_BYTES + weights * MEMORY_PER_WEIGHT[options.quantize]
    check_memory(need, torch.device("cpu"), "export a smaller checkpoint, or use a machine with more")
    check_disk(options.out or Path(), weights * (4.1 + BYTES_PER_WEIGHT[options.quantize]))


def _check_fit(checkpoint: Checkpoint, options: argparse.Namespace, dim: int) -> None:
    model = checkpoint.model
    if checkpoint.fresh_head:
        raise ExportError(
            f"{options.checkpoint}: has no trained head, its vectors would say nothing; "
            "train one first: python -m export.train"
        )
    if dim > model.dim:
        raise ExportError(f"--dim {dim}: the checkpoint's head is {model.dim} wide; give 1 to {model.dim}")
    longest = model.backbone.config.max_position_embeddings
    if (options.max_tokens or 1) > longest:
        raise ExportError(f"--max-tokens {options.max_tokens}: the checkpoint takes at most {longest}")
    prompts = (checkpoint.query_prompt, checkpoint.code_prompt)
    taken = max(map(len, tokenized(checkpoint.tokenizer, "", prompts, longest)))
    if (options.max_tokens or longest) <= taken:
        raise ExportError(f"--max-tokens {options.max_tokens}: a prompt alone takes {taken}; give more")


def _narrowed(checkpoint: Checkpoint, options: argparse.Namespace, dim: int, most: int) -> tuple[Reduced, Calibration]:
    """The model of the width that is asked for, and code to measure it with that it was not fitted to."""
    whole = checkpoint.model
    if dim == whole.dim:
        return Reduced(whole), _embedded(whole, checkpoint, functions(options.calibrate, MEASURED), most)
    texts = functions(options.calibrate, max(CALIBRATED, PER_DIM * dim) + MEASURED)
    apart = min(MEASURED, len(texts) // 2)
    fitted = _embedded(whole, checkpoint, texts[apart:], most)
    _say(f"from {whole.dim} to {dim} by {options.head}")
    if options.head == DISTIL:
        reduced = by_distillation(whole, fitted.vectors, fitted.rows, dim, _say)
    else:
        reduced = by_pca(whole, fitted.vectors, dim)
    _say(", ".join(f"{key.replace('_', ' ')} {value}" for key, value in reduced.facts.items()))
    return reduced, _embedded(reduced.model, checkpoint, texts[:apart], most)


def _embedded(model: nn.Module, checkpoint: Checkpoint, texts: list[str], most: int) -> Calibration:
    rows = tokenized(checkpoint.tokenizer, checkpoint.code_prompt, texts, min(most, CALIBRATION_TOKENS))
    _say(f"embedding {len(texts)} functions in float32")
    return Calibration(texts, rows, embed(model, rows, _Progress(len(texts)).more))


def _write_model(model: nn.Module, target: Path, how: str, opset: int) -> None:
    """Traces the model and writes it to `target`, its weights stored as `how` says."""
    traced = target.parent / "traced" / "model.onnx"
    traced.parent.mkdir()
    _say("tracing the graph (a minute or two)")
    write_graph(copy.deepcopy(model).half() if how == "fp16" else model, traced, opset)
    _say(f"writing the weights ({how})")
    write = {"int8": quantize.int8, "int4": quantize.int4}.get(how, quantize.as_it_is)
    write(traced, target)
    shutil.rmtree(traced.parent)


def _measure(folder: Path, measured: Calibration) -> dict[str, Any]:
    """The bundle in onnxruntime against the same model in float32 in torch."""
    _say(f"measuring with {len(measured.texts)} functions")
    encoder = BundleEncoder(folder, CALIBRATION_TOKENS)
    started = time.monotonic()
    vectors = encoder.codes(measured.texts)
    seconds = time.monotonic() - started
    cosines = (vectors * measured.vectors).sum(axis=1)
    return {
        "bytes": sum(path.stat().st_size for path in folder.iterdir()),
        "functions": len(measured.texts),
        "cosine_to_fp32_mean": round(float(cosines.mean()), 5),
        "cosine_to_fp32_min": round(float(cosines.min()), 5),
        "nearest_neighbour_agreement": round(nearest_agreement(vectors, measured.vectors), 4),
        "functions_per_second": round(len(measured.texts) / seconds, 2),
        "tokens_per_function": round(float(np.mean([len(row) for row in measured.rows])), 1),
    }


def _report(out: Path, identity: str, facts: dict[str, Any]) -> None:
    report, reduction = facts["report"], facts["reduction"]
    lines = [
        f"{out}: {identity}, {report['bytes'] / 1e6:.0f} MB",
        f"  cosine to float32      mean {report['cosine_to_fp32_mean']:.5f}, min {report['cosine_to_fp32_min']:.5f}",
        f"  nearest neighbour      the same for {report['nearest_neighbour_agreement']:.1%}",
        f"  functions per second   {report['functions_per_second']:.1f} of {report['tokens_per_function']:.0f} tokens",
    ]
    if reduction and "share_of_variance_kept" in reduction:
        lines.append(f"  share of variance kept {reduction['share_of_variance_kept']:.1%}")
    lines.append(f"Use it: python -m server --model {out}")
    print("\n".join(lines))  # noqa: T201


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Where to write what becomes the folder `out` when it is whole. A bundle that is there already is replaced."""
    if out.exists() and not (out / MANIFEST).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise ExportError(f"{out}: is there and is no bundle; name another folder with --out")
    part = out.with_name(out.name + ".part")
    shutil.rmtree(part, ignore_errors=True)  # What a kill may have left.
    try:
        part.mkdir(parents=True)
        yield part
        old = out.with_name(out.name + ".old")
        shutil.rmtree(old, ignore_errors=True)
        if out.exists():
            out.rename(old)
        part.rename(out)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise ExportError(
            f"{error.filename or out}: {error.strerror or error}; name another place with --out"
        ) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


class _Progress:
    """Says every few seconds how far a long step is."""

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0
        self._started = self._said = time.monotonic()

    def more(self, count: int) -> None:
        self._done += count
        now = time.monotonic()
        if now - self._said > SAY_EVERY_SECONDS:
            self._said = now
            rate = self._done / (now - self._started)
            _say(f"  {self._done} of {self._total}, {rate:.1f} a second")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201
