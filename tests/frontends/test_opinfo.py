"""A part of PyTorch's database of operations as a judge; the whole is a script's
(scripts/opinfo_judge.py, docs/judges.md)."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install torch")
pytest.importorskip("expecttest", reason="torch.testing needs it: pip install expecttest")

from scripts.opinfo_judge import judged

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]

AGREEING = {
    "f32": "add sub mul sort topk cumsum log_softmax flip roll cat hypot erfinv "
    "nn.functional.cross_entropy nn.functional.layer_norm matmul index_select".split(),
    "bf16": "flip nn.functional.gelu nn.functional.linear".split(),
    "i32": "fmod logsumexp clamp argmin cummax scatter_reduce.amin".split(),
    "bool": "min.reduction_with_dim logsumexp isinf".split(),
    "i64": "nn.functional.avg_pool2d nn.functional.avg_pool3d roll".split(),
    "u8": "matmul nn.functional.interpolate.bilinear argmin unfold".split(),
}
"""Operations all of whose samples agree, by element types."""


@pytest.mark.parametrize("dtype", AGREEING)
def test_samples_agree(dtype: str) -> None:
    samples = list(judged(AGREEING[dtype], [dtype], count=2))
    assert {sample.operation for sample in samples} == set(AGREEING[dtype])
    bad = [sample.row() for sample in samples if sample.outcome != "agree"]
    assert not bad, "\n".join(bad)
