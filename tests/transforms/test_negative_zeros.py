"""Zeros with a sign, which the library's `sign` and logical kernels take for other numbers.

`KERNELS` is what the vendor's simulator gives for tt-metal 0.70.1 on Wormhole: of float32 -0.0,
`sign` is -1, and it is true for `logical_not`, `logical_and` and `logical_xor`; `ne` and `eq` with
zero and a sum with zero take it for zero.
"""

from __future__ import annotations

import numpy as np
import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.flatbuffer.reader import Binary, read_ttnn
from ttcodegen.foundation.diagnostics import Source

X = np.array([0.0, -0.0, 2.5, -2.5], np.float32)
KERNELS = {
    "ttnn.sign": lambda x: np.where(np.signbit(x), -1.0, np.sign(x)),
    "ttnn.logical_not": lambda x: (x.view(np.uint32) == 0).astype(np.float32),
    "ttnn.logical_and": lambda x, y: ((x.view("u4") != 0) & (y.view("u4") != 0)).astype("f4"),
    "ttnn.logical_or": lambda x, y: ((x.view("u4") != 0) | (y.view("u4") != 0)).astype("f4"),
    "ttnn.logical_xor": lambda x, y: ((x.view("u4") != 0) ^ (y.view("u4") != 0)).astype("f4"),
    "ttnn.eq": lambda x, y: (x == y).astype(np.float32),
    "ttnn.ne": lambda x, y: (x != y).astype(np.float32),
    "ttnn.add": lambda x, y: (x + y).astype(np.float32),
}
EXPECTED = {
    "sign": np.sign(X),
    "logical_not": np.logical_not(X),
    "logical_and": np.logical_and(X, X[::-1]),
    "logical_or": np.logical_or(X, X[::-1]),
    "logical_xor": np.logical_xor(X, X[::-1]),
}


def compiled(name: str, before: str = "") -> Binary:
    operands = "%x" if name in ("sign", "logical_not") else "%x, %y"
    types = ", ".join(["tensor<4xf32>"] * (operands.count("%")))
    text = f"""func.func @f(%{0 if before else "x"}: tensor<4xf32>, %y: tensor<4xf32>)
        -> tensor<4xf32> {{
        {before}
        %r = "ttir.{name}"({operands}) : ({types}) -> tensor<4xf32>
        return %r : tensor<4xf32>
    }}"""
    return read_ttnn(compile_module(Source("m.mlir", text), CompileOptions("m")).flatbuffer)


def computed(binary: Binary, *inputs: np.ndarray) -> np.ndarray:
    """The result of the calls as the kernels compute them."""
    (program,) = binary.programs
    values = {given.tensor: array for given, array in zip(program.inputs, inputs, strict=True)}
    for operation in program.operations:
        operands = [values[each] for each in operation.operands]
        if operation.name in KERNELS:
            # The second operand of a comparison or sum is the number zero.
            of_zero = operation.name in ("ttnn.eq", "ttnn.ne", "ttnn.add")
            operands = [*operands[:1], np.zeros_like(X)] if of_zero else operands
            values[operation.results[0]] = KERNELS[operation.name](*operands)
        elif operation.results:
            values[operation.results[0]] = operands[0]
    return values[program.outputs[0].tensor]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_zero_with_a_sign_is_a_zero(name: str) -> None:
    found = computed(compiled(name), X, X[::-1].copy())
    assert np.array_equal(found, EXPECTED[name].astype(np.float32))


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_true_or_has_no_sign_stays(name: str) -> None:
    before = '%x = "ttir.abs"(%0) : (tensor<4xf32>) -> tensor<4xf32>'
    if name != "sign":
        before = '%x = "ttir.gt"(%0, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>'
    names = [each.name for each in compiled(name, before).programs[0].operations]
    if name in ("sign", "logical_not"):
        assert not {"ttnn.add", "ttnn.eq", "ttnn.ne"} & set(names)
    else:
        assert names.count("ttnn.ne") == 1
