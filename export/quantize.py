"""A graph of float32 weights -> the same with weights of 8 or 4 bits, on disk.

**int8** is built so that neither padding nor the other rows of a batch change a vector. onnxruntime's own dynamic
quantisation (and so optimum's ORTQuantizer, which calls it) takes one scale for a whole batch of activations. Here
each token has its own: what stands beside it does not matter, and one outlier token costs the others no precision. That
alone would not do: in 24 layers the last bit of a sum, which the shape of a batch decides, grows into other roundings
everywhere. So an activation is two numbers of 8 bits, steps of its token's scale and parts of a step, and the layer is
multiplied with both at once. (A model of few layers does without the parts, which are half of the work: `parts=False`.)
Weights have a scale for each output channel, the embedding table one for each row.

**int4** has a scale for each BLOCK weights and leaves activations alone (onnxruntime's MatMulNBits).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import load_external_data_for_tensor

BLOCK = 32
"""Weights that share a scale in int4."""
LEVELS = 63
"""Activations are whole steps in -LEVELS..LEVELS: processors without VNNI add pairs of products in 16 bits, which the
full 127 would overflow without a word."""
PARTS = 2 * LEVELS
"""Of a step; what rounding leaves is at most half a step, so these are in -LEVELS..LEVELS too."""
ZERO = 64
"""What stands for 0: the fast kernels want activations unsigned."""
WEIGHT_LEVELS = 127
INLINE_BYTES = 1_900_000_000
"""A file of ONNX holds no more than 2 GB; the weights of a larger graph lie in a file beside it."""
_TINY = 1e-12

Array = npt.NDArray[Any]


def as_it_is(source: Path, target: Path) -> None:
    """Writes the graph of `source`, its weights in their own precision, to `target`."""
    save(onnx.load(source, load_external_data=False), target, source.parent)


def int8(source: Path, target: Path, parts: bool = True) -> None:
    """Writes the graph of `source` (float32) to `target` with weights of 8 bits, and activations of 8 or, with `parts`,
    of twice 8."""
    model = onnx.load(source, load_external_data=False)
    _Int8(model.graph, source.parent, parts).rewrite()
    save(model, target, source.parent)


def int4(source: Path, target: Path) -> None:
    """Writes the graph of `source` (float32) to `target` with weights of 4 bits."""
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer: Any = MatMulNBitsQuantizer(
        onnx.load(source),
        block_size=BLOCK,
        is_symmetric=False,
        accuracy_level=4,
        op_types_to_quantize=("MatMul", "Gather"),
        quant_axes=(("MatMul", 0), ("Gather", 1)),
    )
    quantizer.process()
    save(quantizer.model.model, target, source.parent)


def save(model: onnx.ModelProto, target: Path, base: Path) -> None:
    """Writes the graph with its weights: in one file where that is allowed, else with a file beside it.

    `base`: the folder of weights that are not loaded yet.
    """
    for tensor in model.graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            load_external_data_for_tensor(tensor, str(base))
            tensor.ClearField("external_data")
            tensor.data_location = TensorProto.DEFAULT
    if sum(len(tensor.raw_data) for tensor in model.graph.initializer) < INLINE_BYTES:
        onnx.save(model, target)
    else:
        onnx.save(model, target, save_as_external_data=True, location=target.name + ".data", size_threshold=1024)


class _Int8:
    """Rewrites a graph in place. Weights that stay as they are need not be loaded."""

    def __init__(self, graph: onnx.GraphProto, base: Path, parts: bool) -> None:
        self._graph = graph
        self._base = base
        self._parts = parts
        self._weights = {tensor.name: tensor for tensor in graph.initializer if len(tensor.dims) == 2}
        self._nodes: list[onnx.NodeProto] = []
        self._quantised: set[str] = set()
        """Activations that have their 8 bits already: one norm feeds several layers."""
        self._done: set[str] = set()
        """Weights that have."""

    def rewrite(self) -> None:
        nodes = list(self._graph.node)
        self._constant("int8_step", np.float32(1 / LEVELS))
        self._constant("int8_parts", np.float32(PARTS))
        self._constant("int8_part", np.float32(1 / PARTS))
        self._constant("int8_floor", np.float32(_TINY))
        self._constant("int8_zero", np.float32(ZERO))
        self._constant("int8_zero_point", np.uint8(ZERO))
        self._constant("int8_last_axis", np.array([-1], dtype=np.int64))
        for node in nodes:
            self._nodes.extend(self._rewritten(node))
        del self._graph.node[:]
        self._graph.node.extend(self._nodes)
        kept = [tensor for tensor in self._graph.initializer if tensor.name not in self._done]
        del self._graph.initializer[:]
        self._graph.initializer.extend(kept)

    def _rewritten(self, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
        if node.op_type == "MatMul" and node.input[1] in self._weights:
            yield from self._matmul(node)
        elif node.op_type == "Gather" and node.input[0] in self._weights and not any(a.i for a in node.attribute):
            yield from self._gather(node)
        else:
            yield node

    def _matmul(self, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
        """`x @ w`, as whole numbers; then the scale of each token and of each channel."""
        (x, w), (out,) = node.input, node.output
        if x not in self._quantised:
            self._quantised.add(x)
            yield from self._quantise(x)
        self._store(w, axis=0)
        yield helper.make_node("MatMulInteger", [f"{x}_int8", f"{w}_int8", "int8_zero_point"], [f"{out}_int32"])
        yield helper.make_node("Cast", [f"{out}_int32"], [f"{out}_float"], to=TensorProto.FLOAT)
        whole = f"{out}_float"
        if self._parts:
            whole = f"{out}_sum"
            yield helper.make_node("Split", [f"{out}_float"], [f"{out}_steps", f"{out}_parts"], axis=0, num_outputs=2)
            yield helper.make_node("Mul", [f"{out}_parts", "int8_part"], [f"{out}_rest"])
            yield helper.make_node("Add", [f"{out}_steps", f"{out}_rest"], [whole])
        yield helper.make_node("Mul", [whole, f"{w}_scale"], [f"{out}_channels"])
        yield helper.make_node("Mul", [f"{out}_channels", f"{x}_scale"], [out])

    def _quantise(self, x: str) -> Iterator[onnx.NodeProto]:
        """Activations [batch, …, width] -> uint8 [batch, …, width], in steps of the scale, and scales [batch, …, 1].

        With parts uint8 [2 * batch, …, width]: the second half is what the steps leave, in parts of a step.
        """
        yield helper.make_node("Abs", [x], [f"{x}_abs"])
        yield helper.make_node("ReduceMax", [f"{x}_abs", "int8_last_axis"], [f"{x}_max"], keepdims=1)
        yield helper.make_node("Mul", [f"{x}_max", "int8_step"], [f"{x}_step"])
        yield helper.make_node("Max", [f"{x}_step", "int8_floor"], [f"{x}_scale"])
        yield helper.make_node("Div", [x, f"{x}_scale"], [f"{x}_in_steps"])
        yield helper.make_node("Round", [f"{x}_in_steps"], [f"{x}_steps"])
        whole = f"{x}_steps"
        if self._parts:
            whole = f"{x}_both"
            yield helper.make_node("Sub", [f"{x}_in_steps", f"{x}_steps"], [f"{x}_rest"])
            yield helper.make_node("Mul", [f"{x}_rest", "int8_parts"], [f"{x}_in_parts"])
            yield helper.make_node("Round", [f"{x}_in_parts"], [f"{x}_parts"])
            yield helper.make_node("Concat", [f"{x}_steps", f"{x}_parts"], [whole], axis=0)
        yield helper.make_node("Add", [whole, "int8_zero"], [f"{x}_shifted"])
        yield helper.make_node("Cast", [f"{x}_shifted"], [f"{x}_int8"], to=TensorProto.UINT8)

    def _gather(self, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
        """Rows of a table: as int8, made float after they are taken, times the scale of each."""
        (table, ids), (out,) = node.input, node.output
        self._store(table, axis=1)
        yield helper.make_node("Gather", [f"{table}_int8", ids], [f"{out}_int8"])
        yield helper.make_node("Gather", [f"{table}_scale", ids], [f"{out}_scale"])
        yield helper.make_node("Cast", [f"{out}_int8"], [f"{out}_whole"], to=TensorProto.FLOAT)
        yield helper.make_node("Mul", [f"{out}_whole", f"{out}_scale"], [out])

    def _store(self, name: str, axis: int) -> None:
        """Puts the weight `name` into the graph as int8, with a scale for each row or column across `axis`."""
        if name in self._done:
            return
        self._done.add(name)
        tensor = self._weights[name]
        if tensor.data_location == TensorProto.EXTERNAL:
            load_external_data_for_tensor(tensor, str(self._base))
        values = numpy_helper.to_array(tensor)
        scale = np.maximum(np.abs(values).max(axis=axis, keepdims=True), _TINY) / WEIGHT_LEVELS
        self._constant(f"{name}_int8", np.rint(values / scale).astype(np.int8))
        self._constant(f"{name}_scale", scale.squeeze(0).astype(np.float32) if axis == 0 else scale.astype(np.float32))
        tensor.ClearField("raw_data")

    def _constant(self, name: str, value: Any) -> None:
        self._graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
