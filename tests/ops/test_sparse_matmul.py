"""Products that flags choose, against loops, and how they are divided among cores."""

from __future__ import annotations

import numpy as np
import pytest

from ttcodegen.ops.matmul.sparse_matmul import program_of

RANDOM = np.random.default_rng(41)
SHAPES = [
    ((2, 3, 5, 40), (1, 4, 40, 70), (2, 3, 1, 4), (2, 3, 1, 4, 5, 70), False, True),
    ((3, 4, 33, 8), (1, 4, 8, 12), (1, 1, 3, 4), (3, 4, 33, 12), True, False),
    ((1, 4, 33, 8), (1, 4, 8, 12), (1, 1, 1, 4), (1, 4, 33, 12), True, True),
    ((1, 1, 1, 3), (1, 1, 3, 1), (1, 1, 1, 1), (1, 1, 1, 1, 1, 1), False, True),
]


def drawn(*shape, dtype="float32"):
    return RANDOM.normal(size=shape).astype(np.dtype(dtype))


def flags_of(shape, dtype):
    """Zeros, of floats negative ones among them, and anything else."""
    if dtype == "uint16":
        return RANDOM.integers(0, 2, size=shape).astype(np.uint16)
    values = RANDOM.choice([0.0, -0.0, 1.0, 0.25, 1e-3, -2.0], size=shape)
    return values.astype(np.dtype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("flag_dtype", ["float32", "bfloat16", "uint16"])
@pytest.mark.parametrize(("a", "b", "flags", "result", "sparse_a", "sparse_b"), SHAPES)
def test_sparse_matmul(evaluate, dtype, flag_dtype, a, b, flags, result, sparse_a, sparse_b):
    left, right = drawn(*a, dtype=dtype), drawn(*b, dtype=dtype)
    wanted = flags_of(flags, flag_dtype)
    modes = {"is_input_a_sparse": sparse_a, "is_input_b_sparse": sparse_b}
    ran = evaluate("sparse_matmul", [left, right, wanted], result, **modes)
    matrices = left.reshape(-1, *a[-2:]).astype(np.float64)
    expected = []
    for place, flag in enumerate(wanted.reshape(-1)):
        one = matrices[place if sparse_a else place // b[1]]
        product = one @ right[0, place % b[1]].astype(np.float64)
        expected.append(product if flag != 0 else np.zeros_like(product))
    for found in (ran.golden[0], ran.lowered[0]):
        tolerance = 0.1 if dtype == "bfloat16" else 1e-4
        numbers = found.astype(np.float64).reshape(-1, a[-2], b[-1])
        np.testing.assert_allclose(numbers, np.array(expected), atol=tolerance)
        np.testing.assert_array_equal(numbers[wanted.reshape(-1) == 0], 0)
    assert "ttnn.sparse_matmul" in ran.names


@pytest.mark.parametrize("rows", [1, 32, 70, 1024])
@pytest.mark.parametrize("inner", [1, 32, 2880])
@pytest.mark.parametrize("columns", [1, 32, 96, 416, 2880, 5760, 14336])
def test_the_program_is_one_that_the_library_takes(rows, inner, columns):
    program = program_of(rows, inner, columns)
    assert program.misfit() is None
    height, depth, width = (-(-size // 32) for size in (rows, inner, columns))
    blocks = -(-height // program.per_core_m) * -(-width // program.per_core_n)
    assert blocks == program.compute_with_storage_grid_size.cores <= 64
    assert depth % program.in0_block_w == 0
    assert program.per_core_m % program.out_block_h == 0
    assert program.per_core_n % program.out_block_w == 0


def test_refusals(refusal):
    a, b, flags = drawn(2, 3, 5, 8), drawn(1, 4, 8, 12), drawn(2, 3, 1, 4)
    result = (2, 3, 1, 4, 5, 12)
    name = "sparse_matmul"
    message = refusal(name, [a[0], b, flags], result)
    assert "expected a of rank 4, found (3, 5, 8)" in message
    message = refusal(name, [drawn(2, 3, 5, 9), b, flags], result)
    assert "expected rows of 8 elements, as b has it, found (2, 3, 5, 9)" in message
    message = refusal(name, [a, drawn(2, 4, 8, 12), flags], result)
    assert "expected b to begin with 1, found (2, 4, 8, 12)" in message
    message = refusal(name, [a, b, drawn(2, 3, 4, 1)], result)
    assert "expected sparsity of 24 flags in rows of 4, found (2, 3, 4, 1)" in message
    message = refusal(name, [a, b, flags], (2, 3, 4, 5, 12))
    assert "expected a result of shape (2, 3, 1, 4, 5, 12), found (2, 3, 4, 5, 12)" in message
    message = refusal(name, [a, b, flags], result, is_input_b_sparse=False)
    assert "expected one of the inputs to be sparse" in message
    message = refusal(name, [a, b, flags], (2, 3, 5, 12), is_input_a_sparse=True)
    assert "expected 4 experts, as b has it, found (2, 3, 5, 8)" in message
    message = refusal(name, [a, b, flags], result, nnz=0)
    assert "expected an nnz of 1 or more, found 0" in message
