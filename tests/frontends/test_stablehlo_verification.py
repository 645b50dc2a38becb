"""Rejection of inconsistent StableHLO, instead of its reading as some TTIR."""

from __future__ import annotations

import pytest

from tests.frontends.running import read, refusals
from ttcodegen.foundation.diagnostics import CompileError

ABS = "%0 = stablehlo.abs %a : tensor<4xf32>"
CASES = {
    "another type than the signature": (
        f"-> tensor<8xf32> {{ {ABS}\n return %0 : tensor<4xf32> }}",
        "function @main returns tensor<8xf32> as result 0, but 'return' has tensor<4xf32>",
    ),
    "the return of a region": (
        f"-> tensor<4xf32> {{ {ABS}\n stablehlo.return %0 : tensor<4xf32> }}",
        "function @main does not end in 'return'",
    ),
    "another result of a call": (
        f"""-> tensor<4xf32> {{ %0 = call @g(%a) : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32> }}
        func.func private @g(%a: tensor<4xf32>) -> tensor<2xf32> {{
          {ABS}
          %1 = stablehlo.slice %0 [0:2] : (tensor<4xf32>) -> tensor<2xf32>
          return %1 : tensor<2xf32> }}""",
        "function @g returns tensor<2xf32> as result 0, but the call has tensor<4xf32>",
    ),
    "the value of another type": (
        """-> tensor<4xf32> {
        %0 = "stablehlo.constant"() <{value = dense<1.0> : tensor<2xf32>}> : () -> tensor<4xf32>
        return %0 : tensor<4xf32> }""",
        "'stablehlo.constant': the value is of type tensor<2xf32>, the result of tensor<4xf32>",
    ),
    "contracted dimensions that there are not": (
        """-> tensor<4x4xf32> {
        %0 = stablehlo.reshape %a : (tensor<4xf32>) -> tensor<4x1xf32>
        %1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [2]
          : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
        return %1 : tensor<4x4xf32> }""",
        "'stablehlo.dot_general': [2] are no different dimensions of operand 1",
    ),
    "a dimension to sort along that there is not": (
        """-> tensor<4xf32> {
        %0 = "stablehlo.sort"(%a) <{dimension = 5 : i64}> ({
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %c = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        }) : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32> }""",
        "'stablehlo.sort': there is no dimension 5 in a tensor of rank 1",
    ),
    "another shape than a tensor says": (
        """-> tensor<4xf32> {
        %s = stablehlo.constant dense<[3]> : tensor<1xi64>
        %0 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi64>) -> tensor<4xf32>
        return %0 : tensor<4xf32> }""",
        "'stablehlo.dynamic_iota': the shape is [3], and that of the result [4]",
    ),
    "no such dimension": (
        "-> tensor<4xf32> { %0 = stablehlo.iota dim = 3 : tensor<4xf32>\n"
        "return %0 : tensor<4xf32> }",
        "'stablehlo.iota': there is no dimension 3 in the shape [4]",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_function_that_contradicts_itself(name: str) -> None:
    body, expected = CASES[name]
    assert refusals(f"func.func @main(%a: tensor<4xf32>) {body}") == [expected]


T, ROW, NARROW = "tensor<4x4xf32>", "tensor<4xf32>", "tensor<4x4xbf16>"


@pytest.mark.parametrize(
    ("name", "operands", "result", "found"),
    [
        ("add", (T, ROW), T, f"{T} and {ROW}"),
        ("multiply", (T, NARROW), T, f"{T} and {NARROW}"),
        ("remainder", (T, ROW), T, f"{T} and {ROW}"),
        ("maximum", (ROW, "tensor<1xf32>"), ROW, f"{ROW} and tensor<1xf32>"),
        ("compare GT,", (T, ROW), "tensor<4x4xi1>", f"{T} and {ROW}"),
        ("select", ("tensor<i1>", T, "tensor<4x1xf32>"), T, f"{T} and tensor<4x1xf32>"),
    ],
)
def test_operands_are_not_broadcast(
    name: str, operands: tuple[str, ...], result: str, found: str
) -> None:
    values = [f"%a{index}" for index in range(len(operands))]
    taken = ", ".join(f"{value}: {type_}" for value, type_ in zip(values, operands, strict=True))
    text = f"""func.func @main({taken}) -> {result} {{
      %r = stablehlo.{name} {", ".join(values)} : ({", ".join(operands)}) -> {result}
      return %r : {result} }}"""
    (message,) = refusals(text)
    assert f"takes operands of one type, found {found}" in message


@pytest.mark.parametrize(
    ("op", "operands"),
    [("select", ("tensor<4xi1>", T, T)), ("clamp", (ROW, T, "tensor<f32>"))],
)
def test_only_scalars_stand_for_all_elements(op: str, operands: tuple[str, ...]) -> None:
    taken = ", ".join(f"%a{index}: {type_}" for index, type_ in enumerate(operands))
    text = f"""func.func @main({taken}) -> {T} {{
      %r = stablehlo.{op} %a0, %a1, %a2 : ({", ".join(operands)}) -> {T}
      return %r : {T} }}"""
    assert refusals(text) == [f"'stablehlo.{op}': expected a scalar or the shape [4, 4], found [4]"]


WINDOW = """"stablehlo.reduce_window"(%x, %c) <{{window_dimensions = array<i64: 3>, padding =
  dense<[[1, 1]]> : tensor<1x2x{element}>}}> ({{
^bb0(%l: tensor<f32>, %r: tensor<f32>):
  %s = stablehlo.add %l, %r : tensor<f32>
  stablehlo.return %s : tensor<f32>
}}) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>"""


@pytest.mark.parametrize("element", ["i32", "bf16"])
def test_padding_is_of_64_bit_integers(element: str) -> None:
    text = f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %c = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = {WINDOW.format(element=element)}
      return %0 : tensor<4xf32> }}"""
    (message,) = refusals(text)
    assert message.endswith(f"'padding' holds 64-bit integers, found {element}")
    read(text.replace(f"x{element}>}}>", "xi64>}>"))


@pytest.mark.parametrize("name", ["window_strides", "base_dilations", "window_dilations"])
def test_windows_advance(name: str) -> None:
    text = f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %c = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = {WINDOW.format(element="i64")}
      return %0 : tensor<4xf32> }}"""
    for wrong in ("0", "-1", "1, 1"):
        (message,) = refusals(text.replace("padding =", f"{name} = array<i64: {wrong}>, padding ="))
        assert f"'{name}' has a positive integer for each of 1 dimensions" in message


@pytest.mark.parametrize(
    ("window", "inserted", "message"),
    [
        ("[1]", "[5]", "[5] are not those of an operand of rank 2"),
        ("[1]", "[0, 1]", "[0, 1] are not those of an operand of rank 2"),
        ("[1]", "[]", "[] are not those of an operand of rank 2"),
        ("[2]", "[0]", "[2] are no dimensions of updates of rank 2"),
    ],
)
def test_dimensions_of_a_scatter(window: str, inserted: str, message: str) -> None:
    text = f"""func.func @main(%x: tensor<10x4xf32>, %i: tensor<3x1xi32>, %u: tensor<3x4xf32>)
        -> tensor<10x4xf32> {{
      %0 = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
        update_window_dims = {window}, inserted_window_dims = {inserted},
        scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %z = stablehlo.atan2 %a, %b : tensor<f32>
        stablehlo.return %z : tensor<f32>
      }}) : (tensor<10x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<10x4xf32>
      return %0 : tensor<10x4xf32> }}"""
    (found,) = refusals(text)
    assert message in found


def test_a_cast_that_a_conversion_left_behind() -> None:
    for body in ("", "%1 = stablehlo.abs %a : tensor<4xf32>\n"):
        text = f"""func.func @main(%a: tensor<4xf32>) -> tensor<4xbf16> {{
          {body} %0 = builtin.unrealized_conversion_cast %a : tensor<4xf32> to tensor<4xbf16>
          return %0 : tensor<4xbf16> }}"""
        (message,) = refusals(text)
        assert "'builtin.unrealized_conversion_cast'" in message


LIMITS = {
    "one is known at run time": (
        "%r = stablehlo.real_dynamic_slice %x, %i, %j, %k : (tensor<4xf32>, tensor<1xi32>, "
        "tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>",
        "constant of the program",
    ),
    "one has no rule": (
        "%r = chlo._asin_acos_kernel %x : tensor<4xf32> -> tensor<4xf32>",
        "with other ops",
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_come_with_a_remedy(name: str) -> None:
    line, remedy = LIMITS[name]
    operands = "%x: tensor<4xf32>, %i: tensor<1xi32>, %j: tensor<1xi32>, %k: tensor<1xi32>"
    text = f"func.func @f({operands}) -> tensor<4xf32> {{\n{line}\nreturn %x : tensor<4xf32>\n}}"
    with pytest.raises(CompileError) as caught:
        read(text)
    assert remedy in (caught.value.diagnostics[0].remedy or "")
