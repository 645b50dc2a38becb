"""Operations of PyTorch one by one: what the import makes of them, against torch itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

import ttcodegen.torch  # noqa: E402
from tests.frontends.running import run  # noqa: E402

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]
F = torch.nn.functional

MATRIX = torch.linspace(-2, 2, 32).reshape(4, 8).sin()
IMAGE = torch.linspace(-3, 3, 216).reshape(1, 4, 6, 9).cos()
PLACES = torch.tensor([[0, 5, 2], [7, 7, 1], [3, 0, 4], [6, 2, 5]])

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "diagonal": (lambda x: (x.diagonal(), x.diagonal(2), torch.diagonal(x, -1)), (MATRIX,)),
    "diagonal of a batch": (lambda x: x.diagonal(1, 1, 3), (IMAGE,)),
    "unfold": (
        lambda x, y: (
            x.unfold(3, 6, 3),
            x.unfold(2, 4, 1),
            x.unfold(1, 2, 2),
            x.unfold(3, 6, 2),
            x.unfold(2, 5, 1),
            x[0, 0, 0].unfold(0, 4, 2),
            (x * 9).long().unfold(3, 3, 2),
            y.unfold(1, 3, 2),
            y.unfold(0, 2, 1),
        ),
        (IMAGE, MATRIX),
    ),
    "complex numbers": (
        lambda x, y: (
            *(
                torch.view_as_real(each)
                for z in (torch.complex(x, y),)
                for each in (
                    *(z**3, z**-2, z**0.5, z.sqrt(), z.square(), z.reciprocal(), z.log()),
                    *(1 / z, 2 - z, (0.5 + 2j) * x, y - 1j, z * 1j, torch.where(x > 0, z, 0.0)),
                    *(z.masked_fill(x > 0, 1.0), z.cumsum(-1).tril(), torch.vdot(z[0], z[1])),
                    *(z @ z.mT, x.to(torch.complex64) @ z.mH, torch.mv(z, z[0])),
                    torch.bmm(z[None], z.H[None]),
                )
            ),
            torch.complex(x, y).norm(dim=-1),
            torch.linalg.vector_norm(torch.complex(x, y)),
            torch.complex(x, y) == torch.complex(x, x),
            torch.complex(x, y) != torch.complex(x, y),
        ),
        (MATRIX, MATRIX.flip(0) + 0.25),
    ),
    "median": (lambda x: (*x.median(1), *x.median(0, keepdim=True), *x.kthvalue(3, 1)), (MATRIX,)),
    "bucketize": (
        lambda x: (
            torch.bucketize(x, torch.tensor([-0.5, 0.0, 0.5])),
            torch.bucketize(x, torch.tensor([-0.5, 0.0, 0.5]), right=True),
            torch.searchsorted(torch.tensor([-0.5, 0.0, 0.5]), x),
            torch.searchsorted(x.sort(-1).values, x * 0.9, right=True),
        ),
        (MATRIX,),
    ),
    "repeated by counts": (
        lambda x, counts: (
            torch.repeat_interleave(x, counts, 0, output_size=6),
            torch.repeat_interleave(x[None], counts[2:3], 1, output_size=12),
            torch.repeat_interleave(counts, output_size=6),
        ),
        (MATRIX, torch.tensor([2, 0, 3, 1])),
    ),
    "bags with padding": (
        lambda x, bags: tuple(
            F.embedding_bag(bags, x, mode=mode, padding_idx=2) for mode in ("sum", "mean")
        ),
        (MATRIX, torch.tensor([[0, 2, 1], [2, 2, 2], [3, 3, 2]])),
    ),
    "logarithms of sums of nothing": (
        lambda x: (x.logsumexp(1), x.logsumexp(0, keepdim=True), x.logcumsumexp(1)),
        (torch.tensor([[-torch.inf] * 3, [0.5, -torch.inf, 2.0]]),),
    ),
    "functions of one row": (
        lambda x, y: (torch.vmap(torch.dot)(x, y), torch.vmap(lambda row: row.softmax(0))(x)),
        (MATRIX, MATRIX + 1),
    ),
    "what is taken apart twice": (
        lambda x, y: (
            torch.ger(x[0], y[0]),
            torch.inner(x, y),
            torch.tensordot(x, y, ([0], [0])),
            torch.addmv(y[:, 0], x, y[0]),
            torch.cartesian_prod(x[0], y[0]),
        ),
        (MATRIX, MATRIX + 1),
    ),
    "limits": (lambda x: (x.isposinf(), x.isneginf(), x.nan_to_num()), (MATRIX / 0.0,)),
    "distances": (lambda x, y: (torch.cdist(x, y), torch.hypot(x, x)), (MATRIX, MATRIX[:3] + 1)),
    "distances of rows": (
        lambda x, y: (F.pairwise_distance(x, y), F.pairwise_distance(x, y, p=1.0, keepdim=True)),
        (MATRIX, MATRIX + 1),
    ),
    "numbers of a quantized model": (
        lambda x: (
            torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -8, 7),
            torch.fake_quantize_per_channel_affine(
                x, torch.linspace(0.1, 0.8, 8), torch.arange(8, dtype=torch.int32), 1, -8, 7
            ),
        ),
        (MATRIX,),
    ),
    "windows": (
        lambda x: (
            x * torch.hann_window(8),
            x * torch.hamming_window(8, periodic=False),
            x * torch.blackman_window(8),
        ),
        (MATRIX,),
    ),
    "copies into parts": (lambda x, y: torch.cat([_put(x, y), x]), (MATRIX, MATRIX[:, 2:3])),
    "parts": (lambda x: (x.unsafe_split(3, 1), x.unsafe_chunk(2, 0)), (MATRIX,)),
    "bags": (
        lambda i, w: [F.embedding_bag(i, w, mode=mode) for mode in ("sum", "mean", "max")],
        (PLACES, torch.linspace(-1, 1, 80).reshape(8, 10).sin()),
    ),
    "weighted bags": (
        lambda i, w, s: F.embedding_bag(i, w, mode="sum", per_sample_weights=s),
        (PLACES, torch.linspace(-1, 1, 80).reshape(8, 10).sin(), MATRIX[:, :3]),
    ),
    "resized": (
        lambda x: (
            F.interpolate(x, scale_factor=2, mode="nearest"),
            F.interpolate(x, scale_factor=2, mode="bilinear"),
            F.interpolate(x, size=(9, 12), mode="nearest"),
            F.interpolate(x, size=(9, 12), mode="bilinear"),
            F.interpolate(x, size=(9, 12), mode="bilinear", align_corners=True),
            F.interpolate(x, size=(4, 5), mode="bilinear"),
            F.interpolate(x, scale_factor=1.5, mode="bilinear"),
            F.interpolate(x, scale_factor=2, mode="bicubic"),
            F.interpolate(x, size=(7, 5), mode="bicubic", align_corners=True),
        ),
        (IMAGE,),
    ),
    "transposed convolutions": (
        lambda x, w: (
            F.conv_transpose1d(x[:, :, 0], w[:, :, 0], stride=2, padding=1),
            F.conv_transpose1d(x[:, :, 0], w[:, :, 0], stride=3, output_padding=1, dilation=2),
            F.conv_transpose2d(x, w, stride=2),
        ),
        (IMAGE, torch.linspace(-1, 1, 72).reshape(4, 2, 3, 3).sin()),
    ),
    "pools of uneven windows": (
        lambda x: (
            F.adaptive_avg_pool2d(x, (4, 5)),
            F.adaptive_max_pool2d(x, (4, 5)),
            F.adaptive_avg_pool1d(x[:, :, 0], 4),
            F.adaptive_max_pool1d(x[:, :, 0], 4),
            F.adaptive_avg_pool3d(x, (3, 2, 4)),
            F.interpolate(x, size=(4, 12), mode="area"),
        ),
        (IMAGE,),
    ),
    "pools of volumes": (
        lambda x: (
            F.max_pool3d(x, 2),
            F.max_pool3d(x, (2, 3, 2), (1, 2, 3), (1, 1, 0), ceil_mode=True),
            F.avg_pool3d(x, 3, 2, 1),
            F.avg_pool3d(x, 2, 1, 1, divisor_override=5),
            F.avg_pool3d(x, (2, 3, 3), 2, 1, count_include_pad=False),
        ),
        (torch.linspace(-3, 3, 1080).reshape(1, 4, 5, 6, 9).cos(),),
    ),
    "resized without aliases": (
        lambda x: [
            F.interpolate(x, size=size, mode=mode, antialias=True)
            for mode in ("bilinear", "bicubic")
            for size in ((3, 4), (2, 20), (5, 9))
        ],
        (IMAGE,),
    ),
    "scattered reductions": (
        lambda x, i: [
            x.scatter_reduce(1, i, -x.abs() - 1, reduce=reduce, include_self=own)
            for reduce in ("sum", "prod", "mean", "amax", "amin")
            for own in (True, False)
        ],
        (MATRIX, PLACES),
    ),
    "scattered integers": (
        lambda x, i: [
            x.scatter_reduce(1, i, x - 40, reduce=reduce, include_self=own)
            for reduce in ("amax", "amin", "mean")
            for own in (True, False)
        ],
        (torch.arange(32, dtype=torch.int32).reshape(4, 8), PLACES),
    ),
    "every second element": (lambda x, y: _put_apart(x, y), (MATRIX, MATRIX[:, 1:4])),
    "new tensors": (lambda x: (x.new_full((2, 3), 1.5), x.new_ones(2), x + 0), (MATRIX,)),
    "norms of weights": (
        lambda x, v, g: F.linear(x, torch._weight_norm(v, g, 0)),
        (MATRIX, MATRIX[:3], torch.tensor([[0.5], [2.0], [-1.0]])),
    ),
    "statistics of the input": (
        lambda x: F.batch_norm(x, None, None, training=True),
        (IMAGE,),
    ),
    "signs and products": (
        lambda x, y: (
            torch.copysign(x, y),
            torch.xlogy(x.relu(), y.abs()),
            torch.linalg.cross(x[:, :3], y[:, :3]),
            torch.cross(x[:3], y[:3], dim=0),
            *torch.std_mean(x, dim=1),
            F.rrelu(x),
        ),
        (MATRIX, -MATRIX.flip(0)),
    ),
    "losses": (
        lambda x, i, w: (
            F.cross_entropy(x, i),
            F.cross_entropy(x, i, weight=w, ignore_index=5),
            F.nll_loss(x, i, reduction="none", ignore_index=-1),
            F.nll_loss(x, i, weight=w, reduction="sum"),
            F.nll_loss(x[0], i[0]),
        ),
        (MATRIX, PLACES[0, [0, 1, 2, 1]], MATRIX[0].abs()),
    ),
    "images at places": (
        lambda x, grid: [
            F.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=corners)
            for mode in ("bilinear", "nearest", "bicubic")
            for padding in ("zeros", "border", "reflection")
            for corners in (True, False)
        ],
        (IMAGE, torch.linspace(-1.7, 1.6, 40).reshape(1, 5, 4, 2).flip(2)),
    ),
    "images turned": (
        lambda x, turn: F.grid_sample(
            x, F.affine_grid(turn, (1, 4, 5, 7), align_corners=False), align_corners=False
        ),
        (IMAGE, torch.tensor([[[0.8, -0.5, 0.1], [0.4, 0.9, -0.2]]])),
    ),
    "volumes at places": (
        lambda x, grid: F.grid_sample(x, grid, align_corners=True),
        (IMAGE.reshape(1, 2, 3, 4, 9), torch.linspace(-1.2, 1.1, 24).reshape(1, 2, 2, 2, 3)),
    ),
    "norms": (
        lambda x: [
            torch.linalg.vector_norm(x, order, dim=1)
            for order in (0, 1, 2, 3, float("inf"), float("-inf"))
        ],
        (MATRIX,),
    ),
    "running extremes": (
        lambda x: (*x.cummax(1), *x.cummin(0), *(x * 5).int().cummin(1), x.logcumsumexp(1)),
        (MATRIX,),
    ),
    "special functions": (
        lambda x: (
            *(x.lgamma(), x.digamma(), (x / 3).erfinv(), (x / 3).atanh(), (x + 4).acosh()),
            *(x.sinh(), x.cosh(), torch.special.logit(x, 0.1), x.ldexp(torch.tensor(3))),
        ),
        (MATRIX,),
    ),
    "products of pairs": (
        lambda x, y, w, b: (F.bilinear(x, y, w, b), F.bilinear(x, y, w)),
        (
            MATRIX,
            MATRIX[:, :3] + 1,
            torch.linspace(-1, 1, 120).reshape(5, 8, 3).cos(),
            torch.linspace(-1, 1, 5),
        ),
    ),
    "places of several dimensions": (
        lambda x, i: (x[:, i, i], x[0, i, :, i], x[:, i[:, None], :, i], x[0, i, i, None, i]),
        (IMAGE.reshape(1, 6, 4, 9), torch.tensor([2, 0, -1])),
    ),
    "writes at places of several dimensions": (
        lambda x, i, y: (_put_at(x, i, y), _add_at(x, i, y)),
        (IMAGE[0], torch.tensor([2, 0, 3]), torch.linspace(1, 2, 18).reshape(3, 6)),
    ),
    "tensors of one shape": (
        lambda x, y: torch.broadcast_tensors(x, y, x[:1]),
        (MATRIX, MATRIX[:, :1]),
    ),
    "gates of a GRU": (
        lambda x, h, w: torch._VF.gru_cell(x, h, w, w),
        (MATRIX, MATRIX * 0.5, torch.linspace(-1, 1, 192).reshape(24, 8).cos()),
    ),
}


def _put(x: Any, y: Any) -> Any:
    x = x.clone()
    x[:, 3:4] = y
    return x


def _put_apart(x: Any, y: Any) -> Any:
    x = x.clone()
    x[:, 2:7:2] = y
    x[..., 1::3] *= 2
    return x


def _put_at(x: Any, places: Any, y: Any) -> Any:
    x = x.clone()
    x[places, :, places] = y
    x[places, 1:2, places] = 3.0
    return x


def _add_at(x: Any, places: Any, y: Any) -> Any:
    again = places.clamp(max=2)[:, None]
    return torch.ops.aten.index_put(x, [None, again, again.T], y[:, :3], True)


@pytest.mark.parametrize("name", CASES)
def test_operations(name: str) -> None:
    function, arguments = CASES[name]

    class Module(torch.nn.Module):
        def forward(self, *values: torch.Tensor) -> Any:
            return function(*values)

    module = Module().eval()
    text = ttcodegen.torch.export(module, arguments)
    inputs = [each.numpy() for each in arguments]
    inputs = [each.astype(np.int32) if each.dtype == np.int64 else each for each in inputs]
    found = run(text, *inputs)
    expected = torch.utils._pytree.tree_leaves(module(*arguments))
    for got, want in zip(found, expected, strict=True):
        torch.testing.assert_close(
            torch.from_numpy(got), want, rtol=1e-4, atol=1e-4, check_dtype=False
        )
