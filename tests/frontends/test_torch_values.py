"""Values that PyTorch gives where a lowering easily gives others: at the ends of types, of scalars
and of nothing, for NaN and for arguments that are rarely used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

import ttcodegen.torch  # noqa: E402
from tests.frontends.running import run  # noqa: E402
from ttcodegen.foundation.diagnostics import CompileError  # noqa: E402
from ttcodegen.frontends.torch.graph import tensor_array  # noqa: E402

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]
F = torch.nn.functional
T = torch.tensor
nan, inf = float("nan"), float("inf")

MATRIX = torch.arange(12.0).reshape(3, 4).sin()
WHOLE = T([[7, -2147483648, 3], [-2147483648, 5, 2147483647]], dtype=torch.int32)
BYTES = T([[7, 0, 255], [0, 200, 1]], dtype=torch.uint8)
SMALL = T([[7, -128, 127], [-128, 5, 0]], dtype=torch.int8)
BITS = T([[True, False, True], [True, True, True]])
IMAGE = (torch.arange(96) * 37 % 256).to(torch.uint8).reshape(1, 3, 4, 8)
SCALAR = T(2.5)
NOTHING = torch.zeros(0, 3)
WITH_NAN = T([[1.0, nan, 3.0], [nan, nan, 0.0], [2.0, 1.0, 0.0], [5.0, 7.0, nan]])

QUERIES, KEYS = (torch.arange(480.0).reshape(1, 6, 5, 16).mul(k).sin() for k in (0.7, 1.3))
SEEN = torch.ones(5, 5, dtype=torch.bool).tril() & (torch.arange(5) > 1)[:, None]

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "attention to values of another size, of rows that see nothing": (
        lambda q, k, m: F.scaled_dot_product_attention(q, k, k[..., :8], attn_mask=m),
        (QUERIES, KEYS, SEEN),
    ),
    "attention with fewer heads of values than of keys": (
        lambda q, k, m: F.scaled_dot_product_attention(
            q, k[:, :3], k[:, 3:5, :, :8], attn_mask=m, enable_gqa=True
        ),
        (QUERIES, KEYS, SEEN),
    ),
    **{
        f"lowest of {x.dtype}": (
            lambda x: (x.argmin(), x.argmin(1), *x.min(1), *x.max(0), x.argmax(1, keepdim=True)),
            (x,),
        )
        for x in (WHOLE, BYTES, SMALL)
    },
    "slices at positions that are computed": (
        lambda x, i: (x[i], x[:, i - 1], x[i, -i], x.take(i), x.long().take(-i[None]), x[i] > 0),
        (MATRIX, T(2)),
    ),
    "lowest of booleans": (lambda x: (*x.min(1), *x.max(1)), (BITS,)),
    "corrections": (
        lambda x: (
            x.var(1, correction=1.5),
            x.std(1, correction=0.5),
            x.var(1, correction=5),
            x[:, :1].var(1),
            x[:, :1].std(1, unbiased=True),
            *torch.var_mean(x, dim=0, correction=2.25),
        ),
        (MATRIX,),
    ),
    "no dimensions": (
        lambda x, b: (x.flip(()), b.all(dim=()), b.any(dim=()), x.sum(()), x.amax(())),
        (MATRIX, BITS),
    ),
    "logarithms of sums of integers": (
        lambda x, b: (x.logsumexp(1), b.logsumexp((0, 1))),
        (BYTES % 8, BITS),
    ),
    "softmax of hidden rows": (
        lambda x: torch.ops.aten._safe_softmax(x, -1),
        (T([[-inf, -inf], [1.0, 2.0], [-inf, 3.0]]),),
    ),
    "NaN in running extremes": (lambda x: (*x.cummax(1), *x.cummin(0)), (WITH_NAN,)),
    "signs of NaN": (lambda x: (x.sign(), (x - 1).sgn(), x.bfloat16().sign()), (WITH_NAN,)),
    "NaN in medians": (lambda x: (*x.median(1), *x.median(0, keepdim=True)), (WITH_NAN,)),
    "pools with divisors whose sizes are rounded up": (
        lambda x: (
            F.avg_pool2d(x, (4, 3), (3, 2), 1, True, False, 5),
            F.avg_pool2d(x, 2, 3, 0, True, True, 3),
            F.avg_pool1d(x[0], 3, 2, 1, True),
            F.avg_pool3d(x, 2, (1, 3, 3), (0, 1, 1), True, True, 2),
        ),
        (torch.arange(2.0 * 3 * 7 * 9).reshape(2, 3, 7, 9).sin(),),
    ),
    "views of bits": (
        lambda x, i, b, m: (
            x.view(torch.int32),
            (x.view(torch.int32) >> 23) & 255,
            torch.ops.aten.view_copy.dtype(i, torch.float32),
            b.view(torch.int8),
            m.view(torch.uint8),
            m.view(torch.uint8).view(torch.bool),
        ),
        (MATRIX, T([[0, 1065353216], [-1082130432, 2139095040]], dtype=torch.int32), BYTES, BITS),
    ),
    "sums of booleans by place": (
        lambda x, i, m: (
            x.index_put((i,), x[:, :1].expand(2, 3), accumulate=True),
            x.index_put((m,), T([True]), accumulate=True),
            torch.scatter_add(x, 1, (i % 2)[:, None].expand(2, 2), x),
            torch.scatter_reduce(x, 0, i[:, None].expand(2, 3), ~x, "prod"),
        ),
        (BITS, T([1, 1]), T([[True, False, False], [False, True, True]])),
    ),
    "remainders": (
        lambda x, y: (torch.fmod(x, 3), torch.fmod(x, y), torch.fmod(x, -7)),
        (WHOLE, T([[3, -3, 5], [7, -2, 9]], dtype=torch.int32)),
    ),
    "long sides": (
        torch.hypot,
        (
            T([1e-30, 3e30, inf, 0.0, 3.0, inf, nan, -inf, nan]),
            T([1e-30, 1e30, 1.0, 0.0, -4.0, -inf, inf, nan, 1.0]),
        ),
    ),
    "special functions at their ends": (
        lambda x, y: (
            torch.erfinv(x),
            torch.acosh(y),
            torch.lgamma(-y[3:]),
            torch.digamma(-y[3:]),
            torch.lgamma(y[3:]),
        ),
        (T([1.0, -1.0, 0.5, -0.9]), T([1e20, 1e19, 2.0, 1.0, 2.0, 3.0, 0.0, 1.5, 2.5])),
    ),
    "places of NaN": (
        lambda x, limits: (
            torch.searchsorted(limits, x),
            torch.searchsorted(limits, x, right=True),
            torch.bucketize(x, limits, right=True),
        ),
        (T([nan, -1.0, 5.0, 1.0, 2.0]), T([0.0, 1.0, 2.0])),
    ),
    "products of bytes": (
        lambda x, y: (x @ y, torch.bmm(x[None], y[None]), y[0] @ x[:, 0]),
        (
            (torch.arange(25) * 13).to(torch.uint8).reshape(5, 5),
            (torch.arange(25) * 29).to(torch.uint8).reshape(5, 5),
        ),
    ),
    "clamped integers": (
        lambda x, b: (x.clamp(-5, 1000), x.clamp(max=2147483646), b.clamp(3, 200), x.clamp(0, 6)),
        (WHOLE, BYTES),
    ),
    "crossed bounds": (
        lambda x, low, high: (
            x.clamp(3, -1),
            x.clamp(nan, 2),
            x.clamp(-1, nan),
            x.clamp(max=nan),
            torch.clamp(x, low, high),
            F.hardtanh(x, -1, -1 + 2 * 0.5),
        ),
        (T([-3.0, 0.5, 7.0]), T([3.0, -1.0, 2.0]), T([-1.0, 3.0, 2.0])),
    ),
    "infinite integers": (
        lambda x, b: (x.isinf(), x.isposinf(), b.isneginf(), x.isfinite(), x.isnan()),
        (WHOLE, BYTES),
    ),
    "images of bytes": (
        lambda x: [
            F.interpolate(x, size=size, mode=mode, antialias=smooth, align_corners=False)
            for mode in ("bilinear", "bicubic")
            for size in ((8, 16), (3, 5), (2, 4))
            for smooth in (False, True)
        ],
        (IMAGE,),
    ),
    "means of integers": (
        lambda x: (
            F.avg_pool1d(x[0], 3),
            F.avg_pool2d(x, (3, 2), 2, 1),
            F.avg_pool2d(x, 3, 2, 1, count_include_pad=False, ceil_mode=True),
            F.avg_pool2d(x, 2, divisor_override=3),
            F.avg_pool3d(x[None, :, :2], 2),
        ),
        (IMAGE.long() - 100,),
    ),
    "scalars": (
        lambda x: (
            *x.sort(0),
            *x.topk(1),
            *x.cummax(0),
            *x.kthvalue(1),
            *x.median(0),
            *x.max(0),
            x.argmax(0),
            x.argsort(),
            x.softmax(0),
            x.log_softmax(-1),
            x.logsumexp(0),
            x.cumsum(0),
            x.cumprod(0),
            x.logcumsumexp(0),
            x.std(0),
        ),
        (SCALAR,),
    ),
    "places of scalars": (
        lambda x, at: (
            x.index_select(0, at),
            x.gather(0, at[0]),
            x.unfold(0, 1, 1),
            x.index_copy(0, at, x + 1),
            x.scatter(0, at[0], x * 2),
            x.scatter_reduce(0, at[0], x * 2, "amax", include_self=False),
            x.roll(3),
        ),
        (SCALAR, T([0])),
    ),
    "scattered booleans": (
        lambda x, at: [
            x.scatter_reduce(1, at, ~x[:, :2], each, include_self=False)
            for each in ("amax", "amin")
        ],
        (BITS, T([[0, 2], [1, 0]])),
    ),
    "nothing": (
        lambda x, i: (
            x.roll(1, 0),
            torch.cat([x, x]),
            x.repeat(2, 2),
            x.tile(3),
            x[None].expand(2, -1, -1),
            x.softmax(1),
            x.cumsum(0),
            x.sort(1)[0],
            x.sum(0),
            i.gather(1, torch.zeros(3, 0, dtype=torch.long)),
        ),
        (NOTHING, MATRIX),
    ),
    "losses of images": (
        lambda x, y, w: (
            F.nll_loss(x, y),
            F.nll_loss(x, y, weight=w, reduction="none"),
            F.cross_entropy(x, y, weight=w, ignore_index=1),
            F.cross_entropy(x[..., 0], y[..., 0], reduction="sum"),
        ),
        (
            torch.arange(48.0).reshape(2, 3, 4, 2).sin(),
            torch.arange(16).reshape(2, 4, 2) % 3,
            T([0.5, 1.0, 2.0]),
        ),
    ),
    "histograms of equal elements": (
        lambda x: (*torch.histogram(x, 3), *torch.histogram(x, 2, range=(2.0, 2.0)), x.histc(3)),
        (torch.full((4,), 2.0),),
    ),
    "eigenvalues of nothing": (torch.linalg.eigvalsh, (torch.zeros(2, 0, 0),)),
    "cross entropies of chunks of rows": (
        lambda x, w, y: [
            F.linear_cross_entropy(
                x,
                w,
                y,
                reduction=reduction,
                ignore_index=1,
                options=torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2),
            )
            for reduction in ("none", "mean", "sum")
        ],
        (MATRIX, torch.arange(20.0).reshape(5, 4).cos(), T([4, 1, 0])),
    ),
    "steps between tensors": (
        lambda a, b: (
            torch.linspace(a, b, 7),
            torch.linspace(a, 9, 5),
            torch.linspace(3.0, b, 1),
            torch.logspace(a, b, 4, base=2.0),
        ),
        (T(1.25), T(4.0)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    function, inputs = CASES[name]

    class Module(torch.nn.Module):
        def forward(self, *arguments: Any) -> Any:
            return function(*arguments)

    text = ttcodegen.torch.export(Module().eval(), inputs)
    expected = function(*inputs)
    expected = [expected] if isinstance(expected, torch.Tensor) else expected
    found = run(text, *map(tensor_array, inputs))
    for index, (array, tensor) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_allclose(
            array, tensor_array(tensor), rtol=1e-5, atol=1e-6, err_msg=f"result {index}"
        )


@pytest.mark.parametrize("norm", [torch.nn.GroupNorm(2, 4), torch.nn.LayerNorm(3)])
def test_a_norm_is_refused_whose_variance_is_decreased(norm: Any) -> None:
    norm.eps = -0.5
    with pytest.raises(CompileError, match=r"a norm with eps = -0\.5 is not supported"):
        ttcodegen.torch.export(norm.eval(), (torch.ones(2, 4, 3),))


def test_what_an_op_cannot_be_is_refused_at_the_line_that_asks_for_it() -> None:
    from ttcodegen.frontends.torch.rules import RULES

    def wrong(graph: Any, x: Any, *_: Any) -> Any:
        return graph.emit("reshape", [x], graph.type, shape=[7])

    class Views(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            y = x + 1
            return y.cosh()

    before = RULES["cosh"]
    RULES["cosh"] = wrong
    try:
        with pytest.raises(CompileError) as raised:
            ttcodegen.torch.export(Views().eval(), (torch.ones(2, 3),))
    finally:
        RULES["cosh"] = before
    (diagnostic,) = raised.value.diagnostics
    assert "'cosh' of tensors and arguments like these is not supported" in diagnostic.message
    assert diagnostic.place is not None
    line = Views.forward.__code__.co_firstlineno + 2
    assert diagnostic.place.line == line
