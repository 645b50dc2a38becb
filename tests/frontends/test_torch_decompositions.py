"""Operations of PyTorch that are taken apart into others, against torch itself."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

import ttcodegen.torch  # noqa: E402
from tests.frontends.running import read  # noqa: E402
from ttcodegen.foundation.diagnostics import CompileError  # noqa: E402
from ttcodegen.frontends.torch.decompositions import DECOMPOSITIONS  # noqa: E402
from ttcodegen.numerics.golden_values import Golden  # noqa: E402

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]
T: Any = torch
A = torch.ops.aten

POINTS = T.linspace(-9.7, 9.9, 40)
EDGES = T.tensor([0.0, -0.0, inf, -inf, nan, 1.0, -1.0, 0.5])
POSITIVE = T.cat([T.linspace(0.05, 12, 40), T.tensor([0.0, inf])])
MATRIX = T.tensor([[4.0, -2.0, 1.0, 0.5], [1.0, 3.0, -1.0, 2.0], [0.0, 1.0, 5.0, -3.0],
                   [2.0, 0.0, 1.0, -4.0]])  # fmt: skip
TALL = T.linspace(-2, 3, 15).reshape(5, 3).sin() + T.eye(5, 3)
SYMMETRIC = MATRIX @ MATRIX.T + T.eye(4)
IMAGE = T.linspace(-3, 3, 216).reshape(1, 4, 6, 9).cos()
SIDE = T.linspace(-1, 2, 8).reshape(4, 2)
COUNTS = T.tensor([[2, -3, 2, 0, 5, 2], [0, 0, 1, 1, -3, 4], [7, 7, 7, 1, 1, 1]])
HOLES = T.tensor([[1.0, nan, -2.0, 0.5], [nan, nan, nan, nan], [3.0, 3.0, -inf, 0.0]])

Case = tuple[Callable[..., Any], tuple[Any, ...]]


def _special(name: str) -> Callable[..., Any]:
    return getattr(T.special, name)


VALUES: dict[str, Case] = {
    **{
        name: (_special(name), (T.cat([POINTS, EDGES]),))
        for name in """
        bessel_j0 bessel_j1 modified_bessel_i0 modified_bessel_i1 i0e i1 i1e erfcx log_ndtr
        spherical_bessel_j0 airy_ai
        """.split()
    },
    **{
        name: (_special(name), (T.cat([POSITIVE, T.tensor([-1.0])]),))
        for name in """
        bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0
        scaled_modified_bessel_k1
        """.split()
    },
    "ndtri": (T.special.ndtri, (T.tensor([0.0, 1e-9, 0.01, 0.3, 0.5, 0.9, 0.999, 1.0, 1.5, nan]),)),
    "i0": (T.i0, (POINTS,)),
    **{
        f"polygamma {n}": (lambda x, n=n: T.polygamma(n, x), (POINTS + 0.013,)) for n in range(1, 5)
    },
    "zeta": (T.special.zeta, (T.tensor([1.0, 1.5, 2.0, 3.0, 4.0, 0.5]), T.full((6,), 2.5))),
    "zeta of numbers": (
        lambda x: (T.special.zeta(x, 2.0), T.special.zeta(2.5, x)),
        (T.tensor([1.5, 2.0, 3.0, 4.0]),),
    ),
    "igamma": (T.igamma, (T.linspace(0.2, 14, 30), T.linspace(9, 0, 30))),
    "igammac": (T.igammac, (T.linspace(0.2, 14, 30), T.linspace(9, 0, 30))),
    "mvlgamma": (lambda x: T.mvlgamma(x, 3), (POSITIVE[5:40] + 1,)),
    **{
        name: (
            _special(name),
            (T.linspace(-1.3, 1.4, 24).reshape(3, 8), T.tensor([[0], [1], [9]])),
        )
        for name in (
            *(f"chebyshev_polynomial_{kind}" for kind in "tuvw"),
            *(f"shifted_chebyshev_polynomial_{kind}" for kind in "tuvw"),
            *("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l"),
            "legendre_polynomial_p",
        )
    },
    "fmax": (T.fmax, (HOLES, HOLES.flip(1))),
    "fmin of integers": (T.fmin, (COUNTS, COUNTS.flip(1))),
    "angle": (T.angle, (T.tensor([1.0, -1.0, 0.0, nan, -inf]),)),
    "addbmm": (
        lambda x, a, b: T.addbmm(x, a, b, beta=0.5, alpha=2),
        (T.ones(3, 2), T.ones(2, 3, 4), T.ones(2, 4, 2)),
    ),
    "round to tens": (lambda x: T.round(x * 100, decimals=-1), (POINTS,)),
    "round to tenths": (lambda x: T.round(x, decimals=1), (POINTS,)),
    "diagonal_scatter": (
        lambda x, s: T.diagonal_scatter(x, s, -1, 1, 0),
        (T.zeros(3, 5, 2), T.linspace(1, 6, 6).reshape(2, 3)),
    ),
    "gcd": (T.gcd, (T.tensor([12, 0, -7, 128, 0]), T.tensor([18, 5, 21, -36, 0]))),
    "lcm": (T.lcm, (T.tensor([12, 0, -7, 128, 0]), T.tensor([18, 5, 21, -36, 0]))),
    "frexp": (T.frexp, (T.tensor([1.0, -0.75, 0.0, 1e-30, 3e30, 1e-38, -inf]),)),
    "cdist": (lambda x, y: [T.cdist(x, y, p) for p in (0.0, 3.0, inf)], (TALL, TALL[:2] + 1)),
    "pdist": (lambda x: [T.nn.functional.pdist(x, p) for p in (0.0, 2.0, inf)], (TALL,)),
    "shifts": (lambda x: (x << 2, x >> 1), (COUNTS,)),
    "masked_scatter": (lambda x, s: x.masked_scatter(x > 1, s), (COUNTS, T.arange(30))),
    "nonzero_static": (
        lambda x: (T.nonzero_static(x, size=4), T.nonzero_static(x, size=17, fill_value=-7)),
        (COUNTS,),
    ),
    "put": (
        lambda x, i, s: (x.put(i, s), x.put(i, s, accumulate=True)),
        (COUNTS, T.tensor([[0, -1], [5, 3]]), T.tensor([[9, 8], [7, 6]])),
    ),
    "median": (lambda x: (x.median(), x[0].median(), x[2].median()), (HOLES,)),
    "nanmedian": (
        lambda x: (*x.nanmedian(1), x.nanmedian(), *x[:, :1].nanmedian(0, True)),
        (HOLES[::2],),
    ),
    "mode": (lambda x: (*x.mode(1), *x.mode(0, keepdim=True)), (COUNTS,)),
    "histc": (
        lambda x: (T.histc(x, 5), T.histc(x, 4, -3, 7), T.histc(x, 9, 0.5, 0.5), T.histc(x[:0], 3)),
        (T.cat([POINTS, T.tensor([7.0, -3.0])]),),
    ),
    "histogram": (
        lambda x: (*T.histogram(x, 5), *T.histogram(x, 4, range=(-3.0, 7.0), density=True)),
        (POINTS,),
    ),
    "index_reduce": (
        lambda x, i, s: [
            x.index_reduce(0, i, s, reduce, include_self=own)
            for reduce in ("prod", "mean", "amax", "amin")
            for own in (True, False)
        ],
        (MATRIX, T.tensor([2, 0, 2]), MATRIX[:3] + 1),
    ),
    "segment_reduce": (
        lambda x, n: [
            T.segment_reduce(x, reduce, lengths=n, axis=0, unsafe=True)
            for reduce in ("sum", "mean", "max", "min", "prod")
        ],
        (TALL, T.tensor([2, 0, 3])),
    ),
    "windows of storage": (
        lambda x: (
            x.as_strided((3, 2), (3, 2), 1),
            T.as_strided_scatter(x, x[:2, :2] * 0, (2, 2), (4, 3), 2),
        ),
        (TALL,),
    ),
    "det": (lambda x: (T.linalg.det(x), *T.linalg.slogdet(x), T.logdet(x @ x.T)), (MATRIX,)),
    "solve": (
        lambda x, b: (
            *(T.linalg.solve(x, b), T.linalg.solve(x, b.T, left=False), T.linalg.inv(x)),
            T.linalg.solve_triangular(x.triu(), b, upper=True),
            T.linalg.lu_solve(*T.linalg.lu_factor(x), b),
        ),
        (MATRIX, SIDE),
    ),
    "lu": (lambda x, y: (*T.linalg.lu(x), *T.linalg.lu(y)), (MATRIX, TALL)),
    "cholesky": (
        lambda x, b: (
            *(T.linalg.cholesky(x), T.linalg.cholesky(x, upper=True)),
            T.cholesky_solve(b, T.linalg.cholesky(x)),
            T.cholesky_inverse(T.linalg.cholesky(x)),
        ),
        (SYMMETRIC, SIDE),
    ),
    "qr": (lambda x: (*T.linalg.qr(x), *T.linalg.qr(x, "complete"), *T.geqrf(x.T)), (TALL,)),
    "spectra": (
        lambda x, y: (
            *(T.linalg.svdvals(x), T.linalg.svdvals(x.T), T.linalg.eigvalsh(y)),
            *(T.linalg.pinv(x), T.linalg.matrix_norm(x, "nuc"), T.linalg.matrix_rank(x)),
        ),
        (TALL, SYMMETRIC),
    ),
    # A matrix that is none of those: only the lower triangle is read.
    "one triangle": (lambda x: (T.linalg.pinv(x, hermitian=True),), (MATRIX[:2, :2] * 2,)),
    "pools with places": (
        lambda x, v: (
            *T.nn.functional.max_pool2d(x, 3, 2, 1, ceil_mode=True, return_indices=True),
            *T.nn.functional.max_pool2d(x, 2, 1, 0, 2, return_indices=True),
            *T.nn.functional.adaptive_max_pool2d(x, (3, 4), return_indices=True),
            *T.nn.functional.max_pool3d(v, 2, 1, 1, return_indices=True),
        ),
        (IMAGE, IMAGE.reshape(1, 2, 3, 4, 9)),
    ),
    "statistics of norms": (
        lambda x, w: (
            *A.native_layer_norm(x, [9], w, None, 1e-5),
            *A.native_group_norm(x, None, None, 1, 4, 54, 2, 1e-5),
            *A._native_batch_norm_legit.no_stats(x, None, None, True, 0.1, 1e-5)[:1],
        ),
        (IMAGE, T.linspace(1, 2, 9)),
    ),
    "padding that cuts off": (
        lambda x: [
            T.nn.functional.pad(x, (-1, 2, 1, -2), mode)
            for mode in ("reflect", "replicate", "circular")
        ],
        (IMAGE,),
    ),
    "convolutions in space": (
        lambda x, w: (
            T.nn.functional.conv3d(x, w, dilation=(1, 2, 3)),
            T.nn.functional.conv3d(x, w, padding="same"),
            T.nn.functional.conv_transpose3d(
                x, w, stride=(1, 2, 3), padding=1, output_padding=(0, 1, 1)
            ),
            T.nn.functional.conv_transpose3d(x, w, dilation=2),
        ),
        (IMAGE.reshape(1, 2, 3, 4, 9), T.linspace(-1, 1, 48).reshape(2, 2, 2, 2, 3).sin()),
    ),
    "bags from offsets": (
        lambda w, i, o: [
            T.nn.functional.embedding_bag(i, w, o, mode=mode, padding_idx=padding)
            for mode in ("sum", "mean", "max")
            for padding in (None, 2)
        ],
        (MATRIX, T.tensor([0, 2, 1, 3, 3]), T.tensor([0, 2, 2, 4])),
    ),
    "attention of one head for several": (
        lambda q, k: T.nn.functional.scaled_dot_product_attention(q, k, k, is_causal=True),
        (IMAGE[0, :, :, :8], IMAGE[0, None, :, :, :8].expand(3, 4, 6, 8) * 1.0),
    ),
    "writes by masks": (
        lambda x, v: (
            A.index_put(x, [x[:, 0] > 0.5], v[:3]),
            A.index_put(x, [x > 2], v[0, :3], True),
        ),
        (MATRIX, MATRIX + 9),
    ),
    "limits in any order": (
        lambda x, v, i: T.searchsorted(x, v, sorter=i),
        (T.tensor([3.0, 1.0, 2.0]), POINTS, T.tensor([1, 2, 0])),
    ),
    "products with packed weights": (
        lambda x, w, s: A._weight_int8pack_mm(x, w, s),
        (MATRIX, T.arange(16, dtype=T.int8).reshape(4, 4), T.ones(4) * 0.5),
    ),
    "Fourier transforms": (
        lambda x: (
            T.view_as_real(T.fft.rfft(x)),
            T.fft.irfft(T.fft.rfft(x, norm="ortho"), n=9, norm="ortho"),
            T.fft.irfft2(T.fft.rfft2(x * 2)),
            T.fft.fft2(x).abs(),
            T.fft.ifft(x).real,
            T.fft.fft(x).mH.imag,
        ),
        (IMAGE,),
    ),
    "short Fourier transforms": (
        lambda x: T.view_as_real(T.stft(x, 8, 4, window=T.hann_window(8), return_complex=True)),
        (POINTS,),
    ),
    "places in triangles": (
        lambda x: x[tuple(T.triu_indices(4, 4, 1))] + x[tuple(T.tril_indices(4, 4, -1))],
        (MATRIX,),
    ),
    "sorted places": (lambda x: T.argsort(x, dim=1, stable=True), (COUNTS,)),
    "slices of a norm": (lambda x: T.renorm(x, 2, 0, 1.5), (MATRIX,)),
    "batch norms by given statistics": (
        lambda x, w, v: (
            *A.native_batch_norm(x, w, None, w * 2, v * 1, True, 0.1, 1e-5),
            *A.native_batch_norm(x, w, None, w * 2, v, False, 0.1, 1e-5),
            *A._native_batch_norm_legit_no_training(x, None, w, w, v, 0.1, 1e-3)[:2],
            *A._batch_norm_no_update(x, w, w, w, v, 0.1, 1e-5)[:3],
        ),
        (IMAGE, T.linspace(-1, 2, 4), T.linspace(0.5, 3, 4)),
    ),
    "batch norms of the input": (
        lambda x, w: A.native_batch_norm(x, w, w, None, None, True, 0.1, 1e-5),
        (IMAGE, T.linspace(-1, 2, 4)),
    ),
    "numbers next to others": (
        lambda x, y: (T.nextafter(x, y), T.nextafter(y, x), T.nextafter(x, -x)),
        (POINTS, EDGES[:, None]),
    ),
    "windows of signals": (
        lambda x: (
            x * T.bartlett_window(4),
            x * T.bartlett_window(4, periodic=False),
            x * T.kaiser_window(4, True, 8.0),
            x * T.kaiser_window(4, False),
            x + T.range(1, 2.5, 0.5),
        ),
        (MATRIX,),
    ),
    "internal forms": (
        lambda x: (
            *A._is_all_true(x > 0)[None],
            *A._is_any_true(x > 0)[None],
            A._logcumsumexp(x, 1),
            A._stack([x, x * 2], 1),
            *A.aminmax(x, dim=1),
            x.new_empty_strided((2, 3), (1, 2)).fill_(2.0),
            T.empty_strided((2, 2), (2, 1)).zero_(),
        ),
        (MATRIX,),
    ),
    "convolution of times": (
        lambda x, w: T.conv_tbc(x, w, w[0, 0], 1),
        (IMAGE.reshape(6, 9, 4), T.linspace(-1, 1, 24).reshape(3, 4, 2).sin()),
    ),
    "product of three": (
        lambda x, y: (
            T._trilinear(x, IMAGE[0, :, :4, :4], y, [1, 3], [0], [1, 2], [2, 3]),
            T._trilinear(x, x, x, [], [], [], [0]),
        ),
        (MATRIX, MATRIX + 1),
    ),
    "softmax of what masks leave": (
        lambda x: (
            T._masked_softmax(x, x[0, 0, :, :6] > 0.5, 3, 0),
            T._masked_softmax(x, x.flip(3) > 0.5, 3, 2),
        ),
        (IMAGE[:, :, :, :6],),
    ),
    "sum of products of integers": (
        lambda x, a: T.addbmm(x, a, a.transpose(1, 2), beta=2),
        (COUNTS[:, :3].int(), COUNTS.reshape(2, 3, 3).int()),
    ),
    "exponential of a matrix": (T.linalg.matrix_exp, (MATRIX,)),
}

TOGETHER = 12
"""Number of cases that are compiled as one program."""


def _exported(cases: list[Case]) -> tuple[str, list[Any], list[Any]]:
    arguments = [each for _, given in cases for each in given]

    class Module(torch.nn.Module):
        def forward(self, *values: torch.Tensor) -> Any:
            results, at = [], 0
            for function, given in cases:
                made = function(*values[at : at + len(given)])
                results.extend([made] if isinstance(made, torch.Tensor) else made)
                at += len(given)
            return tuple(results)

    module = Module().eval()
    return ttcodegen.torch.export(module, arguments), arguments, module(*arguments)


def run(text: str, *inputs: np.ndarray) -> list[np.ndarray]:
    """Outputs of the exported program in numpy."""
    return Golden(read(text)).run("forward", inputs)


@pytest.mark.parametrize("begin", range(0, len(VALUES), TOGETHER))
def test_values(begin: int) -> None:
    names = list(VALUES)[begin : begin + TOGETHER]
    text, arguments, expected = _exported([VALUES[name] for name in names])
    inputs = [each.numpy() for each in arguments]
    inputs = [each.astype(np.int32) if each.dtype == np.int64 else each for each in inputs]
    for result, want in zip(run(text, *inputs), expected, strict=True):
        got = torch.from_numpy(result.copy())  # Torch takes no negative strides.
        torch.testing.assert_close(
            got, want, rtol=2e-4, atol=2e-4, check_dtype=False, equal_nan=True
        )


def test_sum_of_products_keeps_the_type_of_integers() -> None:
    case = (lambda x, a: T.addbmm(x, a, a), (COUNTS[:, :3].int(), COUNTS.reshape(2, 3, 3).int()))
    text, arguments, expected = _exported([case])
    (found,) = run(text, *(each.numpy() for each in arguments))
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected[0].numpy())


def test_numbers_of_other_distributions() -> None:
    case = (
        lambda x: (
            A.geometric(x, 0.25),
            A.log_normal(x, 0.5, 0.25),
            A.cauchy(x, 3.0, 0.5),
        ),
        (T.zeros(64, 64),),
    )
    text, arguments, _ = _exported([case])
    trials, sizes, places = run(text, *(each.numpy() for each in arguments))
    assert trials.min() == 1
    np.testing.assert_array_equal(trials, np.floor(trials))
    np.testing.assert_allclose(trials.mean(), 4, rtol=0.1)
    np.testing.assert_allclose(np.log(sizes).mean(), 0.5, atol=0.05)
    np.testing.assert_allclose(np.log(sizes).std(), 0.25, atol=0.05)
    np.testing.assert_allclose(np.quantile(places, [0.25, 0.5, 0.75]), [2.5, 3, 3.5], atol=0.1)


def test_vectors_of_spectra_put_the_matrix_together() -> None:
    text, arguments, _ = _exported(
        [
            (lambda x: T.linalg.svd(x, full_matrices=True), (TALL,)),
            (T.linalg.eigh, (SYMMETRIC,)),
        ]
    )
    u, s, vh, values, vectors = run(text, *(each.numpy() for each in arguments))
    np.testing.assert_allclose((u[:, :3] * s) @ vh, TALL.numpy(), atol=1e-4)
    np.testing.assert_allclose(u.T @ u, np.eye(5), atol=1e-4)
    np.testing.assert_allclose((vectors * values) @ vectors.T, SYMMETRIC.numpy(), atol=1e-3)


def test_complex_equations_are_real_ones_of_both_parts() -> None:
    a, b = MATRIX + 1j * MATRIX.T, SIDE - 2j * SIDE.flip(0)
    cases: list[Case] = [
        (lambda a, b: T.view_as_real(T.linalg.solve(a, b)), (a, b)),
        (lambda a, b: T.view_as_real(T.linalg.solve(a, b.mT, left=False).resolve_conj()), (a, b)),
        (lambda a: T.view_as_real(T.linalg.inv(a)), (a,)),
        (lambda a, b: T.view_as_real(T.linalg.solve(a, b[:, 0])), (a, b)),
    ]
    text, arguments, expected = _exported(cases)
    given = [T.view_as_real(each.resolve_conj()).contiguous().numpy() for each in arguments]
    for found, want in zip(run(text, *given), expected, strict=True):
        np.testing.assert_allclose(found, want.numpy(), rtol=1e-4, atol=1e-5)


def test_factors_of_matrices_without_columns() -> None:
    cases: list[Case] = [
        (lambda x: (*T.linalg.qr(x, "complete"), T.linalg.lu(x)[0]), (T.zeros(3, 0),)),
        (
            lambda x: (T.linalg.det(x), *T.linalg.slogdet(x), *T.linalg.inv_ex(x)),
            (T.zeros(2, 2, 0, 0),),
        ),
        (lambda x: T.linalg.svd(x)[0], (T.zeros(3, 0),)),
    ]
    text, arguments, expected = _exported(cases)
    for found, want in zip(run(text, *(x.numpy() for x in arguments)), expected, strict=True):
        np.testing.assert_array_equal(found, want.numpy())


def test_arguments_that_are_views() -> None:
    whole = T.linspace(-3, 3, 216).reshape(4, 6, 9).cos()
    text, arguments, expected = _exported(
        [(lambda x, y: (T.fft.irfft2(T.fft.rfft2(x * 2)), T.fft.ifft(y).real), (whole[0], whole))]
    )
    for found, want in zip(run(text, *(x.numpy() for x in arguments)), expected, strict=True):
        np.testing.assert_allclose(found, want.numpy(), atol=1e-4)


@pytest.mark.parametrize(
    ("function", "argument", "message"),
    [
        (T.nonzero, COUNTS, "depends on the values of its input"),
        (lambda x: T.linalg.inv(x), T.eye(65), "more than 64 columns"),
        (T.bincount, COUNTS[2], "depends on the values of its input"),
    ],
)
def test_refusals_name_the_line(function: Any, argument: Any, message: str) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return function(x)

    with pytest.raises(CompileError, match=message):
        ttcodegen.torch.export(Module().eval(), (argument,))


def test_random_numbers_have_their_distributions() -> None:
    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dropout = torch.nn.Dropout(0.25)

        def forward(self, x: torch.Tensor, p: torch.Tensor) -> Any:
            return (
                *(T.rand_like(x), T.randn(64, 64), T.bernoulli(x * 0.3), self.dropout(x)),
                *(T.randint(3, 9, (64, 64)), T.randperm(32), T.multinomial(p, 3)),
            )

    weights = T.tensor([0.1, 0.0, 0.6, 0.3])
    text = ttcodegen.torch.export(Module(), (T.ones(64, 64), weights))
    found = run(text, np.ones((64, 64), np.float32), weights.numpy())
    uniform, normal, coins, dropped, integers, permutation, drawn = found
    moments = [(each.mean(), each.std()) for each in (uniform, normal, coins, dropped)]
    expected = [(0.5, 0.289), (0.0, 1.0), (0.3, 0.458), (1.0, 0.577)]
    np.testing.assert_allclose(moments, expected, atol=0.06)
    assert set(integers.flatten()) == set(range(3, 9))
    assert sorted(permutation) == list(range(32))
    assert sorted(drawn) == [0, 2, 3]


def test_groups_of_experts() -> None:
    rows, ends = IMAGE[0, 0].bfloat16(), T.tensor([2, 2, 6], dtype=T.int32)
    weights = T.linspace(-1, 1, 3 * 9 * 16).reshape(3, 9, 16).sin().bfloat16()
    found = DECOMPOSITIONS["_grouped_mm"](rows, weights, ends)
    expected = T.cat([rows[:2] @ weights[0], rows[2:] @ weights[2]])
    torch.testing.assert_close(found, expected)


OF_OLDER_VERSIONS = {"cholesky"}
"""Operations that PyTorch has no more since 2.14."""


def test_names_are_those_of_operations() -> None:
    for name in DECOMPOSITIONS:
        operation, _, overload = name.partition(".")
        if operation == "grouped_mm_fallback":
            continue  # Of transformers.
        packet = getattr(A, operation, None)
        if packet is None and operation in OF_OLDER_VERSIONS:
            continue
        assert not overload or overload in packet.overloads()
