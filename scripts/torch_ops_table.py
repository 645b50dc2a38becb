"""Writes docs/torch-ops.md: operations of ATen by how they are compiled, and those that are not.

Needs torch. `--check` only compares.
"""
# ruff: noqa: E501 - the lines of a table of Markdown

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from ttcodegen.frontends.torch.complex_numbers import is_known
from ttcodegen.frontends.torch.decompositions import DECOMPOSITIONS, decomposition_of
from ttcodegen.frontends.torch.rules import RULES, rule_of
from ttcodegen.torch import parts_of

PAGE = Path(__file__).parent.parent / "docs" / "torch-ops.md"

LIMITS = """\
| Operations | Limit, or what differs |
|---|---|
| `nonzero`, `masked_select`, `x[mask]`, `unique`, `bincount`, `argwhere` | the shape of their result depends on values; \
`nonzero_static`, `torch.where`, `index_put` by a mask and `scatter_add` into a size that is known are compiled |
| `det`, `slogdet`, `inv`, `solve`, `lu`, `cholesky`, `qr`, `ormqr`, triangular solutions | up to 64 columns, unrolled; of complex numbers `inv` and `solve`, up to 32 |
| `svd`, `svdvals`, `eigh`, `eigvalsh`, `pinv`, `matrix_rank`, nuclear norms | up to 16 columns, by rotations; \
singular vectors and eigenvectors have signs of their own |
| `fft`, `rfft`, `irfft`, `hfft`, `stft` | up to 2,048 elements a dimension, as products with a matrix |
| orthogonal polynomials | of a degree that is a tensor up to 32 (NaN beyond), that is a number up to 128 |
| `special.zeta` | down to -24; `igamma` and `igammac` to about 200 |
| `rand`, `randn`, `randint`, `multinomial`, `bernoulli`, dropout in training | the numbers of a program are the same in \
each run; they are not those of torch |
| `mode`, `median`, `sort` | the place of one of several equal elements may be another one |
| attention with dropout, dropout of channels, alpha dropout | not in training |
| views of bits as elements of another size, of f16 or of f64; `hash_tensor`, float8 | no element type or op |
"""

UNFIT = frozenset(
    "sparse nested quantized mkldnn cudnn miopen mps vulkan slow_conv thnn backward foreach fused "
    "cslt fft_ xnnpack fbgemm jvp test quantize q_ dequantize qint _nnpack".split()
)
"""Of other devices and layouts, of training's second half, and of lists of tensors."""


def overloads() -> Iterable[Any]:
    """All overloads of ATen that have results and change nothing."""
    spelled = (name.partition("::") for name in torch._C._dispatch_get_all_op_names())
    for name in sorted({rest.partition(".")[0] for space, _, rest in spelled if space == "aten"}):
        packet = getattr(torch.ops.aten, name, None)
        if not hasattr(packet, "overloads") or any(word in name for word in UNFIT):
            continue
        for overload in sorted(packet.overloads()):
            target = getattr(packet, overload)
            schema = target._schema
            outputs = [str(each.type) for each in schema.returns]
            if not torch._C._dispatch_has_kernel(target.name()):
                continue  # One of TorchScript alone.
            if not schema.is_mutable and any("Tensor" in each for each in outputs):
                yield target


def _names(targets: Iterable[Any]) -> list[str]:
    found = {}
    for target in targets:
        found.setdefault(str(target._schema.name).partition("::")[2], None)
    return sorted(found)


def _paragraph(names: Sequence[str]) -> str:
    lines, line = [], ""
    for name in names:
        piece = f"`{name}`"
        if line and len(line) + len(piece) + 2 > 118:
            lines.append(f"{line},")
            line = ""
        line = f"{line}, {piece}" if line else piece
    return "\n".join([*lines, line])


def page() -> str:
    """The text of the page."""
    known = torch.export.default_decompositions()
    by_rule, by_parts, by_torch, refused = [], [], [], []
    for target in overloads():
        name = str(target._schema.name).partition("::")[2]
        overload = str(target._schema.overload_name) or "default"
        if rule_of(name, overload) is not None or is_known(name):
            by_rule.append(target)
        elif decomposition_of(name, overload) is not None:
            by_parts.append(target)
        elif parts_of(torch, known, target) is not None:
            by_torch.append(target)
        else:
            refused.append(target)
    return f"""\
# Operations of PyTorch

This page is written by `scripts/torch_ops_table.py` for torch {torch.__version__.partition("+")[0]}. An operation of
ATen is compiled by a rule ({len(RULES)} names and overloads), is taken apart by this project
({len(DECOMPOSITIONS)}) or by torch, and again until rules are left. How a model is compiled: [frontends](frontends.md).

## Limits

{LIMITS}
## By a rule

{_paragraph(_names(by_rule))}

## Taken apart here

{_paragraph(_names(by_parts))}

## Taken apart by torch

{len(by_torch)} overloads of {len(_names(by_torch))} operations, among them those of modules' own names (`einsum`,
`cross_entropy_loss`, `lstm`).

## Refused

There is no rule and nothing to take them apart; gradients, sparse, quantized and nested tensors and the operations of
other devices are left out here. Compute them before or after the model.

{_paragraph(_names(refused))}
"""


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        if PAGE.read_text() == text:
            return 0
        print(f"{PAGE} is not what scripts/torch_ops_table.py writes", file=sys.stderr)
        return 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
