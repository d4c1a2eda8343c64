"""python -m export.onnx --dim 512: a checkpoint of the C2LLM family -> a bundle that the server loads by --model.

--dim is the width of the vectors, the checkpoint's own by default. Any other is reached by --head pca, a projection
fitted on vectors of real code, or by --head distil, a new head trained to give the same similarities. --calibrate names
the code: a folder, or JSON lines with a `code` each (default: Python's library and this repository).

The report compares the bundle with the checkpoint in float32 on code that nothing was fitted to.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from .command import told

DEFAULT_CHECKPOINT = "codefuse-ai/C2LLM-0.5B"
QUANTIZE = ("none", "fp16", "int8", "int4")
HEADS = ("pca", "distil")
OPSETS = range(18, 22)
"""18 is the exporter's lowest, 21 the highest that onnxruntime 1.20 reads, the oldest that the server runs on."""
WIDEST = 3584
"""The width of the family's largest model."""
LESS_MEMORY = "export a smaller checkpoint, or use a machine with more"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _stop)  # Its default ends the process at once, and leaves what is half done.

    def work() -> int:
        from .exporter import export

        return export(options)

    return told("export.onnx", work, LESS_MEMORY)


def _parser() -> argparse.ArgumentParser:
    about, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m export.onnx",
        description=about,
        epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--checkpoint", default=DEFAULT_CHECKPOINT, help="hub id, folder, or .gguf (default: %(default)s)")
    add("--revision", help="the hub's commit, if not the pinned one")
    add("--dim", type=_dim, help="width of the vectors (default: the checkpoint's)")
    add("--head", choices=HEADS, default=HEADS[0], help="how another width is reached (default: %(default)s)")
    add("--out", type=Path, help="the bundle's folder (default: NAME-DIM-QUANTIZE here)")
    add("--quantize", choices=QUANTIZE, default=QUANTIZE[0], help="how weights are stored (default: %(default)s)")
    add("--max-tokens", type=_positive, help="longest text of the bundle (default: the checkpoint's)")
    add("--calibrate", type=Path, metavar="PATH", help="code to fit and to measure with")
    add("--opset", type=int, choices=OPSETS, default=OPSETS[0], help="of ONNX (default: %(default)s)")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive whole number")
    return int(text)


def _dim(text: str) -> int:
    if (dim := _positive(text)) > WIDEST:
        raise argparse.ArgumentTypeError(f"{text} is more than any model of the family has, give 1 to {WIDEST}")
    return dim


def _stop(_signal: int, _frame: object) -> NoReturn:
    sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
