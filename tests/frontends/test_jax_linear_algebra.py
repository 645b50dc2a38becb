"""Linear algebra and Fourier transforms of jax, and gradients through them, against jax."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# A folder of examples may be found as `jax` where jax itself is not installed.
pytest.importorskip("jax.extend.backend", reason="jax is not installed: pip install jax")
import jax
import jax.numpy as jnp

import ttcodegen
import ttcodegen.jax
from tests.frontends.running import read
from ttcodegen.numerics.golden_values import Golden

pytestmark = pytest.mark.frameworks
L, S, F = jnp.linalg, jax.scipy.linalg, jnp.fft
GENERATOR = np.random.default_rng(3)


def drawn(*shape: int) -> np.ndarray:
    return GENERATOR.normal(size=shape).astype(np.float32)


MATRICES, SQUARE, TALL, WAVES = drawn(2, 5, 5), drawn(4, 4), drawn(5, 3), drawn(2, 3, 15)
SYMMETRIC = (MATRICES @ MATRICES.swapaxes(1, 2) + np.eye(5)).astype(np.float32)
POSITIVE = SYMMETRIC[0]


def _svd(a: Any) -> Any:
    """Singular values, and what does not depend on the signs of their vectors."""
    u, s, vh = L.svd(a)
    return s, (u[:, : s.size] * s) @ vh[: s.size], u @ u.T, vh @ vh.T


def _eigh(a: Any) -> Any:
    values, vectors = L.eigh(a)
    return values, (vectors * values[..., None, :]) @ vectors.swapaxes(-1, -2)


def _apply_q(a: Any) -> Any:
    h, tau = L.qr(a, mode="raw")
    return jax.lax.linalg.ormqr(h.mT, tau, jnp.ones((5, 2)))


Case = tuple[Callable[..., Any], np.ndarray]
FUNCTIONS: dict[str, Case] = {
    "fft": (lambda x: (F.fft(x), F.ifft(x + 1j * x[:, ::-1]), F.fft2(x), F.fftn(x)), WAVES),
    "rfft": (lambda x: (F.rfft(x), F.irfft(F.rfft(x)), F.irfft(F.rfft(x), 15)), WAVES),
    "rfft2": (lambda x: (F.rfft2(x), F.irfft2(F.rfft2(x), x.shape[1:])), WAVES),
    "hfft": (lambda x: (F.hfft(x), F.ihfft(x), F.fft(x, norm="ortho").real), WAVES),
    "gradient of fft": (
        jax.grad(lambda x: jnp.sum(jnp.abs(F.rfft(x)) ** 2 * jnp.arange(8.0))),
        WAVES,
    ),
    "cholesky": (lambda a: (L.cholesky(a), L.cholesky(a, upper=True)), SYMMETRIC),
    "no cholesky": (L.cholesky, -SYMMETRIC),
    "cho_solve": (lambda a: S.cho_solve(S.cho_factor(a), jnp.ones(5)), POSITIVE),
    "solve": (lambda a: (L.solve(a, jnp.ones((5, 2))), L.inv(a), L.solve(a, a[..., :1])), MATRICES),
    "det": (lambda a: (L.det(a), *L.slogdet(a)), MATRICES),
    "lu": (lambda a: (*S.lu(a), *S.lu(a.T)), TALL),
    "lu_solve": (
        lambda a: (
            *S.lu_factor(a),
            S.lu_solve(S.lu_factor(a), jnp.ones(4)),
            S.lu_solve(S.lu_factor(a), jnp.ones(4), trans=1),
        ),
        SQUARE,
    ),
    "solve_triangular": (
        lambda a: (
            S.solve_triangular(a, jnp.ones((5, 2)), lower=True),
            S.solve_triangular(a, jnp.ones((5, 2)), trans=1, unit_diagonal=True),
        ),
        POSITIVE,
    ),
    "qr": (lambda a: (*L.qr(a), *L.qr(a, mode="complete"), *L.qr(a.T), _apply_q(a)), TALL),
    "expm": (S.expm, SQUARE),
    "matrix_power": (lambda a: L.matrix_power(a, -2), SQUARE),
    "eigh": (lambda a: (*_eigh(a), L.eigvalsh(a)), SYMMETRIC),
    "svd": (lambda a: (*_svd(a), *_svd(a.T), L.pinv(a)), TALL),
    "svdvals": (
        lambda a: (L.svdvals(a), L.matrix_rank(a), L.norm(a, ord=2, axis=(1, 2))),
        MATRICES,
    ),
    "lstsq": (lambda a: (*L.lstsq(a, jnp.ones(5))[:3], L.cond(a)), TALL),
    "logpdf": (
        lambda a: jax.scipy.stats.multivariate_normal.logpdf(jnp.ones(5), jnp.zeros(5), a),
        POSITIVE,
    ),
    "gradient of logdet": (jax.grad(lambda a: L.slogdet(a)[1] + L.det(a)), SQUARE),
    "gradient of solve": (jax.grad(lambda a: jnp.sum(L.solve(a, jnp.ones(4)) ** 2)), SQUARE),
    "gradient of cholesky": (
        jax.grad(lambda a: jnp.sum(L.cholesky(a) ** 2 * jnp.arange(5.0))),
        POSITIVE,
    ),
    "gradient of qr": (jax.grad(lambda a: jnp.sum(L.qr(a)[1] ** 2 * jnp.arange(3.0))), TALL),
    "gradient of eigh": (
        jax.grad(lambda a: jnp.sum(L.eigh(a)[0] ** 2 * jnp.arange(5.0))),
        POSITIVE,
    ),
    "gradient of svd": (
        jax.grad(lambda a: jnp.sum(L.svd(a, full_matrices=False)[1] * jnp.arange(3.0))),
        TALL,
    ),
    "batched by vmap": (jax.vmap(lambda a: (L.inv(a), L.cholesky(a @ a.T)), in_axes=0), MATRICES),
    "zeta": (
        lambda a: jax.scipy.special.zeta(jnp.abs(a) * 4 + 1.01, jnp.abs(a.T) * 3 + 0.1),
        SQUARE,
    ),
    "polygamma": (
        lambda a: (
            *(jax.scipy.special.polygamma(n, jnp.abs(a) + 0.1) for n in (0, 1, 2, 5)),
            jax.scipy.special.polygamma(jnp.arange(4), jnp.abs(a) + 0.1),
            jax.grad(lambda x: jnp.sum(jax.scipy.special.digamma(x)))(a),
        ),
        SQUARE,
    ),
}


def _expected(function: Callable[..., Any], argument: np.ndarray) -> list[np.ndarray]:
    """Results of jax, complex ones as pairs."""
    found = [np.asarray(each) for each in jax.tree.leaves(jax.jit(function)(argument))]
    return [np.stack([x.real, x.imag], -1) if np.iscomplexobj(x) else x for x in found]


def _close(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    """Errors are small beside the largest element."""
    assert found.shape == expected.shape
    known = expected[np.isfinite(expected)]
    scale = max(np.abs(known).max(initial=0), 1e-3)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_jax_computes_it(name: str) -> None:
    function, argument = FUNCTIONS[name]
    text = jax.jit(function).lower(argument).as_text()
    results = Golden(read(text)).run("main", [argument])
    for found, expected in zip(results, _expected(function, argument), strict=True):
        _close(found, expected, 2e-5)


IN_MATRIX_ENGINE = 4e-3
"""Tolerance of products and sums of TF32."""
IN_CPP = {
    "rfft": IN_MATRIX_ENGINE,
    "fft": IN_MATRIX_ENGINE,
    "cholesky": 1e-5,
    "solve": 1e-5,
    "det": IN_MATRIX_ENGINE,
    "lu_solve": 1e-5,
    "solve_triangular": 1e-5,
    "qr": 1e-5,
    "expm": 1e-5,
    "zeta": 1e-5,
    "gradient of solve": IN_MATRIX_ENGINE,
    "gradient of cholesky": 1e-4,
}
"""Functions that are built, and how close they are."""
BY_ROTATIONS = {"eigh": IN_MATRIX_ENGINE, "svd": IN_MATRIX_ENGINE, "svdvals": 1e-5}


@pytest.mark.slow
@pytest.mark.parametrize("names", [IN_CPP, BY_ROTATIONS])
def test_in_cpp(names: dict[str, float], tmp_path: Path) -> None:
    """One program of all, as each would be built for itself."""
    given = {name: FUNCTIONS[name] for name in names}

    def together(*arguments: Any) -> Any:
        return [f(x) for (f, _), x in zip(given.values(), arguments, strict=True)]

    arguments = [argument for _, argument in given.values()]
    out = ttcodegen.jax.compile(together, *arguments, out=tmp_path / "out", build=True, optimize=0)
    with ttcodegen.load(out) as model:
        results = model(*arguments)
    for (name, case), found in zip(given.items(), results, strict=True):
        leaves = [np.asarray(each) for each in jax.tree.leaves(found)]
        leaves = [np.stack([x.real, x.imag], -1) if np.iscomplexobj(x) else x for x in leaves]
        for got, expected in zip(leaves, _expected(*case), strict=True):
            _close(got, expected, names[name])
