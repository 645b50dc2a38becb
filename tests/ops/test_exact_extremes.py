"""Maxima of float32 that are needed bit by bit: what users make of them, near and far."""

from __future__ import annotations

import pytest

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.ops.reduction.exact_extremes import needs_all_bits
from ttcodegen.parsing import parse_module

ROW, WHOLE, TRUTH = "tensor<9x1xf32>", "tensor<9x63xf32>", "tensor<9x63xi1>"
EQUAL = f'%r = "ttir.eq"(%x, %m1) : ({WHOLE}, {ROW}) -> {TRUTH}'
RELU = f'%m1 = "ttir.relu"(%m) : ({ROW}) -> {ROW}'
LIMITED = f'%m1 = "ttir.clamp_scalar"(%m) <{{min = 0.0 : f32, max = 9.0 : f32}}> : ({ROW}) -> {ROW}'
ROOT = f'%m1 = "ttir.sqrt"(%m) : ({ROW}) -> {ROW}'
SCALED = f'%s = "ttir.div"(%x, %m) : ({WHOLE}, {ROW}) -> {WHOLE}'
USERS = {
    "compared": (EQUAL.replace("%m1", "%m"), True),
    "compared without sign": (f"{RELU}\n{EQUAL}", True),
    "compared within bounds": (f"{LIMITED}\n{EQUAL}", True),
    "compared as a root": (f"{ROOT}\n{EQUAL}", True),
    "rounded as a scale": (f'{SCALED}\n%r = "ttir.round"(%s) : ({WHOLE}) -> {WHOLE}', True),
    "a number of a scaled row": (
        f'{SCALED}\n%r = "ttir.typecast"(%s) : ({WHOLE}) -> tensor<9x63xi32>',
        True,
    ),
    "subtracted": (f'%r = "ttir.subtract"(%x, %m) : ({WHOLE}, {ROW}) -> {WHOLE}', True),
    "a scale": (SCALED, False),
    "subtracted as a root": (
        f'{ROOT}\n%r = "ttir.subtract"(%x, %m1) : ({WHOLE}, {ROW}) -> {WHOLE}',
        False,
    ),
    "summed": (
        f'%r = "ttir.sum"(%m) <{{dim_arg = [0 : i32], keep_dim = true}}> : ({ROW}) -> '
        "tensor<1x1xf32>",
        False,
    ),
}


@pytest.mark.parametrize("users", USERS)
def test_bits_are_needed_where_they_decide(users: str) -> None:
    body, needed = USERS[users]
    text = f"""
        func.func @f(%x: {WHOLE}) {{
          %m = "ttir.max"(%x) <{{dim_arg = [1 : i32], keep_dim = true}}> : ({WHOLE}) -> {ROW}
          {body}
          return
        }}"""
    module = parse_module(Source("extremes.mlir", text))
    (extreme,) = (op for op in module.walk() if op.name == "ttir.max")
    assert isinstance(extreme, CatalogueOp)
    assert needs_all_bits(extreme) is needed
