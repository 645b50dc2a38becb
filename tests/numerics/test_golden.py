"""The source program in numpy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.numerics.sources import parse
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.numerics.golden_values import Golden


def unary(name: str, argument: str, result: str | None = None) -> Golden:
    """A function of one op."""
    result = result or argument
    return Golden(
        parse(
            f"func.func @f(%a: {argument}) -> {result} {{\n"
            f'  %0 = "ttir.{name}"(%a) : ({argument}) -> {result}\n  return %0 : {result}\n}}'
        )
    )


def test_bf16_is_not_rounded() -> None:
    (output,) = unary("exp", "tensor<3xbf16>").run("f", [np.array([0.1, 0.2, 0.3], np.float32)])
    assert output.dtype == np.float32
    np.testing.assert_allclose(output, np.exp([0.1, 0.2, 0.3]), rtol=1e-6)


def test_float64_is_computed_in_float64() -> None:
    (output,) = unary("exp", "tensor<1xf64>").run("f", [np.array([0.1])])
    assert output.dtype == np.float64
    assert output[0] == np.exp(0.1)


def test_booleans_are_bool() -> None:
    (output,) = unary("logical_not", "tensor<2xi1>").run("f", [np.array([True, False])])
    assert output.dtype == np.bool_
    assert output.tolist() == [False, True]


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [("i8", 100, -112), ("ui8", 200, 64), ("i64", 2**62, 0), ("si32", 2**30, 0)],
)
def test_integers_wrap_in_their_own_width(type_: str, value: int, expected: int) -> None:
    text = f"tensor<1x{type_}>"
    four = parse(
        f"func.func @f(%a: {text}) -> {text} {{\n"
        f'  %0 = "ttir.constant"() <{{value = dense<4> : {text}}}> : () -> {text}\n'
        f'  %1 = "ttir.multiply"(%a, %0) : ({text}, {text}) -> {text}\n  return %1 : {text}\n}}'
    )
    (output,) = Golden(four).run("f", [np.array([value])])
    factor = expected if type_ in ("i64", "si32") else None
    width = output.dtype.itemsize * 8
    wrapped = value * 4 % 2**width
    assert int(output[0]) % 2**width == wrapped
    assert factor is None or int(output[0]) == factor


def test_inputs_of_any_dtype_are_converted() -> None:
    runner = unary("neg", "tensor<2xf32>")
    for dtype in (ml_dtypes.bfloat16, np.float64, np.int32):
        (output,) = runner.run("f", [np.array([1, 2], dtype)])
        assert output.dtype == np.float32
        assert output.tolist() == [-1, -2]


CALLS = """
func.func private @square(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "ttir.multiply"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = call @square(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @square(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
"""


def test_calls() -> None:
    first, second = Golden(parse(CALLS)).run("main", [np.array([2.0, 3.0])])
    assert first.tolist() == [4, 9]
    assert second.tolist() == [16, 81]


CACHE = """
func.func @main(%cache: tensor<1x1x4x2xf32>, %entry: tensor<1x1x1x2xf32>, %at: tensor<1xi32>)
    -> (tensor<4x2xf32>, tensor<1x1x4x2xf32>) {
  %0 = "ttir.reshape"(%cache) <{shape = [4 : i32, 2 : i32]}>
      : (tensor<1x1x4x2xf32>) -> tensor<4x2xf32>
  "ttir.update_cache"(%cache, %entry, %at) <{batch_offset = 0 : i32}>
      : (tensor<1x1x4x2xf32>, tensor<1x1x1x2xf32>, tensor<1xi32>) -> ()
  return %0, %cache : tensor<4x2xf32>, tensor<1x1x4x2xf32>
}
"""


def test_updates_in_place() -> None:
    cache = np.zeros((1, 1, 4, 2), np.float32)
    before, after = Golden(parse(CACHE)).run(
        "main", [cache, np.ones((1, 1, 1, 2), np.float32), np.array([2])]
    )
    assert not before.any()
    assert not cache.any()
    assert after[0, 0, :, 0].tolist() == [0, 0, 1, 0]


def test_observer_sees_the_ops_of_callees() -> None:
    seen: list[str] = []
    module = parse(CALLS)
    Golden(module, lambda observation: seen.append(observation.step.name)).run("main", [np.ones(2)])
    assert seen == ["ttir.multiply", "func.call"] * 2


def test_splats_are_not_expanded() -> None:
    big = "tensor<200000x200000xbf16>"
    runner = Golden(
        parse(
            f"func.func @f() -> {big} {{\n"
            f'  %0 = "ttir.constant"() <{{value = dense<1.5> : {big}}}> : () -> {big}\n'
            f"  return %0 : {big}\n}}"
        )
    )
    (output,) = runner.run("f", [])
    assert output.strides == (0, 0)
    assert output[3, 4] == 1.5


def test_endless_recursion() -> None:
    text = """
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = call @f(%x) : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }
    """
    with pytest.raises(CompileError, match="'f' calls itself"):
        Golden(parse(text)).run("f", [np.ones(2)])


def test_ops_without_meaning() -> None:
    text = """
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "other.op"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }
    """
    with pytest.raises(CompileError, match=r"'other\.op' cannot be computed on the host"):
        Golden(parse(text))
