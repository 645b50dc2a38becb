"""linalg to TTIR."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontends.linalg_programs import check, draw, started, type_of
from tests.frontends.running import ops_of, read, refusals, run

MULTIPLY = """#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
module attributes {torch.debug_module_name = "_lambda"} {
ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>
func.func @forward(%a: tensor<8x16xf32>, %b: tensor<16xf32>) -> tensor<8x16xf32> {
  %0 = tensor.empty() : tensor<8x16xf32>
  %1 = linalg.generic {indexing_maps = [#map, #row, #map],
                       iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<8x16xf32>, tensor<16xf32>) outs(%0 : tensor<8x16xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %2 = arith.mulf %in, %in_0 : f32
    %3 = math.tanh %2 : f32
    linalg.yield %3 : f32
  } -> tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}
}
"""


def test_a_generic_on_elements() -> None:
    random = np.random.default_rng(0)
    a = random.standard_normal((8, 16)).astype(np.float32)
    b = random.standard_normal(16).astype(np.float32)
    (found,) = run(MULTIPLY, a, b)
    np.testing.assert_allclose(found, np.tanh(a * b), rtol=1e-5)
    assert ops_of(read(MULTIPLY)) == ["reshape", "multiply", "tanh"]


def test_what_is_not_known_is_refused() -> None:
    assert refusals(MULTIPLY.replace("math.tanh %2 : f32", '"math.ctlz"(%2) : (f32) -> f32')) == [
        "'math.ctlz' in a linalg.generic is not supported"
    ]
    assert refusals(MULTIPLY.replace('"parallel"]', '"reduction"]')) == [
        "a linalg.generic with a result for each step of a sum is not supported"
    ]
    types = "tensor<8x16xf32>) outs(%0 : tensor<8x16xf32>) -> tensor<8x16xf32>"
    other = f"%9 = linalg.mmt4d ins(%a : {types}\n  %1 = linalg.generic"
    assert refusals(MULTIPLY.replace("%1 = linalg.generic", other)) == [
        "unknown operation 'linalg.mmt4d'"
    ]


def test_sizes_of_run_time_are_refused() -> None:
    text = MULTIPLY.replace("tensor<8x16xf32>", "tensor<?x16xf32>")
    text = text.replace("tensor.empty()", "tensor.empty(%n)").replace("(%a:", "(%n: index, %a:")
    assert any("tensors of unknown size" in message for message in refusals(text))


PRODUCTS = {
    "matmul": ("mk,kn->mn", (4, 6), (6, 8)),
    "matmul_transpose_b": ("mk,nk->mn", (4, 6), (8, 6)),
    "batch_matmul": ("bmk,bkn->bmn", (2, 4, 6), (2, 6, 8)),
    "batch_matmul_transpose_a": ("bkm,bkn->bmn", (2, 6, 4), (2, 6, 8)),
    "matvec": ("mk,k->m", (4, 6), (6,)),
    "vecmat": ("k,kn->n", (6,), (6, 8)),
    "dot": ("k,k->", (6,), (6,)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    formula, first, second = PRODUCTS[name]
    a, b = draw(*first), draw(*second)
    expected = np.asarray(np.einsum(formula, a, b))
    form = (
        f"linalg.{name} ins(%a, %b : {type_of(a)}, {type_of(b)}) "
        "outs({start} : {type}) -> {type}"
    )
    body = started("%zero", expected) + "%r = " + form.format(start="%o", type=type_of(expected))
    check(body, [a, b], expected)
    if expected.ndim:
        bias = draw(*expected.shape)
        check("%r = " + form.format(start="%c", type=type_of(bias)), [a, b, bias], expected + bias)


def convolved(image: np.ndarray, weight: np.ndarray, stride: int) -> np.ndarray:
    """NCHW and FCHW, without padding."""
    windows = np.lib.stride_tricks.sliding_window_view(image, weight.shape[2:], (2, 3))
    return np.einsum("ncyxhw,fchw->nfyx", windows[:, :, ::stride, ::stride], weight)


def test_a_padded_convolution_with_a_bias() -> None:
    image, weight, bias = draw(1, 3, 8, 8), draw(4, 3, 3, 3), draw(4)
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
    expected = convolved(padded, weight, 2) + bias[:, None, None]
    shape = type_of(expected)
    check(f"""%p = tensor.pad %a low[0, 0, 1, 1] high[0, 0, 1, 1] {{
      ^bb0(%i: index, %j: index, %k: index, %l: index):
        tensor.yield %zero : f32
      }} : {type_of(image)} to {type_of(padded)}
      %e = tensor.empty() : {shape}
      %o = linalg.broadcast ins(%c : tensor<4xf32>) outs(%e : {shape}) dimensions = [0, 2, 3]
      %r = linalg.conv_2d_nchw_fchw {{dilations = dense<1> : vector<2xi64>,
        strides = dense<2> : vector<2xi64>}} ins(%p, %b : {type_of(padded)}, {type_of(weight)})
        outs(%o : {shape}) -> {shape}""", [image, weight, bias], expected)  # fmt: skip


def test_convolutions_in_other_orders() -> None:
    image, weight = draw(1, 3, 8, 8), draw(4, 3, 3, 3)
    expected = convolved(image, weight, 1).transpose(0, 2, 3, 1)
    attributes = "{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}"
    channels_last = np.ascontiguousarray(image.transpose(0, 2, 3, 1))
    for name, order in (("hwcf", (2, 3, 1, 0)), ("fhwc", (0, 2, 3, 1))):
        kernel = np.ascontiguousarray(weight.transpose(order))
        check(
            started("%zero", expected)
            + f"%r = linalg.conv_2d_nhwc_{name} {attributes} ins(%a, %b : "
            f"{type_of(channels_last)}, {type_of(kernel)}) outs(%o : {type_of(expected)}) -> "
            f"{type_of(expected)}",
            [channels_last, kernel],
            expected,
        )
    single = draw(3, 1, 3, 3)
    wide = np.zeros((3, 3, 3, 3), np.float32)
    wide[range(3), range(3)] = single[:, 0]
    kernel = np.ascontiguousarray(single[:, 0].transpose(1, 2, 0))
    expected = convolved(image, wide, 1).transpose(0, 2, 3, 1)
    check(
        started("%zero", expected)
        + f"%r = linalg.depthwise_conv_2d_nhwc_hwc {attributes} ins(%a, %b : "
        f"{type_of(channels_last)}, {type_of(kernel)}) outs(%o : {type_of(expected)}) -> "
        f"{type_of(expected)}",
        [channels_last, kernel],
        expected,
    )


@pytest.mark.parametrize("kind", ["max", "sum"])
def test_pooling(kind: str) -> None:
    image = draw(1, 3, 8, 8)
    windows = image.reshape(1, 3, 4, 2, 4, 2)
    expected = getattr(windows, kind)(axis=(3, 5))
    body = started("%lowest" if kind == "max" else "%zero", expected)
    body += f"""%w = tensor.empty() : tensor<2x2xf32>
      %r = linalg.pooling_nchw_{kind} {{dilations = dense<1> : vector<2xi64>,
        strides = dense<2> : vector<2xi64>}} ins(%a, %w : {type_of(image)}, tensor<2x2xf32>)
        outs(%o : {type_of(expected)}) -> {type_of(expected)}"""
    check(body, [image], expected)


def test_reductions() -> None:
    a = draw(3, 4, 5)
    total = a.sum(axis=1)
    form = f"ins(%a : {type_of(a)}) outs(%o : {type_of(total)}) dimensions = [1] "
    check(started("%zero", total) + "%r = linalg.reduce { arith.addf } " + form, [a], total)
    region = "(%x: f32, %y: f32) {\n%z = arith.maximumf %x, %y : f32\nlinalg.yield %z : f32\n}"
    head = (
        f"%r = linalg.reduce ins(%a : {type_of(a)}) outs(%o : {type_of(total)}) dimensions = [1] "
    )
    check(started("%lowest", total) + head + region, [a], a.max(axis=1))
    # What starts from zero is never less.
    check(started("%zero", total) + head + region, [a], np.maximum(a.max(axis=1), 0))


GENERIC = """%r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
  ins({ins}) outs({outs}) {{
  ^bb0({arguments}):
    {body}
  }} -> {type}"""


def test_a_generic_that_sums_products() -> None:
    a, b = draw(3, 4), draw(5, 4)
    expected = np.exp(a) @ b.T
    body = GENERIC.format(
        maps="affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, "
        "affine_map<(i, j, k) -> (j, i)>",
        kinds='"parallel", "parallel", "reduction"',
        ins=f"%a, %b : {type_of(a)}, {type_of(b)}",
        outs=f"%o : {type_of(expected.T)}",
        arguments="%x: f32, %y: f32, %s: f32",
        body="%1 = math.exp %x : f32\n%2 = arith.mulf %1, %y : f32\n"
        "%3 = arith.addf %s, %2 : f32\nlinalg.yield %3 : f32",
        type=type_of(expected.T),
    )
    check(started("%zero", expected.T) + body, [a, b], expected.T)


def test_a_generic_that_looks_for_the_largest() -> None:
    a = draw(6, 8)
    place = a.argmax(axis=1)
    body = (
        started("%lowest", a[:, 0], "m")
        + f"""%n = arith.constant 0 : i64
      %ei = tensor.empty() : {type_of(place)}
      %i = linalg.fill ins(%n : i64) outs(%ei : {type_of(place)}) -> {type_of(place)}
      %r:2 = linalg.generic {{indexing_maps = [#all, #rows, #rows],
          iterator_types = ["parallel", "reduction"]}}
        ins(%a : {type_of(a)}) outs(%m, %i : tensor<6xf32>, {type_of(place)}) {{
      ^bb0(%x: f32, %best: f32, %where: i64):
        %1 = linalg.index 1 : index
        %2 = arith.index_cast %1 : index to i64
        %3 = arith.maximumf %x, %best : f32
        %4 = arith.cmpf ogt, %x, %best : f32
        %5 = arith.select %4, %2, %where : i64
        linalg.yield %3, %5 : f32, i64
      }} -> (tensor<6xf32>, {type_of(place)})"""
    )
    maps = "#all = affine_map<(i, j) -> (i, j)>\n#rows = affine_map<(i, j) -> (i)>"
    check(body, [a], a.max(axis=1), place, maps=maps)


def test_numbers_choices_and_places_in_a_generic() -> None:
    a = draw(4, 6)
    expected = np.where(a > 0, a, 0.5) + np.arange(6, dtype=np.float32)
    body = f"""%half = arith.constant 5.0e-01 : f64
      %o = tensor.empty() : {type_of(a)}
      %r = linalg.generic {{indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}}
        ins(%a : {type_of(a)}) outs(%o : {type_of(a)}) {{
      ^bb0(%x: f32, %out: f32):
        %1 = arith.truncf %half : f64 to f32
        %2 = arith.cmpf ugt, %x, %zero : f32
        %3 = arith.select %2, %x, %1 : f32
        %4 = linalg.index 1 : index
        %5 = arith.index_cast %4 : index to i32
        %6 = arith.sitofp %5 : i32 to f32
        %7 = arith.addf %3, %6 : f32
        linalg.yield %7 : f32
      }} -> {type_of(a)}"""
    check(body, [a], expected, maps="#m = affine_map<(i, j) -> (i, j)>")


def test_movements() -> None:
    a, b = draw(4, 6), draw(4, 6)
    body = """%e = tensor.empty() : tensor<6x4xf32>
      %t = linalg.transpose ins(%a : tensor<4x6xf32>) outs(%e : tensor<6x4xf32>)
        permutation = [1, 0]
      %x = tensor.expand_shape %t [[0, 1], [2]] output_shape [2, 3, 4]
        : tensor<6x4xf32> into tensor<2x3x4xf32>
      %c = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
      %s = tensor.extract_slice %c[1, 0] [2, 4] [2, 1] : tensor<6x4xf32> to tensor<2x4xf32>
      %e2 = tensor.empty() : tensor<4x6xf32>
      %m = linalg.max ins(%a, %b : tensor<4x6xf32>, tensor<4x6xf32>)
        outs(%e2 : tensor<4x6xf32>) -> tensor<4x6xf32>"""
    types = "tensor<2x4xf32>, tensor<4x6xf32>"
    arguments = "%a: tensor<4x6xf32>, %b: tensor<4x6xf32>"
    text = f"func.func @f({arguments}) -> ({types}) {{\n{body}\nreturn %s, %m : {types}\n}}"
    first, second = run(text, a, b)
    np.testing.assert_array_equal(first, a.T[1:5:2])
    np.testing.assert_array_equal(second, np.maximum(a, b))
