"""Runs a TTIR module op by op in PyTorch: what the same program costs in eager mode.

    python benchmarks/torch_eager.py model.mlir --project OUT --inputs DIR --outputs DIR --loops 5

prints a JSON object with the seconds of each run. OUT is what ttcodegen made of the module; inputs
and outputs have the files that its executable would read and write, DIR/<function>/<name>.npy.
Tensors have the types of the source; constants are made before the clock starts. Knows the ops of
the two models of benchmarks/README.md, and says which is missing for another one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import constant_array, element_of, numpy_name, shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.parsing import parse_module

DTYPES = {
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float32": torch.float32,
    "float64": torch.float64,
    "int64": torch.int64,
    "int32": torch.int32,
    "uint32": torch.int64,  # PyTorch has few ops for uint32
    "uint8": torch.uint8,
    "bool": torch.bool,
}

Parameters = Mapping[str, Any]
Meaning = Callable[[Sequence[Tensor], Parameters, torch.dtype], Tensor | None]


def _elementwise(function: Callable[..., Tensor]) -> Meaning:
    return lambda inputs, parameters, dtype: function(*inputs)


def _reduction(function: Callable[..., Tensor]) -> Meaning:
    def run(inputs: Sequence[Tensor], parameters: Parameters, dtype: torch.dtype) -> Tensor:
        dims = parameters["dim_arg"]
        dims = list(range(inputs[0].ndim)) if dims is None else dims
        return function(inputs[0], dim=dims, keepdim=parameters["keep_dim"])

    return run


def _any(x: Tensor, dim: Sequence[int], keepdim: bool) -> Tensor:
    return torch.any(x, dim=tuple(dim), keepdim=keepdim)


def _argmax(inputs: Sequence[Tensor], parameters: Parameters, dtype: torch.dtype) -> Tensor:
    (dim,) = parameters["dim_arg"]
    return torch.argmax(inputs[0], dim=dim, keepdim=parameters["keep_dim"])


def _matmul(inputs: Sequence[Tensor], parameters: Parameters, dtype: torch.dtype) -> Tensor:
    a, b = inputs[:2]
    a = a.mT if parameters["transpose_a"] else a
    b = b.mT if parameters["transpose_b"] else b
    product = torch.matmul(a, b)
    return product + inputs[2] if len(inputs) > 2 else product


def _dot_general(inputs: Sequence[Tensor], parameters: Parameters, dtype: torch.dtype) -> Tensor:
    left, right = inputs
    batch_left, batch_right = parameters["batch_dims_lhs"], parameters["batch_dims_rhs"]
    inner_left, inner_right = parameters["contract_dims_lhs"], parameters["contract_dims_rhs"]
    free_left = [d for d in range(left.ndim) if d not in (*batch_left, *inner_left)]
    free_right = [d for d in range(right.ndim) if d not in (*batch_right, *inner_right)]
    shape = [left.shape[d] for d in (*batch_left, *free_left)]
    shape += [right.shape[d] for d in free_right]
    a = left.permute(*batch_left, *free_left, *inner_left)
    b = right.permute(*batch_right, *inner_right, *free_right)
    a = a.flatten(-len(inner_left)) if inner_left else a
    a = a.reshape(*a.shape[: len(batch_left)], -1, a.shape[-1])
    b = b.reshape(*b.shape[: len(batch_right)], a.shape[-1], -1)
    return torch.matmul(a, b).reshape(shape)


def _images(parameters: Parameters, x: Tensor) -> Tensor:
    """To (batch, channels, height, width)."""
    names = ("batch_dim", "channel_dim", "height_dim", "width_dim")
    return x.permute(*(parameters[name] for name in names))


def _from_images(parameters: Parameters, x: Tensor) -> Tensor:
    names = ("batch_dim", "channel_dim", "height_dim", "width_dim")
    places = [parameters[name] for name in names]
    return x.permute(*(places.index(i) for i in range(4)))


def _pairs(parameters: Parameters, name: str) -> list[int]:
    values = parameters[name]
    return values * 2 if len(values) == 1 else values


def _symmetric_padding(parameters: Parameters) -> list[int]:
    """Padding of height and width; [top, left, bottom, right] in the source."""
    padding = parameters["padding"]
    padding = padding * 4 if len(padding) == 1 else padding * 2 if len(padding) == 2 else padding
    if padding[0] != padding[2] or padding[1] != padding[3]:
        raise SystemExit(f"padding {padding} is not symmetric")
    return padding[:2]


def _conv2d(inputs: Sequence[Tensor], parameters: Parameters, dtype: torch.dtype) -> Tensor:
    result = F.conv2d(
        _images(parameters, inputs[0]),
        inputs[1],
        inputs[2].flatten() if len(inputs) > 2 else None,
        stride=_pairs(parameters, "stride"),
        padding=_symmetric_padding(parameters),
        dilation=_pairs(parameters, "dilation"),
        groups=parameters["groups"],
    )
    return _from_images(parameters, result)


def _max_pool2d(inputs: Sequence[Tensor], parameters: Parameters, dtype: torch.dtype) -> Tensor:
    result = F.max_pool2d(
        inputs[0].permute(0, 3, 1, 2),
        _pairs(parameters, "kernel"),
        stride=_pairs(parameters, "stride"),
        padding=_symmetric_padding(parameters),
        dilation=_pairs(parameters, "dilation"),
        ceil_mode=parameters["ceil_mode"],
    )
    return result.permute(0, 2, 3, 1)


def _slice(inputs: Sequence[Tensor], parameters: Parameters, dtype: torch.dtype) -> Tensor:
    bounds = zip(parameters["begins"], parameters["ends"], parameters["step"], strict=True)
    return inputs[0][tuple(slice(*bound) for bound in bounds)]


def _broadcast(inputs: Sequence[Tensor], parameters: Parameters, dtype: torch.dtype) -> Tensor:
    x, factors = inputs[0], parameters["broadcast_dimensions"]
    return x.expand([s if f == 1 else f * s for s, f in zip(x.shape, factors, strict=True)])


def _fill_cache(inputs: Sequence[Tensor], parameters: Parameters, dtype: torch.dtype) -> None:
    cache, values = inputs
    start = parameters["batch_offset"]
    cache[start : start + values.shape[0], :, : values.shape[2]] = values


def _rms_norm(inputs: Sequence[Tensor], parameters: Parameters, dtype: torch.dtype) -> Tensor:
    weight = inputs[1] if len(inputs) > 1 else None
    result = F.rms_norm(inputs[0], parameters["normalized_shape"], weight, parameters["epsilon"])
    return result + inputs[2] if len(inputs) > 2 else result


def _arange(inputs: Sequence[Tensor], parameters: Parameters, dtype: torch.dtype) -> Tensor:
    return torch.arange(parameters["start"], parameters["end"], parameters["step"], dtype=dtype)


MEANINGS: dict[str, Meaning] = {
    "add": _elementwise(torch.add),
    "arange": _arange,
    "argmax": _argmax,
    "broadcast": _broadcast,
    "concat": lambda inputs, parameters, dtype: torch.cat(list(inputs), parameters["dim"]),
    "conv2d": _conv2d,
    "cos": _elementwise(torch.cos),
    "div": _elementwise(torch.div),
    "dot_general": _dot_general,
    "embedding": lambda inputs, parameters, dtype: F.embedding(inputs[0], inputs[1]),
    "eq": _elementwise(torch.eq),
    "exp": _elementwise(torch.exp),
    "fill_cache": _fill_cache,
    "le": _elementwise(torch.le),
    "linear": _matmul,
    "logical_not": _elementwise(torch.logical_not),
    "lt": _elementwise(torch.lt),
    "matmul": _matmul,
    "max": _reduction(torch.amax),
    "max_pool2d": _max_pool2d,
    "mean": _reduction(torch.mean),
    "multiply": _elementwise(torch.mul),
    "neg": _elementwise(torch.neg),
    "permute": lambda inputs, parameters, dtype: inputs[0].permute(*parameters["permutation"]),
    "reduce_or": _reduction(_any),
    "relu": _elementwise(torch.relu),
    "reshape": lambda inputs, parameters, dtype: inputs[0].reshape(parameters["shape"]),
    "rms_norm": _rms_norm,
    "sigmoid": _elementwise(torch.sigmoid),
    "sin": _elementwise(torch.sin),
    "slice_static": _slice,
    "softmax": lambda inputs, parameters, dtype: torch.softmax(inputs[0], parameters["dimension"]),
    "subtract": _elementwise(torch.sub),
    "sum": _reduction(torch.sum),
    "transpose": lambda inputs, parameters, dtype: inputs[0].transpose(
        parameters["dim0"], parameters["dim1"]
    ),
    "typecast": lambda inputs, parameters, dtype: inputs[0],
    "where": _elementwise(torch.where),
}


def tensor_of(array: np.ndarray, dtype: torch.dtype) -> Tensor:
    """A tensor of its own memory; bfloat16 comes from float32."""
    known = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
    return torch.from_numpy(np.ascontiguousarray(known).copy()).to(dtype)


def array_of(tensor: Tensor) -> np.ndarray:
    """bfloat16 becomes float32."""
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def _dtype(value: SSAValue) -> torch.dtype:
    return DTYPES[numpy_name(element_of(value.type)) or "float32"]


class EagerFunction:
    """A function, ready to run; raises SystemExit for an op that is not in the table."""

    def __init__(self, function: FuncOp) -> None:
        block = function.body.block
        self.arguments = list(block.args)
        self.constants: dict[SSAValue, Tensor] = {}
        self.steps: list[tuple[Meaning, list[SSAValue], Parameters, list[SSAValue]]] = []
        self.results: list[SSAValue] = []
        unknown: set[str] = set()
        for op in block.ops:
            if isinstance(op, ReturnOp):
                self.results = list(op.operands)
                continue
            assert isinstance(op, CatalogueOp)
            name = op.definition.short_name
            if name == "constant":
                self.constants[op.results[0]] = _constant(op)
            elif name in MEANINGS:
                step = (MEANINGS[name], list(op.operands), op.parameters(), list(op.results))
                self.steps.append(step)
            else:
                unknown.add(op.name)
        if unknown:
            raise SystemExit(f"no PyTorch meaning for {', '.join(sorted(unknown))}")

    def run(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """The results; the arguments are overwritten where the program does so."""
        values = dict(zip(self.arguments, arguments, strict=True)) | self.constants
        for meaning, operands, parameters, results in self.steps:
            dtype = _dtype(results[0]) if results else torch.float32
            result = meaning([values[operand] for operand in operands], parameters, dtype)
            if result is not None:
                values[results[0]] = result.to(dtype)
        return [values[result] for result in self.results]


def _constant(op: CatalogueOp) -> Tensor:
    array = constant_array(op.parameter("value"))
    shape, dtype = shape_of(op.results[0].type), _dtype(op.results[0])
    if array.size and not any(array.strides):
        return tensor_of(array.reshape(-1)[:1], dtype).reshape(()).expand(shape)
    return tensor_of(array, dtype)


def main() -> int:
    """Runs the first function of the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("module")
    parser.add_argument("--project", type=Path, required=True, metavar="OUT")
    parser.add_argument("--inputs", type=Path, required=True, metavar="DIR")
    parser.add_argument("--outputs", type=Path, required=True, metavar="DIR")
    parser.add_argument("--loops", type=int, default=5)
    options = parser.parse_args()
    module = parse_module(Source.read(options.module))
    function = EagerFunction(next(op for op in module.body.ops if isinstance(op, FuncOp)))
    names = json.loads((options.project / "manifest.json").read_text())["functions"][0]
    folder = names["cpp_name"]
    arguments = [
        tensor_of(np.load(options.inputs / folder / f"{row['cpp_name']}.npy"), _dtype(value))
        for row, value in zip(names["inputs"], function.arguments, strict=True)
    ]
    seconds: list[float] = []
    results: list[Tensor] = []
    with torch.inference_mode():
        for _ in range(options.loops):
            start = perf_counter()
            results = function.run(arguments)
            seconds.append(perf_counter() - start)
    outputs = options.outputs / folder
    outputs.mkdir(parents=True, exist_ok=True)
    for row, result in zip(names["outputs"], results, strict=True):
        np.save(outputs / f"{row['cpp_name']}.npy", array_of(result))
    json.dump({"seconds": seconds, "threads": torch.get_num_threads()}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
