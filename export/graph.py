"""A torch model -> an ONNX graph of dynamic batch and length."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import torch
from torch import nn

OUTPUT = "vector"
"""(Not `embedding`, a name that the exporter gives to a node of its own.)"""
INPUTS = ("input_ids", "attention_mask")
_EXAMPLE = (2, 6)
"""A shape to trace with, [batch, tokens]: any, but no size of 0 or 1, which would be taken for fixed."""


def write_graph(model: nn.Module, path: Path, opset: int) -> None:
    """Writes the model's graph to `path`, its weights to a file beside it: int64 [batch, tokens] twice -> OUTPUT."""
    ids = torch.ones(_EXAMPLE, dtype=torch.int64)
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens")}
    exporter = logging.getLogger("torch.onnx")
    level = exporter.level
    exporter.setLevel(logging.ERROR)  # It warns of packages that nobody needs here.
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                model.eval(),
                (ids, torch.ones_like(ids)),
                dynamo=True,
                dynamic_shapes=dict.fromkeys(INPUTS, sizes),
                input_names=list(INPUTS),
                output_names=[OUTPUT],
                opset_version=opset,
                verbose=False,
            )
    finally:
        exporter.setLevel(level)
    if program is None:
        raise RuntimeError("the exporter gave no graph")
    program.save(path, external_data=True)
