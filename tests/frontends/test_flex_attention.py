"""`flex_attention` of PyTorch: scores and masks that are functions of single elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
flex = pytest.importorskip("torch.nn.attention.flex_attention")

import ttcodegen.torch  # noqa: E402
from tests.frontends.running import ops_of, read, run  # noqa: E402

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]
nn = torch.nn
BATCH, HEADS, LENGTH, WIDTH = 2, 4, 32, 8


def causal(b: Any, h: Any, q: Any, k: Any) -> Any:
    return q >= k


def sliding_window(b: Any, h: Any, q: Any, k: Any) -> Any:
    return (q >= k) & (q - k <= 8)


def even_batches(b: Any, h: Any, q: Any, k: Any) -> Any:
    return b % 2 == 0


def linear_bias(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
    return score + (k - q) * torch.exp2(-(h + 1) * 1.0)


def soft_cap(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
    return 2 * torch.tanh(score / 2)


class Attention(nn.Module):
    """Attention of the same heads for several pairs of a score and a mask."""

    def __init__(self, *kinds: tuple[Any, Any], **options: Any) -> None:
        super().__init__()
        sizes = (BATCH, HEADS, LENGTH, LENGTH)
        self.options = options
        self.kinds = [
            (score, None if mask is None else flex.create_block_mask(mask, *sizes, device="cpu"))
            for score, mask in kinds
        ]

    def forward(self, q: Any, k: Any, v: Any) -> Any:
        return [flex.flex_attention(q, k, v, *each, **self.options) for each in self.kinds]


class Captured(nn.Module):
    """Scores with a table of the module, masks with documents of an argument."""

    def __init__(self, by_rows: bool) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(HEADS, 2 * LENGTH - 1))
        self.by_rows = by_rows

    def forward(self, q: Any, k: Any, v: Any, documents: Any) -> Any:
        def relative(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
            place = i - j + LENGTH - 1
            return score + (self.table[h][place] if self.by_rows else self.table[h, place])

        def same_document(b: Any, h: Any, i: Any, j: Any) -> Any:
            return documents[b, i] == documents[b, j]

        sizes = (BATCH, None, LENGTH, LENGTH)
        mask = flex.create_block_mask(same_document, *sizes, device="cpu")
        return flex.flex_attention(q, k, v, relative, mask)


def heads_of(count: int = HEADS, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(BATCH, count, LENGTH, WIDTH, generator=generator)


def agrees(module: Any, *arguments: Any) -> list[str]:
    """Compares a compiled module with PyTorch's; returns its ops."""
    text = ttcodegen.torch.export(module, arguments)
    with torch.no_grad():
        expected = module(*arguments)
    single = isinstance(expected, torch.Tensor)
    weights = [each.detach().numpy() for each in module.parameters()]
    found = run(text, *weights, *(each.numpy() for each in arguments))
    for result, wanted in zip(found, [expected] if single else expected, strict=True):
        np.testing.assert_allclose(result, wanted.numpy(), rtol=1e-4, atol=1e-5)
    return ops_of(read(text))


def test_masks() -> None:
    """Rows that see nothing, as of odd batches here, are zeros."""
    masks = (None, causal, sliding_window, even_batches)
    module = Attention(*((None, mask) for mask in masks))
    ops = agrees(module, heads_of(), heads_of(seed=1), heads_of(seed=2))
    assert ops.count("scaled_dot_product_attention") == len(masks)


def test_scores() -> None:
    kinds = ((linear_bias, None), (linear_bias, causal), (soft_cap, even_batches))
    agrees(Attention(*kinds), heads_of(), heads_of(seed=1), heads_of(seed=2))


def test_shared_heads() -> None:
    module = Attention((None, causal), (soft_cap, causal), enable_gqa=True, scale=0.5)
    agrees(module, heads_of(), heads_of(2, seed=1), heads_of(2, seed=2))


def test_sums_of_scores() -> None:
    class WithSums(nn.Module):
        def forward(self, q: Any, k: Any, v: Any) -> Any:
            return flex.flex_attention(q, k, v, linear_bias, return_lse=True)

    agrees(WithSums(), heads_of(), heads_of(seed=1), heads_of(seed=2))


@pytest.mark.parametrize("by_rows", [False, True])
def test_captured_tensors(by_rows: bool) -> None:
    """A row of a table, read by an index of the score, is no scalar."""
    documents = torch.arange(LENGTH).repeat(BATCH, 1) // torch.tensor([[7], [40]])
    heads = (heads_of(), heads_of(seed=1), heads_of(seed=2))
    agrees(Captured(by_rows), *heads, documents)


def test_the_module_may_compute_what_only_masks_by_block_use() -> None:
    class Lengths(nn.Module):
        def forward(self, q: Any, k: Any, v: Any, lengths: Any) -> Any:
            def within(b: Any, h: Any, i: Any, j: Any) -> Any:
                return j < lengths[b]

            sizes = (BATCH, None, LENGTH, LENGTH)
            mask = flex.create_block_mask(within, *sizes, device="cpu")
            return flex.flex_attention(q, k, v, block_mask=mask)

    lengths = torch.tensor([20, 0], dtype=torch.int32)
    heads = (heads_of(), heads_of(seed=1), heads_of(seed=2))
    ops = agrees(Lengths(), *heads, lengths)
    assert "scatter" not in ops
