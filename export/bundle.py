"""Writes a trained student as a model bundle: tokenizer.json, bundle.json, and model.onnx or query.onnx and code.onnx.

The graph keeps the table in int8 with a scale for each word. A text's pooling is a product of two matrices: the words'
weights [1, tokens], into which the scales are folded, and their int8 rows [tokens, dim], made float after the gather.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

from server.embed.bundle import CODE_ENCODER, FORMAT, MANIFEST, ONE_ENCODER, QUERY_ENCODER, TOKENIZER, sha256_of

from .student import PLACES, REPEATS, Student

OPSET = 18
IR_VERSION = 9
"""What onnxruntime 1.20, the oldest that we run on, reads."""
OUTPUT = "vector"
MAX_TOKENS = 512
NAME = "meaning-nbow"
_ENCODERS = (ONE_ENCODER, QUERY_ENCODER, CODE_ENCODER)
_FAR = 1e9
"""What is taken off where there is no word, so that no maximum is found there."""
_FLOOR = 1e-6
"""Keeps sums that are divided by away from 0."""

Array = npt.NDArray[Any]


def write_bundle(
    folder: Path, student: Student, tokenizer: Tokenizer, facts: Mapping[str, Any], code: Student | None = None
) -> str:
    """Writes the bundle into `folder` and returns its id.

    `code`: the encoder of code, where `student` is that of queries alone. `facts`: further keys of bundle.json,
    `source`, `licence` and what the student was trained on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if code is None:
        onnx.save(graph(student), str(folder / ONE_ENCODER))
    else:
        onnx.save(graph(student), str(folder / QUERY_ENCODER))
        onnx.save(graph(code), str(folder / CODE_ENCODER))
    tokenizer.save(str(folder / TOKENIZER), pretty=False)
    known = {
        "dim": student.table.shape[1],
        "max_tokens": MAX_TOKENS,
        "padding_side": "right",
        "query_prompt": "",
        "code_prompt": "",
        "outputs": [OUTPUT],
        "dtype": "int8",
        "normalized": True,
    }
    return write_manifest(folder, f"{NAME}-{student.table.shape[1]}", known, facts)


def write_manifest(folder: Path, name: str, known: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """Writes bundle.json beside the files that are in `folder` already; returns the id, `name` and a hash of them.

    `known`: the keys of server.embed.bundle.Bundle but for `id` and `files`; `facts`: what else there is to say.
    """
    weights = sorted(path.name for path in folder.iterdir() if path.name.startswith(_ENCODERS))
    files = {file: sha256_of(folder / file) for file in (*weights, TOKENIZER)}
    identity = f"{name}-{hashlib.sha256(''.join(files.values()).encode()).hexdigest()[:8]}"
    manifest = {"format": FORMAT, "id": identity, **known, "files": files, **facts}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return identity


def quantise(table: Array) -> tuple[Array, Array]:
    """int8 rows [vocabulary, dim] and a scale for each [vocabulary]: row * scale is the table, to half a step."""
    scales = np.maximum(np.abs(table).max(axis=1), 1e-12) / 127
    rows = np.rint(table / scales[:, None]).clip(-127, 127).astype(np.int8)
    return rows, scales.astype(np.float32)


def graph(student: Student) -> onnx.ModelProto:
    """The encoder: input_ids, attention_mask int64 [batch, tokens] -> `vector` float32 [batch, dim] of unit length."""
    rows, scales = quantise(student.table.detach().numpy())
    attention = np.exp(student.logits.detach().numpy())
    place_of = np.searchsorted(PLACES, np.arange(MAX_TOKENS), side="right") - 1
    place_attention = np.exp(student.place_logits.detach().numpy())[place_of]
    mix = student.mix.detach().numpy()
    constants = {
        "table": rows,
        "scales": scales,
        "attention": attention.astype(np.float32),
        "place_attention": place_attention.astype(np.float32),
        "mix_attention": np.float32(mix[0]),
        "mix_mean": np.float32(mix[1]),
        **({"mix_maximum": np.float32(mix[2]), "far": np.float32(_FAR)} if len(mix) > 2 else {}),
        "repeats": np.float32(REPEATS - 1),
        "floor": np.float32(_FLOOR),
        "nothing": np.array([0], dtype=np.int64),
        "last": np.array([-1], dtype=np.int64),
        "middle": np.array([1], dtype=np.int64),
    }
    model = helper.make_model(
        helper.make_graph(
            _nodes(maximum=len(mix) > 2),
            NAME,
            inputs=[
                helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
                for name in ("input_ids", "attention_mask")
            ],
            outputs=[helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["batch", rows.shape[1]])],
            initializer=[numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="meaning-lsp export",
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def _node(kind: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.split(), [output], **attributes)


def _nodes(maximum: bool) -> list[onnx.NodeProto]:
    node = _node
    return [
        node("Cast", "attention_mask", "mask", to=TensorProto.FLOAT),
        # How often each token stands in its text: a token that stands n times gets n ** REPEATS / n at each place.
        node("Cast", "input_ids", "ids", to=TensorProto.INT32),
        node("Unsqueeze", "ids last", "down"),
        node("Unsqueeze", "ids middle", "across"),
        node("Equal", "down across", "same"),
        node("Cast", "same", "same_float", to=TensorProto.FLOAT),
        node("Unsqueeze", "mask last", "mask_column"),
        node("MatMul", "same_float mask_column", "count_column"),
        node("Squeeze", "count_column last", "count"),
        node("Max", "count floor", "count_floored"),
        node("Pow", "count_floored repeats", "damping"),
        node("Mul", "damping mask", "mean_weight"),
        node("Gather", "attention input_ids", "word_attention"),
        node("Shape", "input_ids", "length_of_rows", start=1),
        node("Slice", "place_attention nothing length_of_rows", "here"),
        node("Mul", "word_attention here", "placed_attention"),
        node("Mul", "placed_attention mean_weight", "attention_weight"),
        # Each pooling's weights sum to 1 over the text; then they are mixed and the rows' scales folded in.
        node("ReduceSum", "mean_weight last", "mean_sum", keepdims=1),
        node("ReduceSum", "attention_weight last", "attention_sum", keepdims=1),
        node("Max", "mean_sum floor", "mean_total"),
        node("Max", "attention_sum floor", "attention_total"),
        node("Div", "mean_weight mean_total", "mean"),
        node("Div", "attention_weight attention_total", "attended"),
        node("Mul", "mean mix_mean", "mean_part"),
        node("Mul", "attended mix_attention", "attended_part"),
        node("Add", "mean_part attended_part", "weight"),
        node("Gather", "scales input_ids", "scale"),
        node("Mul", "weight scale", "scaled_weight"),
        node("Unsqueeze", "scaled_weight middle", "weight_row"),
        node("Gather", "table input_ids", "bytes"),
        node("Cast", "bytes", "words", to=TensorProto.FLOAT),
        node("MatMul", "weight_row words", "pooled_row"),
        node("Squeeze", "pooled_row middle", "summed" if maximum else "pooled"),
        *(_maximum() if maximum else ()),
        node("ReduceL2", "pooled last", "length", keepdims=1),
        node("Max", "length floor", "length_floored"),
        node("Div", "pooled length_floored", OUTPUT),
    ]


def _maximum() -> list[onnx.NodeProto]:
    """Adds the maximum over the words' vectors, [batch, dim], to the sum of the others."""
    return [
        _node("Unsqueeze", "scale last", "scale_column"),
        _node("Mul", "words scale_column", "floats"),
        _node("Mul", "mask_column far", "near"),
        _node("Sub", "near far", "distance"),
        _node("Add", "floats distance", "present"),
        _node("ReduceMax", "present middle", "most", keepdims=0),
        _node("Mul", "most mix_maximum", "maximum_part"),
        _node("Add", "summed maximum_part", "pooled"),
    ]
