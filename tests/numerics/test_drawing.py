"""Inputs drawn by how they are used."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.numerics.sources import functions, parse
from ttcodegen.numerics.drawing import MASKED, depends_on_floats, draw_inputs


def draw(text: str, seed: int = 0, name: str = "f") -> dict[str, np.ndarray]:
    """The inputs of a function of a text."""
    module = parse(text)
    return draw_inputs(module, functions(module)[name], seed)


def unary(op: str, type_: str, attributes: str = "") -> np.ndarray:
    """The input of a function of one op."""
    text = f"""
    func.func @f(%x: {type_}) -> {type_} {{
      %0 = "ttir.{op}"(%x) {attributes} : ({type_}) -> {type_}
      return %0 : {type_}
    }}
    """
    return draw(text)["x"]


def test_types_and_shapes_are_those_of_the_source() -> None:
    for element, dtype in (
        ("f32", np.float32),
        ("bf16", ml_dtypes.bfloat16),
        ("f16", np.float16),
        ("f64", np.float64),
        ("i64", np.int64),
        ("ui8", np.uint8),
        ("i1", np.bool_),
    ):
        array = unary("abs" if element != "i1" else "logical_not", f"tensor<3x5x{element}>")
        assert array.dtype == dtype
        assert array.shape == (3, 5)
    assert unary("abs", "tensor<f32>").shape == ()
    assert unary("abs", "tensor<0x4xf32>").shape == (0, 4)


def test_values_are_those_that_the_device_can_hold() -> None:
    """f16 becomes bf16 there, f64 f32."""
    half = unary("abs", "tensor<1000xf16>")
    np.testing.assert_array_equal(half, half.astype(ml_dtypes.bfloat16).astype(np.float16))
    double = unary("abs", "tensor<1000xf64>")
    np.testing.assert_array_equal(double, double.astype(np.float32))


TWO = """
func.func @f(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = "ttir.add"(%x, %y) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
"""


def test_seed_function_and_name_decide() -> None:
    first, again, other = draw(TWO), draw(TWO), draw(TWO, seed=1)
    np.testing.assert_array_equal(first["x"], again["x"])
    assert (first["x"] != other["x"]).any()
    assert (first["x"] != first["y"]).any()
    # The order of arguments does not matter, their names do.
    swapped = draw(TWO.replace("%x: tensor<64x64xf32>, %y:", "%y: tensor<64x64xf32>, %x:"))
    np.testing.assert_array_equal(first["x"], swapped["x"])
    renamed = draw(TWO.replace("@f", "@g"), name="g")
    assert (first["x"] != renamed["x"]).any()


def test_domains() -> None:
    assert (unary("sqrt", "tensor<1000xf32>") > 0).all()
    assert (np.abs(unary("acos", "tensor<1000xbf16>").astype(np.float32)) < 1).all()


def test_domains_reach_through_movements_and_epsilons() -> None:
    text = """
    func.func @f(%variance_of_it: tensor<64xbf16>) -> tensor<1x64xf32> {
      %0 = "ttir.reshape"(%variance_of_it) <{shape = [1 : i32, 64 : i32]}>
          : (tensor<64xbf16>) -> tensor<1x64xbf16>
      %1 = "ttir.typecast"(%0) : (tensor<1x64xbf16>) -> tensor<1x64xf32>
      %e = "ttir.constant"() <{value = dense<1.0e-5> : tensor<1x1xf32>}> : () -> tensor<1x1xf32>
      %b = "ttir.broadcast"(%e) <{broadcast_dimensions = array<i64: 1, 64>}>
          : (tensor<1x1xf32>) -> tensor<1x64xf32>
      %2 = "ttir.add"(%1, %b) : (tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<1x64xf32>
      %3 = "ttir.rsqrt"(%2) : (tensor<1x64xf32>) -> tensor<1x64xf32>
      return %3 : tensor<1x64xf32>
    }
    """
    assert (draw(text)["variance_of_it"].astype(np.float32) > 0).all()


def test_weights_are_scaled_by_their_fan_in() -> None:
    text = """
    func.func @f(%x: tensor<4x1024xf32>, %w: tensor<256x1024xf32>) -> tensor<4x256xf32> {
      %0 = "ttir.permute"(%w) <{permutation = array<i64: 1, 0>}>
          : (tensor<256x1024xf32>) -> tensor<1024x256xf32>
      %1 = "ttir.matmul"(%x, %0)
          : (tensor<4x1024xf32>, tensor<1024x256xf32>) -> tensor<4x256xf32>
      return %1 : tensor<4x256xf32>
    }
    """
    drawn = draw(text)
    assert drawn["x"].std() == pytest.approx(1, rel=0.1)
    assert drawn["w"].std() == pytest.approx(1 / 32, rel=0.1)


def test_kernels_of_convolutions_are_scaled() -> None:
    text = """
    func.func @f(%x: tensor<1x8x8x16xf32>, %w: tensor<32x16x3x3xf32>) -> tensor<1x8x8x32xf32> {
      %1 = "ttir.conv2d"(%x, %w) <{stride = array<i32: 1, 1>, padding = array<i32: 1, 1, 1, 1>,
          dilation = array<i32: 1, 1>, groups = 1 : i32}>
          : (tensor<1x8x8x16xf32>, tensor<32x16x3x3xf32>) -> tensor<1x8x8x32xf32>
      return %1 : tensor<1x8x8x32xf32>
    }
    """
    assert draw(text)["w"].std() == pytest.approx(1 / 12, rel=0.1)


def test_sums_of_integers_fit_into_the_result() -> None:
    text = """
    func.func @f(%x: tensor<4x32xi8>, %w: tensor<32x9xi8>, %y: tensor<4x0xf32>,
                 %v: tensor<0x9xf32>) -> (tensor<4x9xi8>, tensor<4x9xf32>) {
      %0 = "ttir.matmul"(%x, %w) : (tensor<4x32xi8>, tensor<32x9xi8>) -> tensor<4x9xi8>
      %1 = "ttir.matmul"(%y, %v) : (tensor<4x0xf32>, tensor<0x9xf32>) -> tensor<4x9xf32>
      return %0, %1 : tensor<4x9xi8>, tensor<4x9xf32>
    }
    """
    drawn = draw(text)
    assert (drawn["x"].min(), drawn["x"].max()) == (-1, 1)
    assert drawn["y"].shape == (4, 0)


EMBEDDING = """
func.func private @look_up(%i: tensor<1x32xui32>, %t: tensor<11x8xf32>) -> tensor<1x32x8xf32> {
  %0 = "ttir.embedding"(%i, %t) : (tensor<1x32xui32>, tensor<11x8xf32>) -> tensor<1x32x8xf32>
  return %0 : tensor<1x32x8xf32>
}
func.func @f(%ids: tensor<32xi64>, %t: tensor<11x8xf32>) -> tensor<1x32x8xf32> {
  %0 = "ttir.reshape"(%ids) <{shape = [1 : i32, 32 : i32]}> : (tensor<32xi64>) -> tensor<1x32xi64>
  %1 = "ttir.typecast"(%0) : (tensor<1x32xi64>) -> tensor<1x32xui32>
  %2 = call @look_up(%1, %t) : (tensor<1x32xui32>, tensor<11x8xf32>) -> tensor<1x32x8xf32>
  return %2 : tensor<1x32x8xf32>
}
"""


def test_indices_lie_in_what_they_index() -> None:
    drawn = [draw(EMBEDDING, seed)["ids"] for seed in range(8)]
    assert {int(value) for array in drawn for value in array} == set(range(11))


def test_indices_that_are_floats() -> None:
    text = """
    func.func @f(%ids: tensor<1x64xbf16>, %t: tensor<512x8xbf16>) -> tensor<1x64x8xbf16> {
      %0 = "ttir.embedding"(%ids, %t)
          : (tensor<1x64xbf16>, tensor<512x8xbf16>) -> tensor<1x64x8xbf16>
      return %0 : tensor<1x64x8xbf16>
    }
    """
    ids = draw(text)["ids"].astype(np.float64)
    np.testing.assert_array_equal(ids, np.floor(ids))
    assert ids.min() >= 0
    assert 100 < ids.max() < 256


def test_indices_that_are_computed_from() -> None:
    text = """
    func.func @f(%at: tensor<1xi64>, %cache: tensor<1x1x5x2xf32>, %new: tensor<1x1x1x2xf32>)
        -> tensor<1x1x5x2xf32> {
      %zero = "ttir.constant"() <{value = dense<0> : tensor<1xi64>}> : () -> tensor<1xi64>
      %five = "ttir.constant"() <{value = dense<5> : tensor<1xi64>}> : () -> tensor<1xi64>
      %n = "ttir.lt"(%at, %zero) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi1>
      %w = "ttir.add"(%at, %five) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
      %i = "ttir.where"(%n, %w, %at)
          : (tensor<1xi1>, tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
      "ttir.update_cache"(%cache, %new, %i) <{batch_offset = 0 : i32}>
          : (tensor<1x1x5x2xf32>, tensor<1x1x1x2xf32>, tensor<1xi64>) -> ()
      return %cache : tensor<1x1x5x2xf32>
    }
    """
    values = {int(draw(text, seed)["at"][0]) for seed in range(60)}
    assert values == set(range(5))


def test_integers_are_small() -> None:
    signed = unary("relu", "tensor<1000xsi32>")
    assert (signed.min(), signed.max()) == (-8, 8)
    unsigned = unary("relu", "tensor<1000xui32>")
    assert (unsigned.min(), unsigned.max()) == (0, 8)


def test_integer_divisors_are_not_zero() -> None:
    text = TWO.replace("ttir.add", "ttir.div").replace("f32", "si32")
    assert (draw(text)["y"] >= 1).all()


MASK = """
func.func @f(%scores: tensor<8x64xf32>, %attention_mask: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %0 = "ttir.OP"(%scores, %attention_mask)
      : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}
"""


def test_masks_that_are_added() -> None:
    mask = draw(MASK.replace("OP", "add"))["attention_mask"]
    assert set(np.unique(mask)) == {MASKED, 0.0}
    assert (mask[:, 0] == 0).all()


def test_masks_that_are_multiplied() -> None:
    mask = draw(MASK.replace("OP", "multiply"))["attention_mask"]
    assert set(np.unique(mask)) == {0.0, 1.0}


def test_boolean_masks_leave_something_of_each_row() -> None:
    text = """
    func.func @f(%mask: tensor<64x3xi1>, %x: tensor<64x3xf32>) -> tensor<64x3xf32> {
      %0 = "ttir.where"(%mask, %x, %x)
          : (tensor<64x3xi1>, tensor<64x3xf32>, tensor<64x3xf32>) -> tensor<64x3xf32>
      return %0 : tensor<64x3xf32>
    }
    """
    mask = draw(text)["mask"]
    assert mask.any(axis=1).all()
    assert not mask.all()


def test_names_of_variances_and_frequencies() -> None:
    text = TWO.replace("%x", "%running_var").replace("%y", "%inv_freq")
    drawn = draw(text)
    assert (drawn["running_var"] > 0).all()
    frequencies = drawn["inv_freq"].reshape(-1)
    assert frequencies[0] == 1
    assert (np.diff(frequencies) < 0).all()


def test_large_arguments_are_drawn_in_parts() -> None:
    array = unary("abs", "tensor<5000x1000xbf16>").astype(np.float32)
    assert array.std() == pytest.approx(1, rel=0.01)
    parts = array.reshape(-1)
    assert (parts[:1000] != parts[1 << 22 : (1 << 22) + 1000]).any()


def test_outputs_that_depend_on_floats() -> None:
    text = """
    func.func private @compare(%x: tensor<4xf32>) -> tensor<4xi1> {
      %0 = "ttir.gt"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
      return %0 : tensor<4xi1>
    }
    func.func @f(%x: tensor<4xf32>, %i: tensor<4xi32>, %b: tensor<4xi1>)
        -> (tensor<4xi1>, tensor<4xi32>, tensor<4xi1>, tensor<4xf32>) {
      %0 = call @compare(%x) : (tensor<4xf32>) -> tensor<4xi1>
      %1 = "ttir.add"(%i, %i) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
      %2 = "ttir.logical_not"(%b) : (tensor<4xi1>) -> tensor<4xi1>
      return %0, %1, %2, %x : tensor<4xi1>, tensor<4xi32>, tensor<4xi1>, tensor<4xf32>
    }
    """
    module = parse(text)
    assert depends_on_floats(module, functions(module)["f"]) == [True, False, False, True]


def test_left_factors_are_scaled_where_the_right_ones_are_computed() -> None:
    square = "tensor<256x256xf32>"
    drawn = draw(f"""
    func.func @f(%a: {square}, %b: {square}, %c: {square}) -> {square} {{
      %0 = "ttir.matmul"(%a, %b) : ({square}, {square}) -> {square}
      %1 = "ttir.transpose"(%c) <{{dim0 = 0 : si32, dim1 = 1 : si32}}> : ({square}) -> {square}
      %2 = "ttir.matmul"(%1, %0) : ({square}, {square}) -> {square}
      return %2 : {square}
    }}
    """)
    scales = {name: round(float(array.std() * 16)) for name, array in drawn.items()}
    assert scales == {"a": 16, "b": 1, "c": 1}


def test_one_number_added_to_what_has_to_be_positive_is_small() -> None:
    drawn = draw("""
    func.func @f(%x: tensor<4x4xf32>, %e: tensor<1xf32>, %o: tensor<1xf32>) -> tensor<4x4xf32> {
      %0 = "ttir.multiply"(%x, %x) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %1 = "ttir.add"(%0, %e) : (tensor<4x4xf32>, tensor<1xf32>) -> tensor<4x4xf32>
      %2 = "ttir.rsqrt"(%1) : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %3 = "ttir.add"(%2, %o) : (tensor<4x4xf32>, tensor<1xf32>) -> tensor<4x4xf32>
      return %3 : tensor<4x4xf32>
    }
    """)
    assert 0 < drawn["e"][0] < 1e-4
    assert abs(drawn["o"][0]) > 1e-3


def test_what_becomes_unsigned_has_no_sign() -> None:
    drawn = draw("""
    func.func @f(%x: tensor<8x8xi32>, %y: tensor<8x8xi32>) -> (tensor<8x8xui16>, tensor<8x8xi32>) {
      %0 = "ttir.typecast"(%x) : (tensor<8x8xi32>) -> tensor<8x8xui16>
      %1 = "ttir.neg"(%y) : (tensor<8x8xi32>) -> tensor<8x8xi32>
      return %0, %1 : tensor<8x8xui16>, tensor<8x8xi32>
    }
    """)
    assert drawn["x"].min() >= 0
    assert drawn["y"].min() < 0
