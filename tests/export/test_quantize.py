"""Weights of fewer bits: what the arithmetic is, what it may not depend on, and how near it stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

onnx = pytest.importorskip("onnx", reason="quantising needs the `export` extra")
ort = pytest.importorskip("onnxruntime", reason="running a graph needs the `cpu` extra")
pytest.importorskip("transformers", reason="the model needs the `export` extra")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from export import quantize  # noqa: E402
from export.checkpoint import load  # noqa: E402
from export.encoders import padded  # noqa: E402
from export.graph import OUTPUT, write_graph  # noqa: E402

from .tiny_checkpoint import VOCABULARY, write_checkpoint  # noqa: E402

COMPANY = 3e-4
"""The last bit of a sum, which a batch's shape decides, may round one activation to the next part of a step."""
Floats = npt.NDArray[np.float32]


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traced")
    write_graph(load(str(write_checkpoint(folder))).model, folder / "traced.onnx", 18)
    return folder / "traced.onnx"


@pytest.fixture(scope="module")
def int8(traced: Path) -> Path:
    quantize.int8(traced, traced.with_name("int8.onnx"))
    return traced.with_name("int8.onnx")


def texts(*lengths: int) -> list[list[int]]:
    random = np.random.default_rng(0)
    return [random.integers(0, VOCABULARY, length).tolist() for length in lengths]


def run(path: Path, rows: list[list[int]], optimised: bool = True) -> Floats:
    options = ort.SessionOptions()
    if not optimised:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    (vectors,) = session.run([OUTPUT], dict(zip(("input_ids", "attention_mask"), padded(rows), strict=True)))
    return np.asarray(vectors)


def cosines(path: Path, reference: Path) -> Floats:
    rows = texts(2, 5, 9, 17, 33, 60)
    return np.asarray((run(path, rows) * run(reference, rows)).sum(axis=1))


def layer(path: Path, weight: Floats) -> Path:
    """A graph of one layer: x [tokens, in] @ weight [in, out]."""
    onnx.save(
        helper.make_model(
            helper.make_graph(
                [helper.make_node("MatMul", ["x", "w"], ["y"])],
                "layer",
                [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["tokens", len(weight)])],
                [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["tokens", weight.shape[1]])],
                [numpy_helper.from_array(weight, "w")],
            ),
            opset_imports=[helper.make_opsetid("", 18)],
            ir_version=9,
        ),
        path,
    )
    quantize.int8(path, path.with_suffix(".int8"))
    return path.with_suffix(".int8")


def apply(path: Path, x: Floats) -> Floats:
    (y,) = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(["y"], {"x": x})
    return np.asarray(y)


def test_int8_is_whole_numbers_with_a_scale_for_each_token_and_channel(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    weight = random.standard_normal((24, 5)).astype(np.float32) * np.array([1, 10, 0.1, 1, 1], dtype=np.float32)
    x = random.standard_normal((7, 24)).astype(np.float32)
    x_scale = np.abs(x).max(axis=1, keepdims=True) / quantize.LEVELS
    w_scale = np.abs(weight).max(axis=0) / 127
    fine = np.rint(x / x_scale * quantize.PARTS) / quantize.PARTS
    expected = (fine @ np.rint(weight / w_scale)) * x_scale * w_scale
    np.testing.assert_allclose(apply(layer(tmp_path / "a", weight), x), expected, rtol=1e-3, atol=1e-3)


def test_activations_lose_next_to_nothing(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((7, 24)).astype(np.float32)
    found = apply(layer(tmp_path / "a", np.eye(24, dtype=np.float32)), x)
    assert np.abs(found - x).max() <= np.abs(x).max() / (quantize.LEVELS * quantize.PARTS)


def test_one_loud_token_costs_the_others_nothing(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    path = layer(tmp_path / "a", random.standard_normal((24, 5)).astype(np.float32))
    quiet = random.standard_normal((3, 24)).astype(np.float32)
    loud = np.vstack([quiet, 1e4 * quiet[:1]])
    np.testing.assert_array_equal(apply(path, loud)[:3], apply(path, quiet))


def test_zeros_and_weights_of_nothing_are_no_trouble(tmp_path: Path) -> None:
    path = layer(tmp_path / "a", np.zeros((24, 5), dtype=np.float32))
    np.testing.assert_array_equal(apply(path, np.zeros((2, 24), dtype=np.float32)), np.zeros((2, 5)))


def test_pairs_of_products_fit_into_16_bits() -> None:
    largest = (quantize.LEVELS + quantize.ZERO) * quantize.WEIGHT_LEVELS
    assert 2 * largest <= np.iinfo(np.int16).max


def test_int8_changes_little(traced: Path, int8: Path) -> None:
    assert cosines(int8, traced).min() > 0.999


@pytest.mark.parametrize("optimised", [True, False])
def test_neither_padding_nor_company_changes_an_int8_vector(int8: Path, optimised: bool) -> None:
    rows = texts(3, 3, 8, 21, 21, 50)
    together = run(int8, rows, optimised)
    for row, vector in zip(rows, together, strict=True):
        np.testing.assert_allclose(run(int8, [row], optimised)[0], vector, atol=COMPANY)


def test_every_layer_and_the_table_are_int8(traced: Path, int8: Path) -> None:
    def large(path: Path, kind: int) -> int:
        return sum(len(t.dims) == 2 and t.data_type == kind for t in onnx.load(path).graph.initializer)

    assert large(traced, TensorProto.FLOAT) == large(int8, TensorProto.INT8)
    onnx.checker.check_model(str(int8), full_check=True)


def test_int4_changes_more_but_not_much(traced: Path) -> None:
    path = traced.with_name("int4.onnx")
    quantize.int4(traced, path)
    assert cosines(path, traced).min() > 0.9
    assert {"MatMulNBits", "GatherBlockQuantized"} <= {node.op_type for node in onnx.load(path).graph.node}
    rows = texts(3, 8, 21)
    np.testing.assert_allclose(run(path, rows)[0], run(path, rows[:1])[0], atol=1e-5)


@pytest.mark.parametrize("write", [quantize.as_it_is, quantize.int8, quantize.int4])
def test_a_graph_over_the_formats_limit_keeps_its_weights_beside_it(
    traced: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Any
) -> None:
    monkeypatch.setattr(quantize, "INLINE_BYTES", 1_000)
    write(traced, tmp_path / "model.onnx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]
    assert cosines(tmp_path / "model.onnx", traced).min() > 0.9
