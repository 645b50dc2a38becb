"""Fourier transforms and factorizations of StableHLO, against numpy.

The calls are those of jax for CPUs, GPUs and TPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.frontends.running import ops_of, read, refusals
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.numerics.golden_values import Golden

Array = np.ndarray
GENERATOR = np.random.default_rng(5)
MATRIX = GENERATOR.normal(size=(2, 5, 5)).astype(np.float32)
TALL = GENERATOR.normal(size=(2, 5, 3)).astype(np.float32)
SIDE = GENERATOR.normal(size=(2, 5, 4)).astype(np.float32)
POSITIVE = MATRIX @ MATRIX.swapaxes(1, 2) + np.eye(5, dtype=np.float32)
SYMMETRIC = (MATRIX + MATRIX.swapaxes(1, 2)).astype(np.float32)
LETTERS = {"float32": "f32", "int32": "i32", "complex64": "complex<f32>"}


def type_of(shape: Sequence[int], element: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def run(operation: str, operands: Sequence[Array], results: Sequence[str]) -> list[Array]:
    """Results of an operation `{operands} ... {types}`; complex operands and results are pairs."""
    types = [type_of(each.shape, LETTERS[each.dtype.name]) for each in operands]
    arguments = ", ".join(f"%x{index}: {each}" for index, each in enumerate(types))
    names = ", ".join(f"%x{index}" for index in range(len(operands)))
    outputs = ", ".join(results)
    returned = ", ".join(f"%r#{i}" for i in range(len(results))) if len(results) > 1 else "%r"
    body = operation.replace("{operands}", names)
    body = body.replace("{types}", f"({', '.join(types)}) -> ({outputs})")
    text = f"""func.func @main({arguments}) -> ({outputs}) {{
      %r{f":{len(results)}" if len(results) > 1 else ""} = {body}
      return {returned} : {outputs}
    }}"""
    given = [pairs(each) if np.iscomplexobj(each) else each for each in operands]
    return Golden(read(text)).run("main", given)


def pairs(array: Array) -> Array:
    return np.stack([array.real, array.imag], -1).astype(np.float32)


def close(found: Array, expected: Any, tolerance: float = 1e-5) -> None:
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


# Fourier transforms

TRANSFORMS = (
    "stablehlo.fft {{operands}}, type = {kind}, length = [{size}]",
    '"stablehlo.fft"({{operands}}) <{{fft_length = array<i64: {size}>, '
    "fft_type = #stablehlo<fft_type {kind}>}}>",
)
"""Spellings of the operation, pretty and generic."""


@pytest.mark.parametrize("size", [1, 2, 7, 16])
@pytest.mark.parametrize("form", TRANSFORMS)
def test_transforms_of_one_dimension(size: int, form: str) -> None:
    real = GENERATOR.normal(size=(3, size)).astype(np.float32)
    half = np.fft.rfft(real).astype(np.complex64)
    whole = (real + 1j * real[:, ::-1]).astype(np.complex64)
    for kind, x, expected in (
        ("RFFT", real, half),
        ("IRFFT", half, real),
        ("FFT", whole, np.fft.fft(whole)),
        ("IFFT", whole, np.fft.ifft(whole)),
    ):
        element = "complex<f32>" if np.iscomplexobj(expected) else "f32"
        operation = form.format(kind=kind, size=size) + " : {types}"
        (found,) = run(operation, [x], [type_of(expected.shape, element)])
        close(found, pairs(expected) if np.iscomplexobj(expected) else expected)


@pytest.mark.parametrize("sizes", [(4, 6), (3, 5), (2, 3, 7), (5, 1, 8)])
def test_transforms_of_several_dimensions(sizes: tuple[int, ...]) -> None:
    axes = range(-len(sizes), 0)
    real = GENERATOR.normal(size=(2, *sizes)).astype(np.float32)
    half = np.fft.rfftn(real, axes=axes).astype(np.complex64)
    for kind, x, expected in (
        ("RFFT", real, half),
        ("IRFFT", half, real),
        ("IFFT", real.astype(np.complex64), np.fft.ifftn(real, axes=axes)),
    ):
        element = "complex<f32>" if np.iscomplexobj(expected) else "f32"
        operation = f"stablehlo.fft {{operands}}, type = {kind}, length = {list(sizes)} : {{types}}"
        (found,) = run(operation, [x], [type_of(expected.shape, element)])
        close(found, pairs(expected) if np.iscomplexobj(expected) else expected)


def test_transforms_that_are_refused() -> None:
    def text(size: int, length: int) -> str:
        return f"""func.func @main(%x: tensor<{size}xf32>) -> tensor<{size // 2 + 1}xcomplex<f32>> {{
          %r = stablehlo.fft %x, type = RFFT, length = [{length}] : (tensor<{size}xf32>) -> tensor<{size // 2 + 1}xcomplex<f32>>
          return %r : tensor<{size // 2 + 1}xcomplex<f32>>
        }}"""  # noqa: E501

    (message,) = refusals(text(2049, 2049))
    assert message == (
        "Fourier transforms of more than 2048 elements are not supported, found 2049"
    )
    (message,) = refusals(text(8, 6))
    assert "the lengths [6] do not fit an operand of the sizes [8]" in message


@pytest.mark.parametrize("size", [1, 4, 7])
def test_products_of_complex_numbers(size: int) -> None:
    x = (GENERATOR.normal(size=(3, size, 2)) + 1j).astype(np.complex64)
    type_ = f"tensor<3x{size}x2xcomplex<f32>>"
    text = f"""func.func @main(%x: {type_}) -> tensor<3xcomplex<f32>> {{
      %one = stablehlo.constant dense<(2.0, 1.0)> : tensor<complex<f32>>
      %r = stablehlo.reduce(%x init: %one) applies stablehlo.multiply across dimensions = [1, 2]
        : ({type_}, tensor<complex<f32>>) -> tensor<3xcomplex<f32>>
      return %r : tensor<3xcomplex<f32>>
    }}"""
    (found,) = Golden(read(text)).run("main", [pairs(x)])
    close(found, pairs(x.prod((1, 2)) * (2 + 1j)), 1e-4)


# Factorizations


def call(name: str, **options: Any) -> str:
    """A custom call with options as jax writes them."""
    written = {
        key: f"{ord(value)} : ui8" if isinstance(value, str) else str(value).lower()
        for key, value in options.items()
    }
    listed = ", ".join(f"{key} = {value}" for key, value in written.items())
    config = f"{{mhlo.backend_config = {{{listed}}}}}"
    return f"stablehlo.custom_call @{name}({{operands}}) {config} : {{types}}"


def triangle(matrix: Array, lower: bool) -> Array:
    return np.tril(matrix) if lower else np.triu(matrix)


F5, F53, I2 = "tensor<2x5x5xf32>", "tensor<2x5x3xf32>", "tensor<2xi32>"


@pytest.mark.parametrize("lower", [True, False])
def test_cholesky(lower: bool) -> None:
    expected = np.linalg.cholesky(POSITIVE)
    expected = expected if lower else expected.swapaxes(1, 2)
    operation = f"stablehlo.cholesky {{operands}}, lower = {str(lower).lower()} : {{types}}"
    (found,) = run(operation, [POSITIVE], [F5])
    close(triangle(found, lower), expected)
    # LAPACK keeps the other triangle of the operand, which is not read.
    given = np.where(triangle(np.ones((5, 5)), lower) > 0, POSITIVE, 7).astype(np.float32)
    for operation in (
        call("lapack_spotrf_ffi", uplo="L" if lower else "U"),
        call("cusolver_potrf_ffi", lower=lower),
    ):
        found, info = run(operation, [given], [F5, I2])
        close(triangle(found, lower), expected)
        is_other = triangle(np.ones((5, 5)), lower) == 0
        np.testing.assert_array_equal(found[:, is_other], 7)
        np.testing.assert_array_equal(info, 0)


def test_cholesky_tells_which_column_fails() -> None:
    matrix = np.stack([np.eye(5), np.diag([1.0, 4, -1, 2, -3])]).astype(np.float32)
    _, info = run(call("lapack_spotrf_ffi", uplo="L"), [matrix], [F5, I2])
    np.testing.assert_array_equal(info, [0, 3])


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_systems(lower: bool, left: bool, transposed: bool, unit: bool) -> None:
    a = MATRIX + 3 * np.eye(5, dtype=np.float32)
    used = triangle(a, lower)
    if unit:
        used = used * (1 - np.eye(5)) + np.eye(5)
    used = used.swapaxes(1, 2) if transposed else used
    b = SIDE if left else SIDE.swapaxes(1, 2)
    expected = np.linalg.solve(used, b) if left else b @ np.linalg.inv(used)
    lapack = call(
        "lapack_strsm_ffi",
        side="L" if left else "R",
        uplo="L" if lower else "U",
        trans_x="T" if transposed else "N",
        diag="U" if unit else "N",
    )
    own = f"""stablehlo.triangular_solve"({{operands}}) <{{left_side = {left}, lower = {lower},
      unit_diagonal = {unit}, transpose_a = #stablehlo<transpose
      {"TRANSPOSE" if transposed else "NO_TRANSPOSE"}>}}> : {{types}}"""
    own = '"' + own.replace("True", "true").replace("False", "false")
    for operation in (lapack, own):
        (found,) = run(operation, [a, b], [type_of(b.shape, "f32")])
        close(found, expected, 1e-4)


@pytest.mark.parametrize("matrix", [MATRIX, TALL, TALL.swapaxes(1, 2).copy()])
def test_lu(matrix: Array) -> None:
    rows, columns = matrix.shape[1:]
    steps = min(rows, columns)
    types = [type_of(matrix.shape, "f32"), type_of([2, steps], "i32")]
    found, pivots, info = run(call("lapack_sgetrf_ffi"), [matrix], [*types, I2])
    lower = np.tril(found[:, :, :steps], -1) + np.eye(rows, steps)
    upper = np.triu(found[:, :steps])
    for one, product, exchanged in zip(matrix, lower @ upper, pivots, strict=True):
        order = np.arange(rows)
        for step, row in enumerate(exchanged - 1):
            order[[step, row]] = order[[row, step]]
        close(product, one[order])
    assert np.abs(lower).max() <= 1, "the largest element of a column is its pivot"
    np.testing.assert_array_equal(info, 0)
    again, from_zero, order = run(
        "stablehlo.custom_call @LuDecomposition({operands}) : {types}",
        [matrix],
        [*types, type_of([2, rows], "i32")],
    )
    np.testing.assert_array_equal(again, found)
    np.testing.assert_array_equal(from_zero, pivots - 1)
    (permutation,) = run(
        "stablehlo.custom_call @cu_lu_pivots_to_permutation({operands}) : {types}",
        [from_zero.astype(np.int32)],
        [type_of([2, rows], "i32")],
    )
    np.testing.assert_array_equal(permutation, order)


def test_lu_of_singular_matrices_tells_the_first_zero() -> None:
    matrix = np.stack([np.eye(5), np.diag([2.0, 1, 0, 1, 0])]).astype(np.float32)
    found, _, info = run(call("lapack_sgetrf_ffi"), [matrix], [F5, "tensor<2x5xi32>", I2])
    np.testing.assert_array_equal(found, matrix)
    np.testing.assert_array_equal(info, [0, 3])


@pytest.mark.parametrize("name", ["lapack_s{}_ffi", "hipsolver_{}_ffi", ""])
@pytest.mark.parametrize("matrix", [MATRIX, TALL, TALL.swapaxes(1, 2).copy()])
def test_qr(matrix: Array, name: str) -> None:
    rows, columns = matrix.shape[1:]
    steps = min(rows, columns)
    names = {each: name.format(each) for each in ("geqrf", "orgqr", "ormqr")}
    if not name:
        names |= {"geqrf": "Qr", "orgqr": "ProductOfElementaryHouseholderReflectors"}
    types = [type_of(matrix.shape, "f32"), type_of([2, steps], "f32")]
    reflectors, tau = run(call(names["geqrf"]), [matrix], types)
    upper = np.triu(reflectors)
    (q,) = run(
        call(names["orgqr"]), [reflectors[:, :, :steps], tau], [type_of([2, rows, steps], "f32")]
    )
    close(q.swapaxes(1, 2) @ q, np.broadcast_to(np.eye(steps), (2, steps, steps)))
    close(q @ upper[:, :steps], matrix)
    expected = [np.linalg.qr(each, mode="raw") for each in matrix]
    close(reflectors, np.stack([each.T for each, _ in expected]), 1e-4)
    close(tau, np.stack([each for _, each in expected]), 1e-4)
    if not name:
        return
    side = SIDE[:, :rows]
    whole = [np.linalg.qr(each, mode="complete")[0] for each in matrix]
    for left in (True, False):
        for transpose in (True, False):
            other = side if left else side.swapaxes(1, 2).copy()
            turned = [each.T if transpose else each for each in whole]
            expected = [
                each @ one if left else one @ each for each, one in zip(turned, other, strict=True)
            ]
            (found,) = run(
                call(names["ormqr"], left=left, transpose=transpose),
                [reflectors[:, :, :steps], tau, other],
                [type_of(other.shape, "f32")],
            )
            close(found, np.stack(expected), 1e-4)


@pytest.mark.parametrize(
    ("operation", "lower"),
    [
        (call("lapack_ssyevd_ffi", mode="V", uplo="L"), True),
        (call("lapack_ssyevd_ffi", mode="V", uplo="U"), False),
        (call("cusolver_syevd_ffi", lower=True, algorithm=0), True),
    ],
)
def test_eigenvalues_of_symmetric_matrices(operation: str, lower: bool) -> None:
    # The other triangle is not read.
    given = np.where(triangle(np.ones((5, 5)), lower) > 0, SYMMETRIC, 7).astype(np.float32)
    vectors, values, info = run(operation, [given], [F5, "tensor<2x5xf32>", I2])
    close(values, np.linalg.eigvalsh(SYMMETRIC), 1e-4)
    close(vectors * values[:, None] @ vectors.swapaxes(1, 2), SYMMETRIC, 1e-4)
    np.testing.assert_array_equal(info, 0)


SVD_CALLS = [
    (call("lapack_sgesdd_ffi", mode="A"), True, False),
    (call("lapack_sgesvd_ffi", mode="S"), False, False),
    (call("cusolver_gesvdj_ffi", full_matrices=True, compute_uv=True), True, True),
    (
        call("cusolver_gesvd_ffi", full_matrices=False, compute_uv=True, transposed=True),
        False,
        False,
    ),
]


@pytest.mark.parametrize(("operation", "full", "turned"), SVD_CALLS)
@pytest.mark.parametrize("matrix", [TALL, TALL.swapaxes(1, 2).copy()])
def test_singular_values(matrix: Array, operation: str, full: bool, turned: bool) -> None:
    rows, columns = matrix.shape[1:]
    u_shape = [2, rows, rows if full else 3]
    v_shape = [2, columns if full else 3, columns]
    given = v_shape[::-1] if turned else v_shape
    given = [2, *given[:-1]] if turned else given
    shapes = [u_shape, given]
    if "transposed" in operation:
        shapes.reverse()
    results = [type_of(matrix.shape, "f32"), type_of([2, 3], "f32"),
               *(type_of(each, "f32") for each in shapes), I2]  # fmt: skip
    _, s, u, v, info = run(operation, [matrix], results)
    if "transposed" in operation:
        u, v = v, u
    vh = v.swapaxes(1, 2) if turned else v
    close(s, np.linalg.svd(matrix, compute_uv=False))
    close(u[:, :, :3] * s[:, None] @ vh[:, :3], matrix)
    close(u.swapaxes(1, 2) @ u, np.broadcast_to(np.eye(u.shape[2]), (2, *[u.shape[2]] * 2)))
    close(vh @ vh.swapaxes(1, 2), np.broadcast_to(np.eye(vh.shape[1]), (2, *[vh.shape[1]] * 2)))
    np.testing.assert_array_equal(info, 0)


def test_singular_values_alone() -> None:
    results = [F53, "tensor<2x3xf32>", "tensor<2x5x3xf32>", "tensor<2x3x3xf32>", I2]
    _, s, *_ = run(call("lapack_sgesdd_ffi", mode="N"), [TALL], results)
    close(s, np.linalg.svd(TALL, compute_uv=False))


_UNKNOWN = "the custom call '@{}' factorizes a matrix in a way that is not supported"


@pytest.mark.parametrize(
    ("name", "count", "message"),
    [
        ("lapack_spotrf_ffi", 65, "'cholesky' of matrices of more than 64 columns is not "
                                  "supported, found 65"),
        ("lapack_ssyevd_ffi", 17, "singular values and eigenvalues of matrices of more than 16 "
                                  "columns are not supported, found 17"),
        ("lapack_sgeev_ffi", 4, _UNKNOWN.format("lapack_sgeev_ffi")),
        ("lapack_cpotrf_ffi", 4, _UNKNOWN.format("lapack_cpotrf_ffi")),
    ],
)  # fmt: skip
def test_factorizations_that_are_refused(name: str, count: int, message: str) -> None:
    type_ = f"tensor<{count}x{count}xf32>"
    results = {"lapack_ssyevd_ffi": [type_, f"tensor<{count}xf32>"]}.get(name, [type_])
    names = ", ".join(f"%r#{index}" for index in range(len(results) + 1))
    types = ", ".join([*results, "tensor<i32>"])
    (found,) = refusals(f"""func.func @main(%x: {type_}) -> ({types}) {{
      %r:{len(results) + 1} = stablehlo.custom_call @{name}(%x)
        {{mhlo.backend_config = {{mode = 86 : ui8, uplo = 76 : ui8}}}} : ({type_}) -> ({types})
      return {names} : {types}
    }}""")
    assert found == message


@pytest.mark.parametrize(
    ("operation", "operands", "result", "message"),
    [
        ("stablehlo.cholesky {operands}", [TALL], F53, "has to be a square matrix"),
        (call("lapack_spotrf_ffi", uplo="L")[:-10], [TALL], F53, "has to be a square matrix"),
        (call("lapack_sgetrf_ffi")[:-10], [MATRIX], F5, "3 results are computed, found 1"),
        (call("lapack_sgeqrf_ffi")[:-10], [MATRIX, MATRIX], F5, "1 operands are needed"),
        (call("lapack_sorgqr_ffi")[:-10], [TALL, TALL[:, 0]], F5, "[2, 5, 3] is declared as"),
        (call("lapack_strsm_ffi")[:-10], [MATRIX, TALL[:, :3]], F53, "have no sides of [2, 3, 3]"),
        (call("Qr")[:-10], [TALL[0, 0]], "tensor<3xf32>", "has to be a matrix, found the shape"),
    ],
)
def test_calls_that_are_ill_formed(
    operation: str, operands: Sequence[Array], result: str, message: str
) -> None:
    with pytest.raises(CompileError) as caught:
        run(f"{operation} : {{types}}", operands, [result])
    assert message in caught.value.diagnostics[0].message


# Products of the highest precision

MOST_BITS = "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]"


@pytest.mark.parametrize(
    ("form", "equation"),
    [
        ("stablehlo.dot_general {operands}, batching_dims = [0] x [0], contracting_dims = [1] x "
         "[1], precision = [HIGHEST, HIGHEST] : {types}", "bik,bil->bkl"),
        ('"stablehlo.dot_general"({operands}) <{dot_dimension_numbers = #stablehlo.dot<'
         "lhs_contracting_dimensions = [1, 0], rhs_contracting_dimensions = [1, 0]>, "
         f"{MOST_BITS}}}> : {{types}}", "bik,bil->kl"),
    ],
)  # fmt: skip
def test_small_products_of_the_highest_precision_are_exact(form: str, equation: str) -> None:
    expected = np.einsum(equation, TALL.astype(np.float64), SIDE)
    (found,) = run(form, [TALL, SIDE], [type_of(expected.shape, "f32")])
    close(found, expected, 1e-6)
    text = f"""func.func @main(%x: {F53}, %y: tensor<2x5x4xf32>)
      -> {type_of(expected.shape, "f32")} {{
      %r = {form.replace("{operands}", "%x, %y")}
      return %r : {type_of(expected.shape, "f32")}
    }}"""
    types = f"({F53}, tensor<2x5x4xf32>) -> {type_of(expected.shape, 'f32')}"
    text = text.replace("{types}", types)
    assert not {"matmul", "dot_general"} & set(ops_of(read(text)))
    plain = text.replace("HIGHEST", "DEFAULT")
    assert {"matmul", "dot_general"} & set(ops_of(read(plain)))


# Zeta functions


def zeta(x: float, q: float) -> float:
    """Sum of (q + k)^-x, the integral of the terms that are left, and half of the first of them."""
    count = 4000
    total = sum((q + k) ** -x for k in range(count))
    return total + (q + count) ** (1 - x) / (x - 1) + (q + count) ** -x / 2


def test_zeta() -> None:
    x = np.asarray([1.5, 2, 3.25, 9, 1, 0.5, 3, 2.5], np.float32)
    q = np.asarray([0.3, 1, 2.5, 12, 2, 2, -2, -1.5], np.float32)
    operation = "chlo.zeta {operands} : {types}"
    (found,) = run(operation, [x, q], ["tensor<8xf32>"])
    expected = [zeta(*pair) for pair in zip(x[:4].tolist(), q[:4].tolist(), strict=True)]
    close(found, np.asarray([*expected, np.inf, np.nan, np.inf, np.nan]))


@pytest.mark.parametrize("orders", [[1] * 4, [1, 2, 3, 4]])
def test_polygamma(orders: list[int]) -> None:
    points = np.asarray([0.2, 1, 2.5, 17], np.float32)
    count = np.asarray(orders, np.float32)
    factorials = {1: 1, 2: 2, 3: 6, 4: 24}
    expected = [
        (-1) ** (n + 1) * factorials[n] * zeta(n + 1, x)
        for n, x in zip(orders, points.tolist(), strict=True)
    ]
    constant = f"dense<{[float(n) for n in orders]}>"
    text = f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %n = stablehlo.constant {constant} : tensor<4xf32>
      %r = chlo.polygamma %n, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
      return %r : tensor<4xf32>
    }}"""
    close(Golden(read(text)).run("main", [points])[0], np.asarray(expected))
    (found,) = run("chlo.polygamma {operands} : {types}", [count, points], ["tensor<4xf32>"])
    close(found, np.asarray(expected))


def test_polygamma_is_the_derivative_of_digamma_at_negative_numbers() -> None:
    x, step = np.asarray([-0.3, -1.6, -3.4]), 1e-5

    def digamma(x: Array) -> Array:
        """By its recurrence, and Stirling's series far from zero."""
        total = np.zeros_like(x)
        for _ in range(60):
            total, x = total - 1 / x, x + 1
        return total + np.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4)

    expected = (digamma(x + step) - digamma(x - step)) / (2 * step)
    orders = np.ones(3, np.float32)
    operation = "chlo.polygamma {operands} : {types}"
    (found,) = run(operation, [orders, x.astype(np.float32)], ["tensor<3xf32>"])
    close(found, expected, 1e-4)
    orders = np.asarray([-1, 0.5, 0], np.float32)
    (found,) = run(operation, [orders, np.full(3, 2, np.float32)], ["tensor<3xf32>"])
    close(found, [np.nan, np.nan, digamma(np.asarray([2.0]))[0]])
