"""Operations that are given a body, loops and branches, names and refusals."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from tests.frontends.stablehlo import imported, run_text
from tests.frontends.test_stablehlo_ops import FLOATS, INTEGERS, check
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.frontends import read_module


@pytest.mark.parametrize(
    ("name", "initial", "expected"),
    [
        ("add", "0.0", FLOATS.sum(1)),
        ("add", "2.0", FLOATS.sum(1) + 2),
        ("multiply", "1.0", FLOATS.prod(1)),
        ("maximum", "0xFF800000", FLOATS.max(1)),
        ("maximum", "0.5", np.maximum(FLOATS.max(1), 0.5)),
        ("minimum", "0x7F800000", FLOATS.min(1)),
    ],
)
def test_reductions(name: str, initial: str, expected: np.ndarray) -> None:
    text = f"""func.func @main(%x: tensor<3x4xf32>) -> tensor<3xf32> {{
      %c = stablehlo.constant dense<{initial}> : tensor<f32>
      %r = stablehlo.reduce(%x init: %c) applies stablehlo.{name} across dimensions = [1]
        : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
      return %r : tensor<3xf32>
    }}"""
    np.testing.assert_allclose(run_text(text, [FLOATS])[0], expected, rtol=1e-5)


def test_any_body_is_applied_to_pairs() -> None:
    """The product of 2x2 matrices of the form [[a, b], [0, 1]]: an affine recurrence."""
    text = """func.func @main(%a: tensor<5x3xf32>, %b: tensor<5x3xf32>)
        -> (tensor<3xf32>, tensor<3xf32>) {
      %one = stablehlo.constant dense<1.0> : tensor<f32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %r:2 = stablehlo.reduce(%a init: %one), (%b init: %zero) across dimensions = [0]
        : (tensor<5x3xf32>, tensor<5x3xf32>, tensor<f32>, tensor<f32>)
        -> (tensor<3xf32>, tensor<3xf32>)
        reducer(%p: tensor<f32>, %r: tensor<f32>) (%q: tensor<f32>, %s: tensor<f32>) {
          %0 = stablehlo.multiply %p, %r : tensor<f32>
          %1 = stablehlo.multiply %q, %r : tensor<f32>
          %2 = stablehlo.add %1, %s : tensor<f32>
          stablehlo.return %0, %2 : tensor<f32>, tensor<f32>
        }
      return %r#0, %r#1 : tensor<3xf32>, tensor<3xf32>
    }"""
    a, b = (np.random.default_rng(i).normal(size=(5, 3)).astype(np.float32) for i in (1, 2))
    total, value = np.ones(3), np.zeros(3)
    for row in range(5):
        total, value = total * a[row], value * a[row] + b[row]
    found = run_text(text, [a, b])
    np.testing.assert_allclose(found[0], total, rtol=1e-4)
    np.testing.assert_allclose(found[1], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("direction", "meaning"), [("GE", np.argmax), ("LE", np.argmin)])
def test_argmax_in_the_spelling_of_xla(direction: str, meaning: object) -> None:
    limit = "0xFF800000" if direction == "GE" else "0x7F800000"
    pick = "minimum"
    text = f"""func.func @main(%x: tensor<3x4xf32>) -> (tensor<3xf32>, tensor<3xi32>) {{
      %i = stablehlo.iota dim = 1 : tensor<3x4xi32>
      %c = stablehlo.constant dense<{limit}> : tensor<f32>
      %z = stablehlo.constant dense<0> : tensor<i32>
      %r:2 = stablehlo.reduce(%x init: %c), (%i init: %z) across dimensions = [1]
        : (tensor<3x4xf32>, tensor<3x4xi32>, tensor<f32>, tensor<i32>)
        -> (tensor<3xf32>, tensor<3xi32>)
        reducer(%a: tensor<f32>, %b: tensor<f32>) (%j: tensor<i32>, %k: tensor<i32>) {{
          %0 = stablehlo.compare {direction}, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          %1 = stablehlo.select %0, %a, %b : tensor<i1>, tensor<f32>
          %2 = stablehlo.compare EQ, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          %3 = stablehlo.{pick} %j, %k : tensor<i32>
          %4 = stablehlo.select %0, %j, %k : tensor<i1>, tensor<i32>
          %5 = stablehlo.select %2, %3, %4 : tensor<i1>, tensor<i32>
          stablehlo.return %1, %5 : tensor<f32>, tensor<i32>
        }}
      return %r#0, %r#1 : tensor<3xf32>, tensor<3xi32>
    }}"""
    values, places = run_text(text, [FLOATS])
    np.testing.assert_array_equal(places, meaning(FLOATS, 1))  # pyright: ignore
    np.testing.assert_array_equal(values, FLOATS[range(3), places])
    names = {op.name for op in imported(text).walk()}
    assert "ttir.argmax" in names


def windows(body: str, **attributes: str) -> str:
    return (
        '"stablehlo.reduce_window"({operands}) <{'
        + ", ".join(f"{name} = {value}" for name, value in attributes.items())
        + "}> ({ ^bb0(%p: tensor<f32>, %q: tensor<f32>): "
        + f"%s = stablehlo.{body} %p, %q : tensor<f32> stablehlo.return %s : tensor<f32> }})"
        + " : {types}"
    )


@pytest.mark.parametrize(("body", "initial"), [("maximum", -np.inf), ("add", 0.0)])
def test_pooling_with_padding(body: str, initial: float) -> None:
    x = np.random.default_rng(4).normal(size=(2, 5, 6, 3)).astype(np.float32)
    wide = np.pad(x, ((0, 0), (1, 0), (0, 1), (0, 0)), constant_values=initial)
    reduce = np.max if body == "maximum" else np.sum
    expected = np.stack(
        [
            np.stack([reduce(wide[:, i : i + 2, j : j + 3], axis=(1, 2)) for j in (0, 2, 4)], 1)
            for i in (0, 2, 4)
        ],
        1,
    )
    form = windows(
        body,
        window_dimensions="array<i64: 1, 2, 3, 1>",
        window_strides="array<i64: 1, 2, 2, 1>",
        padding="dense<[[0, 0], [1, 0], [0, 1], [0, 0]]> : tensor<4x2xi64>",
    )
    known = f"stablehlo.constant dense<{'0xFF800000' if body == 'maximum' else '0.0'}>"
    form = form.replace("{operands}", "%x0, %c")
    text_form = known + " : tensor<f32>\n      %r = " + form
    types = "(tensor<2x5x6x3xf32>, tensor<f32>) -> tensor<2x3x3x3xf32>"
    text = f"""func.func @main(%x0: tensor<2x5x6x3xf32>) -> tensor<2x3x3x3xf32> {{
      %c = {text_form.replace("{types}", types)}
      return %r : tensor<2x3x3x3xf32>
    }}"""
    np.testing.assert_allclose(run_text(text, [x])[0], expected, rtol=1e-5, atol=1e-5)


def test_sort_by_two_keys_takes_the_rest_along() -> None:
    text = """func.func @main(%a: tensor<8xi32>, %b: tensor<8xf32>, %c: tensor<8xf32>)
        -> (tensor<8xi32>, tensor<8xf32>, tensor<8xf32>) {
      %r:3 = "stablehlo.sort"(%a, %b, %c) <{dimension = 0 : i64, is_stable = true}> ({
        ^bb0(%p: tensor<i32>, %q: tensor<i32>, %s: tensor<f32>, %t: tensor<f32>,
             %u: tensor<f32>, %v: tensor<f32>):
          %0 = stablehlo.compare LT, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>
          %1 = stablehlo.compare EQ, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>
          %2 = stablehlo.compare GT, %s, %t : (tensor<f32>, tensor<f32>) -> tensor<i1>
          %3 = stablehlo.and %1, %2 : tensor<i1>
          %4 = stablehlo.or %0, %3 : tensor<i1>
          stablehlo.return %4 : tensor<i1>
      }) : (tensor<8xi32>, tensor<8xf32>, tensor<8xf32>)
        -> (tensor<8xi32>, tensor<8xf32>, tensor<8xf32>)
      return %r#0, %r#1, %r#2 : tensor<8xi32>, tensor<8xf32>, tensor<8xf32>
    }"""
    a = np.asarray([2, 1, 2, 0, 1, 2, 0, 1], np.int32)
    b = np.asarray([3, 1, 4, 1, 5, 9, 2, 6], np.float32)
    c = np.arange(8, dtype=np.float32)
    order = np.lexsort((-b, a))
    for got, want in zip(run_text(text, [a, b, c]), (a, b, c), strict=True):
        np.testing.assert_array_equal(got, want[order])


def test_loops_of_known_length_are_unrolled() -> None:
    text = """func.func @main(%x: tensor<3x4xf32>) -> tensor<4xf32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %sum = stablehlo.constant dense<0.0> : tensor<4xf32>
      %r:2 = stablehlo.while(%i = %zero, %s = %sum) : tensor<i32>, tensor<4xf32>
        cond {
          %n = stablehlo.constant dense<3> : tensor<i32>
          %0 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %0 : tensor<i1>
        } do {
          %row = stablehlo.dynamic_slice %x, %i, %zero, sizes = [1, 4]
            : (tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
          %flat = stablehlo.reshape %row : (tensor<1x4xf32>) -> tensor<4xf32>
          %t = stablehlo.add %s, %flat : tensor<4xf32>
          %one = stablehlo.constant dense<1> : tensor<i32>
          %j = stablehlo.add %i, %one : tensor<i32>
          stablehlo.return %j, %t : tensor<i32>, tensor<4xf32>
        }
      return %r#1 : tensor<4xf32>
    }"""
    np.testing.assert_allclose(run_text(text, [FLOATS])[0], FLOATS.sum(0), rtol=1e-5)


@pytest.mark.parametrize("flag", [True, False])
def test_branches_are_selected_at_run_time(flag: bool) -> None:
    text = """func.func @main(%p: tensor<i1>, %x: tensor<3x4xf32>) -> tensor<3x4xf32> {
      %r = "stablehlo.if"(%p) ({
        %0 = stablehlo.negate %x : tensor<3x4xf32>
        stablehlo.return %0 : tensor<3x4xf32>
      }, {
        stablehlo.return %x : tensor<3x4xf32>
      }) : (tensor<i1>) -> tensor<3x4xf32>
      return %r : tensor<3x4xf32>
    }"""
    found = run_text(text, [np.asarray(flag), FLOATS])[0]
    np.testing.assert_array_equal(found, -FLOATS if flag else FLOATS)


def test_gather_of_columns() -> None:
    form = (
        '"stablehlo.gather"({operands}) <{dimension_numbers = #stablehlo.gather<offset_dims = [0],'
        " collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>,"
        " slice_sizes = array<i64: 3, 1>}> : {types}"
    )
    index = np.asarray([3, 0, 9, -2], np.int32)
    check(form, [FLOATS, index], FLOATS[:, np.clip(index, 0, 3)])


@pytest.mark.parametrize("asked", [("GE", "LE"), ("EQ", "EQ")])
def test_gather_of_rows_outside_the_table(asked: tuple[str, str]) -> None:
    """They are the nearest ones, also where others take their place: none is read outside."""
    text = f"""func.func @main(%t: tensor<3x4xf32>, %i: tensor<5x1xi32>) -> tensor<5x4xf32> {{
      %first = stablehlo.constant dense<0> : tensor<5x1xi32>
      %last = stablehlo.constant dense<2> : tensor<5x1xi32>
      %0 = stablehlo.compare {asked[0]}, %i, %first : (tensor<5x1xi32>, tensor<5x1xi32>) -> tensor<5x1xi1>
      %1 = stablehlo.compare {asked[1]}, %i, %last : (tensor<5x1xi32>, tensor<5x1xi32>) -> tensor<5x1xi1>
      %2 = stablehlo.and %0, %1 : tensor<5x1xi1>
      %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<5x1xi1>) -> tensor<5x4xi1>
      %4 = "stablehlo.gather"(%t, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}}> : (tensor<3x4xf32>, tensor<5x1xi32>) -> tensor<5x4xf32>
      %5 = stablehlo.constant dense<7.0> : tensor<5x4xf32>
      %6 = stablehlo.select %3, %4, %5 : tensor<5x4xi1>, tensor<5x4xf32>
      return %6 : tensor<5x4xf32>
    }}"""  # noqa: E501
    assert "ttir.clamp_scalar" in [op.name for op in imported(text).walk()]
    index = np.asarray([[3], [0], [9], [-2], [1]], np.int32)
    (found,) = run_text(text.replace("return %6", "return %4"), [FLOATS[:, :4], index])
    np.testing.assert_array_equal(found, FLOATS[np.clip(index[:, 0], 0, 2), :4])


def test_complex_numbers_are_pairs() -> None:
    text = """func.func @main(%x: tensor<2x3xcomplex<f32>>, %y: tensor<2x3xcomplex<f32>>)
        -> tensor<2x3xcomplex<f32>> {
      %c = stablehlo.constant dense<(1.0, -2.0)> : tensor<2x3xcomplex<f32>>
      %0 = stablehlo.multiply %x, %y : tensor<2x3xcomplex<f32>>
      %1 = stablehlo.divide %0, %c : tensor<2x3xcomplex<f32>>
      return %1 : tensor<2x3xcomplex<f32>>
    }"""
    x, y = (np.random.default_rng(i).normal(size=(2, 3, 2)).astype(np.float32) for i in (1, 2))
    expected = (x[..., 0] + 1j * x[..., 1]) * (y[..., 0] + 1j * y[..., 1]) / (1 - 2j)
    found = run_text(text, [x, y])[0]
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], expected, rtol=1e-4)


PLACES = np.asarray(
    [0, 1, -1, 1j, -1j, 2, -2, 2j, -2j, 0.5 + 1e-3j, 1 + 1e-3j, -1 - 1e-3j, 3 - 4j, -7 + 0.5j, 30]
)
"""Complex numbers beside the branch points of inverse functions, and on their cuts."""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("chlo.sinh", np.sinh),
        ("chlo.cosh", np.cosh),
        ("chlo.tan", np.tan),
        ("chlo.asin", np.arcsin),
        ("chlo.acos", np.arccos),
        ("chlo.atan", np.arctan),
        ("chlo.asinh", np.arcsinh),
        ("chlo.acosh", np.arccosh),
        ("chlo.atanh", np.arctanh),
        ("stablehlo.sign", np.sign),
    ],
)
def test_functions_of_complex_numbers(name: str, expected: Callable[..., np.ndarray]) -> None:
    with np.errstate(all="ignore"):
        wanted = expected(PLACES)
    finite = np.isfinite(wanted)
    x = np.stack([PLACES.real, PLACES.imag], -1).astype(np.float32)[finite]
    type_ = f"tensor<{len(x)}xcomplex<f32>>"
    result = f"{name} %x : {type_} -> {type_}" if "chlo" in name else f"{name} %x : {type_}"
    text = f"func.func @main(%x: {type_}) -> {type_} {{ %0 = {result} return %0 : {type_} }}"
    (found,) = run_text(text, [x])
    np.testing.assert_allclose(found[:, 0] + 1j * found[:, 1], wanted[finite], rtol=1e-4, atol=1e-5)


def test_complex_numbers_are_added_along_a_dimension() -> None:
    text = """func.func @main(%x: tensor<4x3xcomplex<f32>>) -> tensor<4x3xcomplex<f32>> {
      %c = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
      %0 = "stablehlo.reduce_window"(%x, %c) <{
        padding = dense<[[3, 0], [0, 0]]> : tensor<2x2xi64>,
        window_dimensions = array<i64: 4, 1>
      }> ({
      ^bb0(%a: tensor<complex<f32>>, %b: tensor<complex<f32>>):
        %1 = stablehlo.add %a, %b : tensor<complex<f32>>
        stablehlo.return %1 : tensor<complex<f32>>
      }) : (tensor<4x3xcomplex<f32>>, tensor<complex<f32>>) -> tensor<4x3xcomplex<f32>>
      return %0 : tensor<4x3xcomplex<f32>>
    }"""
    x = np.random.default_rng(2).normal(size=(4, 3, 2)).astype(np.float32)
    np.testing.assert_allclose(run_text(text, [x])[0], x.cumsum(0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("body", ["%x", "%0"])
def test_complex_numbers_go_through(body: str) -> None:
    type_ = "tensor<2xcomplex<f32>>"
    op = "" if body == "%x" else f"%0 = stablehlo.bitcast_convert %x : ({type_}) -> {type_}"
    text = f"func.func @main(%x: {type_}) -> {type_} {{ {op} return {body} : {type_} }}"
    x = np.asarray([[1, 2], [3, -4]], np.float32)
    np.testing.assert_array_equal(run_text(text, [x])[0], x)


def refusal(text: str) -> str:
    source = Source("in.mlir", text)
    with pytest.raises(CompileError) as caught:
        read_module(source, Diagnostics())
    return caught.value.render(source)


def test_refusals_are_reported_at_once_and_located() -> None:
    text = refusal(
        """func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @unknown.thing(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("m.py":7:3)
  %1 = stablehlo.custom_call @xla_python_cpu_callback(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = stablehlo.add %0, %1 : tensor<4xf32>
  %3 = "stablehlo.cholesky"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}"""
    )
    assert "in.mlir:2:8: error: the custom call '@unknown.thing' is not supported" in text
    # Frameworks count columns from 0.
    assert "m.py:7:4: note: it comes from here" in text
    assert "in.mlir:3:8: error: 'stablehlo.custom_call' has a side effect" in text
    assert "in.mlir:5:8: error: 'stablehlo.cholesky': the first operand has to be a square" in text
    assert text.count("error:") == 3


def test_shapes_of_run_time_are_refused_where_they_come_in() -> None:
    text = refusal(
        """func.func @main(%x: tensor<?x4xf32>, %y: tensor<4xf32>) -> tensor<?x4xf32> {
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
  %1 = stablehlo.add %x, %x : tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}"""
    )
    assert "in.mlir:1:17: error: tensors of unknown size are not supported: tensor<?x4xf32>" in text
    assert "note: export the model for inputs of fixed shapes" in text
    assert text.count("error:") == 1


def test_comparators_that_are_no_order_are_refused() -> None:
    text = refusal(
        """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.multiply %a, %b : tensor<f32>
    %2 = stablehlo.compare GT, %1, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }) {dimension = 0 : i64, is_stable = true} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
    )
    assert "in.mlir:2:8: error: 'stablehlo.sort': the comparator is no order" in text
    assert "note: compare elements of the operands themselves" in text


def test_loops_whose_trip_count_depends_on_an_argument_run() -> None:
    (found,) = run_text(
        """func.func @main(%n: tensor<i32>) -> tensor<i32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %r = stablehlo.while(%i = %z) : tensor<i32> cond {
    %0 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %0 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j : tensor<i32>
  }
  return %r : tensor<i32>
}""",
        [np.array(7, np.int32)],
    )
    assert found == 7


def test_integers() -> None:
    check("stablehlo.convert {operands} : {types}", [INTEGERS], INTEGERS.astype(np.float32))


def test_bfloat16_is_known_in_a_process_of_its_own() -> None:
    """Nothing else may have configured numpy for it."""
    program = (
        "from ttcodegen.foundation.diagnostics import Source\n"
        "from ttcodegen.frontends import read_module\n"
        "read_module(Source('in.mlir', '''func.func @main(%x: tensor<8xbf16>) -> tensor<8xbf16> {\n"
        '  %r = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({\n'
        "    ^bb0(%p: tensor<bf16>, %q: tensor<bf16>):\n"
        "      %0 = stablehlo.compare LT, %p, %q : (tensor<bf16>, tensor<bf16>) -> tensor<i1>\n"
        "      stablehlo.return %0 : tensor<i1>\n"
        "  }) : (tensor<8xbf16>) -> tensor<8xbf16>\n"
        "  %s = stablehlo.round_nearest_even %r : tensor<8xbf16>\n"
        "  return %s : tensor<8xbf16>\n"
        "}'''))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
