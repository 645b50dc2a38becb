"""Tolerances of outputs against golden values."""

from __future__ import annotations

import math
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.comparison import compare
from ttcodegen.numerics.interpreter import Interpreter
from ttcodegen.numerics.lowered import interpreter_of, read_flatbuffer, with_expected_places
from ttcodegen.numerics.tolerances import (
    EQUAL,
    FEW_BITS,
    MATRIX_ENGINE,
    SIXTEEN_BITS,
    VECTOR_ENGINE,
    Tolerance,
    saturation_of,
    squeezed,
    usually,
)
from ttcodegen.project.checking import check_function, run_in_numpy

EXP = '%0 = "ttir.exp"(%x) : (tensor<32x32xf32>) -> tensor<32x32xf32>'
TANH = EXP.replace("exp", "tanh").replace("%x", "%e")
ARGMAX = (
    '%r = "ttnn.to_layout"(%e) <{layout = #ttnn.layout<row_major>}> '
    ": (tensor<32x32xf32>) -> tensor<32x32xf32>\n"
    '%0 = "ttnn.argmax"(%r) <{dim = 1 : i32, keep_dim = true}> '
    ": (tensor<32x32xf32>) -> tensor<32x1xui32>"
)
SHAPED_TANH = (
    '%t = "ttir.tanh"(%x) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>\n'
    '%0 = "ttir.reshape"(%t) <{shape = [1 : i32, 1024 : i32]}> '
    ": (tensor<32x32xbf16>) -> tensor<1x1024xbf16>"
)
GELU_OF_TANH = (
    '%t = "ttir.tanh"(%x) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>\n'
    '%0 = "ttir.gelu"(%t) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>'
)
SOFTMAX = (
    '%0 = "ttir.softmax"(%x) <{dimension = 1 : i32}> : (tensor<32x32xf32>) -> tensor<32x32xf32>'
)

APPROXIMATE_SOFTMAX = (
    '%0 = "ttnn.softmax"(%x) <{dimension = 1 : si32, compute_config = '
    "#ttnn.device_compute_kernel_config<math_fidelity = hifi4, math_approx_mode = true>}> "
    ": (tensor<32x32xbf16>) -> tensor<32x32xbf16>"
)


def configured(fidelity: str, wide_sums: bool) -> str:
    return (
        '%0 = "ttnn.sum"(%x) <{dim_arg = array<i32: 1>, keep_dim = true, compute_config = '
        f"#ttnn.device_compute_kernel_config<math_fidelity = {fidelity}, math_approx_mode = false, "
        f"fp32_dest_acc_en = {str(wide_sums).lower()}>}}> "
        ": (tensor<32x32xf32>) -> tensor<32x1xf32>"
    )


ATTENTION = (
    '%q = "ttnn.reshape"(%x) <{shape = [1 : i32, 1 : i32, 32 : i32, 32 : i32]}> '
    ": (tensor<32x32xbf16>) -> tensor<1x1x32x32xbf16>\n"
    '%0 = "ttnn.scaled_dot_product_attention"(%q, %q, %q) <{is_causal = false, '
    "operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> : (tensor<1x1x32x32xbf16>, "
    "tensor<1x1x32x32xbf16>, tensor<1x1x32x32xbf16>) -> tensor<1x1x32x32xbf16>"
)
NARROWED = (
    '%n = "ttir.typecast"(%x) : (tensor<32x32xf32>) -> tensor<32x32xbf16>\n'
    '%0 = "ttir.typecast"(%n) : (tensor<32x32xbf16>) -> tensor<32x32xf32>'
)


def usual(tolerance: Tolerance, name: str) -> Tolerance:
    """That of what a saturating function makes of operands as they usually are."""
    return usually(squeezed(tolerance, saturation_of(name, {})))


@pytest.mark.parametrize(
    ("body", "result", "expected"),
    [
        (EXP, "f32", VECTOR_ENGINE),
        (SOFTMAX, "f32", MATRIX_ENGINE),
        (EXP.replace("f32", "bf16"), "bf16", SIXTEEN_BITS),
        (SOFTMAX.replace("f32", "bf16"), "bf16", SIXTEEN_BITS),
        (APPROXIMATE_SOFTMAX, "bf16", FEW_BITS),
        (configured("lofi", True), "f32", FEW_BITS),
        (configured("hifi2", True), "f32", SIXTEEN_BITS),
        (configured("hifi4", False), "f32", SIXTEEN_BITS),
        (configured("hifi3", True), "f32", MATRIX_ENGINE),
        (NARROWED, "f32", SIXTEEN_BITS),
        (EXP.replace("exp", "abs").replace("f32", "i32"), "i32", EQUAL),
        (ATTENTION, "bf16", FEW_BITS),
        # Sums of a few units come before what saturates at one.
        (EXP.replace("exp", "tanh").replace("f32", "bf16"), "bf16", usual(SIXTEEN_BITS, "tanh")),
        (EXP.replace("exp", "sigmoid"), "f32", usual(VECTOR_ENGINE, "sigmoid")),
        (GELU_OF_TANH, "bf16", SIXTEEN_BITS),
        (SHAPED_TANH, "bf16", usual(SIXTEEN_BITS, "tanh")),
    ],
)
def test_tolerances_follow_from_what_an_output_is_computed_of(
    body: str, result: str, expected: Tolerance
) -> None:
    type_ = body.rpartition("-> ")[2]
    text = (
        f"func.func @f(%x: tensor<32x32x{result}>) -> {type_} {{\n{body}\nreturn %0 : {type_}\n}}\n"
    )
    compiled = compile_module(Source("t.mlir", text), CompileOptions("m"))
    (output,) = compiled.description.functions[0].outputs
    assert output.tolerance == expected


MATMUL = (
    '{result} = "ttnn.matmul"({a}, %w) <{{compute_config = #ttnn.device_compute_kernel_config<'
    "math_fidelity = lofi, math_approx_mode = false, fp32_dest_acc_en = true>}}> "
    ": (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>"
)
PERMUTE = (
    '%p = "ttnn.permute"(%x) <{permutation = array<i64: 1, 0>}> '
    ": (tensor<32x32xf32>) -> tensor<32x32xf32>"
)


def product(operand: str) -> str:
    return MATMUL.format(result="%0", a=operand)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (EXP, VECTOR_ENGINE),
        # What is cut to few bits is the same in both runs, but for what was computed before.
        (product("%x"), MATRIX_ENGINE),
        (f"{PERMUTE}\n{product('%p')}", MATRIX_ENGINE),
        (EXP.replace("%0", "%e") + "\n" + product("%e"), FEW_BITS),
        (NARROWED, VECTOR_ENGINE),
        (f"{EXP.replace('%0', '%e')}\n{TANH}", squeezed(VECTOR_ENGINE, saturation_of("tanh", {}))),
        (f"{EXP.replace('%0', '%e')}\n{ARGMAX}", EQUAL),
        (ARGMAX.replace("%e", "%x"), EQUAL),
        (EXP.replace("%0", "%e") + "\n" + NARROWED.replace("%x", "%e"), SIXTEEN_BITS),
    ],
)
def test_runs_of_one_program_are_held_together_as_closely_as_the_engines_let_them(
    body: str, expected: Tolerance
) -> None:
    square, result = "tensor<32x32xf32>", body.rpartition("-> ")[2]
    text = (
        f"func.func @f(%x: {square}, %w: {square}) -> {result} {{\n"
        f"{body.replace('ttir.', 'ttnn.')}\n"
        f"return %0 : {result}\n}}\n"
    )
    compiled = compile_module(Source("t.mlir", text), CompileOptions("m"))
    interpreter = Interpreter(read_ttnn(compiled.flatbuffer))
    assert interpreter.output_tolerances("f") == [expected]


@pytest.mark.parametrize(
    ("name", "values", "part"),
    [
        ("tanh", [-0.01, 0.0, 0.01], 1.0),
        ("tanh", [-0.964, 0.0, 0.964], 2.075),  # of operands between -2 and 2
        ("sigmoid", [0.119, 0.5, 0.881], 1.313),
        ("hardsigmoid", [0.0, 0.5, 1.0], 1.0),
    ],
)
def test_errors_before_a_saturating_function_are_parts_of_the_range_there(
    name: str, values: list[float], part: float
) -> None:
    """The operand's range follows from that of the result; 2 % of it may be wrong, and reaches the
    result where the function is steepest."""
    expected = np.array(values, np.float32)
    tolerance = squeezed(SIXTEEN_BITS, saturation_of(name, {}))
    allowed = 0.02 * part * float(expected.max() - expected.min())
    for error, passes in ((0.99 * allowed, True), (1.02 * allowed, False)):
        actual = expected + np.array([0, error, 0], np.float32)
        assert compare(actual, expected, replace(tolerance, correlation=0.0)).passed == passes


def test_places_of_values_as_large_as_the_chosen_ones_are_right() -> None:
    """The maximum of one run may be slightly below another element in the other run."""
    square = "tensor<32x32xf32>"
    body = f"{EXP.replace('%0', '%e')}\n{ARGMAX}".replace("ttir.", "ttnn.")
    text = (
        f"func.func @f(%x: {square}) -> tensor<32x1xui32> {{\n{body}\n"
        "return %0 : tensor<32x1xui32>\n}\n"
    )
    binary = read_ttnn(compile_module(Source("t.mlir", text), CompileOptions("m")).flatbuffer)
    values = np.zeros((32, 32), np.float32)
    values[:, 5], values[:, 7], values[:, 9] = 1.0, 0.9999, 0.9
    (expected,) = Interpreter(binary).run("f", [values])
    assert (expected == 5).all()
    actual = expected.copy()
    actual[0], actual[1], actual[2] = 7, 9, 40  # as large; smaller; outside
    (found,) = with_expected_places(binary, "f", [values], [expected], {0: actual}).values()
    assert found is not None
    assert (found == actual).all()  # nothing is said of places that there are not
    actual[2] = 5
    (found,) = with_expected_places(binary, "f", [values], [expected], {0: actual}).values()
    assert found is not None
    assert (found != expected).nonzero()[0].tolist() == [1]
    assert with_expected_places(binary, "f", [values], [expected], {0: None}) == {0: None}


def test_places_that_programs_of_the_device_choose_are_right_likewise() -> None:
    square, row = "tensor<2x32x64xf32>", "tensor<2x32xi32>"
    text = f"""
func.func @f(%x: {square}, %y: {square}) -> ({row}, {row}) {{
  %e = "ttir.exp"(%x) : ({square}) -> {square}
  %0 = "ttir.argmax"(%e) <{{dim_arg = [2 : i32], keep_dim = false}}> : ({square}) -> {row}
  %1 = "ttir.argmax"(%y) <{{dim_arg = [2 : i32], keep_dim = false}}> : ({square}) -> {row}
  return %0, %1 : {row}, {row}
}}
"""
    options = CompileOptions("m", target="ttmetal")
    binary = read_flatbuffer(compile_module(Source("t.mlir", text), options).flatbuffer)
    values = np.zeros((2, 32, 64), np.float32)
    values[..., 5], values[..., 7], values[..., 9] = 1.0, 0.9999, 0.9
    expected = interpreter_of(binary).run("f", [values, values])
    assert all((places == 5).all() for places in expected)
    actual = expected[0].copy()
    actual[1, :2] = 7, 9
    found = with_expected_places(binary, "f", [values, values], expected, {0: actual, 1: actual})
    assert found[0] is not None
    assert np.argwhere(found[0] != expected[0]).tolist() == [[1, 1]]
    assert found[1] is actual  # what both runs were given is no reason to choose otherwise


@pytest.mark.parametrize("data_type", ["bf16", "f32"])
@pytest.mark.parametrize("others", [0.0, 1.0, math.nan])
def test_places_of_equal_values_may_change_places(data_type: str, others: float) -> None:
    """Also of infinities and what is no number, and where only the first rows of what was sorted
    are left; but none may be there twice."""
    source, values_type = f"tensor<2x32x64x{data_type}>", f"tensor<2x8x64x{data_type}>"
    text = (
        f"func.func @f(%x: {source}) -> ({values_type}, tensor<2x8x64xi32>) {{\n"
        f'%e = "ttir.log"(%x) : ({source}) -> {source}\n'
        '%0, %1 = "ttir.topk"(%e) <{k = 8 : i32, dim = 1 : i32}> '
        f": ({source}) -> ({values_type}, tensor<2x8x64xi32>)\n"
        f"return %0, %1 : {values_type}, tensor<2x8x64xi32>\n}}\n"
    )
    binary = read_ttnn(compile_module(Source("t.mlir", text), CompileOptions("m")).flatbuffer)
    values = np.full((2, 32, 64), others, np.float32)
    values[:, 5], values[:, 9] = 2.0, 3.0
    expected = Interpreter(binary).run("f", [values])
    places = expected[1]

    def settled(actual: np.ndarray) -> np.ndarray:
        found = with_expected_places(binary, "f", [values], expected, {1: actual})[1]
        assert found is not None
        return found

    actual = places.copy()
    actual[:, [2, 4]] = places[:, [4, 2]]
    assert (settled(actual) == places).all()
    twice = places.copy()
    twice[:, 3] = places[:, 4]
    assert (settled(twice) == twice).all()
    ends = [0, 7]
    if others == 1.0:
        actual[:, ends] = places[:, ends[::-1]]  # log(3) and log(1)
        assert (settled(actual) != places).any(axis=(0, 2)).nonzero()[0].tolist() == ends


def test_nothing_runs_again_for_places_of_values_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """The flatbuffer run keeps what it chose among: a second run of a large model takes minutes."""
    square = "tensor<32x32xbf16>"
    text = (
        f"func.func @f(%x: {square}) -> tensor<32x1xi32> {{\n"
        f'%e = "ttir.exp"(%x) : ({square}) -> {square}\n'
        '%0 = "ttir.argmax"(%e) <{dim_arg = [1 : i32], keep_dim = true}> '
        f": ({square}) -> tensor<32x1xi32>\nreturn %0 : tensor<32x1xi32>\n}}\n"
    )
    source = Source("t.mlir", text)
    compiled = compile_module(source, CompileOptions("m"))
    values = np.zeros((32, 32), ml_dtypes.bfloat16)
    values[:, 5] = values[:, 7] = 1
    (run,) = run_in_numpy(source, compiled, lambda module, function: (values,))

    def refuse(*_: object) -> None:
        pytest.fail("the program runs again")

    monkeypatch.setattr(Interpreter, "run", refuse)
    (output,) = run.function.outputs
    places = np.asarray(run.flatbuffer[0])
    assert (places == 5).all()
    for place, passes in ((7, True), (9, False)):
        found = {output.field: np.full_like(places, place)}
        (check,) = check_function(run, found, None)
        assert check.passed is passes


def test_places_among_inputs_are_held_exactly() -> None:
    text = (
        "func.func @f(%x: tensor<32x32xf32>) -> tensor<32x1xui32> {\n"
        f"{ARGMAX.replace('%e', '%x')}\nreturn %0 : tensor<32x1xui32>\n}}\n"
    )
    binary = read_ttnn(compile_module(Source("t.mlir", text), CompileOptions("m")).flatbuffer)
    values = np.zeros((32, 32), np.float32)
    (expected,) = Interpreter(binary).run("f", [values])
    other = expected + 1  # as large
    (found,) = with_expected_places(binary, "f", [values], [expected], {0: other}).values()
    assert found is other
