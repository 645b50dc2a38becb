"""Calls of TTNN that update operands: what comes after them reads the new tensors."""

from __future__ import annotations

import numpy as np
import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.frontends import source_module
from ttcodegen.numerics.interpreter import Interpreter

T, V = "tensor<1x1x32x64xf32>", "tensor<1x32x1x1xf32>"
X = "tensor<2x32x4x4xf32>"
STEP = f"""func.func @f(%p: {T}, %g: {T}, %m: {T}, %v: {T}) -> (RESULTS) {{
  "ttnn.adamw"(%p, %g, %m, %v) <{{lr = 0.1 : f32, beta1 = 0.9 : f32, beta2 = 0.99 : f32,
      beta1_pow = 0.9 : f32, beta2_pow = 0.99 : f32, epsilon = 1.0e-08 : f32,
      weight_decay = 0.01 : f32}}> : ({T}, {T}, {T}, {T}) -> ()
  return RETURNED
}}
"""
NORM = f"""func.func @f(%x: {X}, %mean: {V}, %variance: {V}OTHERS) -> ({X}, {V}, {V}) {{
  %0 = "ttnn.batch_norm_training"(%x, %mean, %variance NAMES) <{{momentum = 0.5 : f32,
      operandSegmentSizes = array<i32: 1, 1, 1, SIZES>}}> : ({X}, {V}, {V} TYPES) -> {X}
  return %0, %mean, %variance : {X}, {V}, {V}
}}
"""


def step(*returned: str) -> str:
    types = ", ".join([T] * len(returned))
    return STEP.replace("RESULTS", types).replace("RETURNED", f"{', '.join(returned)} : {types}")


def norm(*others: str) -> str:
    text = NORM.replace("OTHERS", "".join(f", {name}: {V}" for name in others))
    text = text.replace("NAMES", "".join(f", {name}" for name in others))
    sizes = ", ".join("1" if index < len(others) else "0" for index in range(2))
    return text.replace("SIZES", sizes).replace("TYPES", f", {V}" * len(others))


def run(text: str, *arrays: np.ndarray) -> list[np.ndarray]:
    flatbuffer = compile_module(Source("m.mlir", text), CompileOptions("m")).flatbuffer
    return list(Interpreter(read_ttnn(flatbuffer)).run("f", list(arrays)))


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_a_step_of_adamw_updates_the_parameter_and_the_moments() -> None:
    p, g, m = (drawn(seed, 1, 1, 32, 64) for seed in range(3))
    v = np.square(drawn(3, 1, 1, 32, 64))
    first, second = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    param = p - 0.1 * (first / 0.1) / (np.sqrt(second / 0.01) + 1e-8) - 0.1 * 0.01 * p
    found = run(step("%p", "%m", "%v"), p, g, m, v)
    for value, expected in zip(found, (param, first, second), strict=True):
        assert np.allclose(value, expected, rtol=1e-2, atol=1e-2)


def test_steps_follow_one_another() -> None:
    call = STEP[STEP.index('  "ttnn.adamw"') : STEP.index("  return")]
    arrays = [np.abs(drawn(seed, 1, 1, 32, 64)) for seed in range(4)]
    twice = run(step("%p", "%m", "%v").replace(call, call * 2), *arrays)
    p, m, v = run(step("%p", "%m", "%v"), *arrays)
    again = run(step("%p", "%m", "%v"), p, arrays[1], m, v)
    for value, expected in zip(twice, again, strict=True):
        assert np.allclose(value, expected, rtol=1e-2, atol=1e-2)


def test_arguments_whose_new_tensor_is_not_returned_are_reported() -> None:
    diagnostics = Diagnostics()
    source_module(Source("m.mlir", step("%p")), diagnostics)
    assert [found.message for found in diagnostics.warnings] == [
        "'ttnn.adamw' updates an argument that is not returned: the caller's tensor stays as it was"
    ] * 2


def test_a_step_without_its_moments_is_refused() -> None:
    text = (
        step("%p")
        .replace("(%p, %g, %m, %v)", "(%p, %g)")
        .replace(f"{T}, {T}, {T}, {T}", f"{T}, {T}")
    )
    with pytest.raises(CompileError, match=r"'ttnn.adamw' needs the operand 'exp_avg'"):
        source_module(Source("m.mlir", text))


@pytest.mark.parametrize("others", [(), ("%weight",), ("%weight", "%bias")])
def test_batch_norms_in_training_update_their_statistics(others: tuple[str, ...]) -> None:
    x, mean, variance = drawn(1, 2, 32, 4, 4), drawn(2, 1, 32, 1, 1), drawn(3, 1, 32, 1, 1) ** 2
    vectors = [drawn(4 + index, 1, 32, 1, 1) for index in range(len(others))]
    weight, bias = (*vectors, *[np.float32(1), np.float32(0)][len(others) :])
    own, squares = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    expected = (x - own) / np.sqrt(squares + 1e-5) * weight + bias
    found = run(norm(*others), x, mean, variance, *vectors)
    updated = (0.5 * (own + mean), 0.5 * (squares + variance))
    for value, wanted in zip(found, (expected, *updated), strict=True):
        assert np.allclose(value, wanted, rtol=2e-2, atol=2e-2)
