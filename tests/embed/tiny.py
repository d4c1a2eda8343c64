"""A real model of a few hundred bytes, and a bundle around it.

Words are tokens. A word's vector is drawn from its id; a text's is the masked mean, shifted by a little of the count
of words before each (so that padding on the wrong side would show), and of unit length.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from server.embed.bundle import sha256_of

DIM = 8
WORDS = [f"w{i}" for i in range(40)]
UNSOUND = "nan"
"""The word whose vector is not a number."""
SILENT = "nil"
"""The word whose vector is zero."""
_VOCABULARY = ["[pad]", "[cls]", "[sep]", "def", "find:", *WORDS, UNSOUND, SILENT]


def write_model(path: Path, *, output: str = "vectors", extra_output: bool = False, seed: int = 0) -> None:
    """An ONNX graph: input_ids, attention_mask -> float32 [batch, DIM]."""
    table = np.random.default_rng(seed).normal(size=(len(_VOCABULARY), DIM)).astype(np.float32)
    table[_VOCABULARY.index(UNSOUND)] = np.nan
    table[_VOCABULARY.index(SILENT)] = 0
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("CumSum", ["mask", "one"], ["count"]),
        helper.make_node("Mul", ["mask", "count"], ["place"]),
        helper.make_node("Unsqueeze", ["place", "last"], ["weight"]),
        helper.make_node("Mul", ["rows", "weight"], ["weighted"]),
        helper.make_node("ReduceSum", ["weighted", "one_axis"], ["sum"], keepdims=0),
        helper.make_node("LpNormalization", ["sum"], [output], axis=1, p=2),
    ]
    constants: dict[str, np.ndarray[Any, Any]] = {
        "table": table,
        "one": np.array(1, dtype=np.int64),
        "last": np.array([2], dtype=np.int64),
        "one_axis": np.array([1], dtype=np.int64),
    }
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", DIM])]
    if extra_output:
        outputs.append(helper.make_tensor_value_info("sum", TensorProto.FLOAT, ["batch", DIM]))
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
            for name in ("input_ids", "attention_mask")
        ],
        outputs,
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, str(path))


def write_tokenizer(path: Path, *, special: bool = False) -> None:
    """Words between blanks; with `special`, [cls] before and [sep] after. Unknown words are dropped."""
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(_VOCABULARY)}, unk_token="[pad]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if special:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[cls] $A [sep]", special_tokens=[("[cls]", 1), ("[sep]", 2)]
        )
    tokenizer.save(str(path))


def write_bundle(
    folder: Path,
    encoders: Sequence[str] = ("model.onnx",),
    special: bool = False,
    changed: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Path:
    """A sound bundle, with `changed` keys of bundle.json laid over it; another `seed` sees other likenesses."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(folder / "tokenizer.json", special=special)
    for number, name in enumerate(encoders):
        write_model(folder / name, seed=seed + number)
    return write_manifest(folder, encoders, changed)


def write_manifest(
    folder: Path, encoders: Sequence[str] = ("model.onnx",), changed: Mapping[str, Any] | None = None
) -> Path:
    """The bundle.json of the files that lie in the folder."""
    manifest = {
        "format": 1,
        "id": "tiny-1",
        "dim": DIM,
        "max_tokens": 12,
        "padding_side": "right",
        "query_prompt": "",
        "code_prompt": "",
        "outputs": ["vectors"],
        "dtype": "float32",
        "normalized": True,
        "files": {name: sha256_of(folder / name) for name in ("tokenizer.json", *encoders)},
        "source": "random numbers",
        "licence": "Apache-2.0",
    }
    (folder / "bundle.json").write_text(json.dumps({**manifest, **(changed or {})}), encoding="utf-8")
    return folder
