"""Ops with numbers of operands and results that they do not have: a message, nothing else."""

from __future__ import annotations

import contextlib

import pytest

import ttcodegen.ops as catalogue
from ttcodegen.compat.ttnn_modules import DEVICE_OPS, RULES
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.frontends import module_for_passes
from ttcodegen.frontends.ttnn.composites import CALLS_OF_TTIR, COMPOSITES, EXPERT_CALLS
from ttcodegen.frontends.ttnn.legal_forms import UPDATES
from ttcodegen.ops.core.definition import TTIR, TTNN


def names() -> list[str]:
    """Every op of TTIR and TTNN that is read, also by a name of other years."""
    catalogue.load()
    calls = {*TTNN, *CALLS_OF_TTIR, *COMPOSITES, *EXPERT_CALLS, *UPDATES}
    known = {f"ttnn.{name}" for name in calls} | {f"ttir.{name}" for name in TTIR}
    return sorted(known | set(RULES) | set(DEVICE_OPS))


def module(name: str, type_: str, operands: int, results: int) -> str:
    """A module of one op without attributes."""
    arguments = ", ".join(f"%{index}: {type_}" for index in range(operands))
    used = ", ".join(f"%{index}" for index in range(operands))
    types = ", ".join([type_] * results)
    given = ", ".join(f"%r#{index}" for index in range(results))
    made = f"%r:{results} = " if results else ""
    returned = f"return {given} : {types}" if results else "return"
    return (
        f"func.func @f({arguments}) -> ({types}) {{\n"
        f'  {made}"{name}"({used}) : ({", ".join([type_] * operands)}) -> ({types})\n'
        f"  {returned}\n}}\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operands", "results", "type_"),
    [
        (0, 1, "tensor<1x32x32x32xbf16>"),
        (1, 0, "tensor<f32>"),
        (1, 2, "tensor<1x32x32x32xbf16>"),
        (2, 1, "tensor<f32>"),
    ],
)
def test_other_counts_end_in_a_message(operands: int, results: int, type_: str) -> None:
    for name in names():
        source = Source("m.mlir", module(name, type_, operands, results))
        with contextlib.suppress(CompileError):
            module_for_passes(source)
        try:
            compile_module(source, CompileOptions("m"))
        except CompileError:
            pass
        except Exception as error:
            raise AssertionError(source.text) from error


@pytest.mark.parametrize(
    ("name", "operands", "results", "message"),
    [
        ("ttnn.matmul", 1, 1, "'ttnn.matmul' takes 2 tensors or more, found 1"),
        ("ttnn.deallocate", 1, 1, "'ttnn.deallocate' has 0 results, found 1"),
        ("ttnn.transpose", 0, 1, "'ttnn.transpose' takes 1 tensor or more, found 0"),
        ("ttnn.all_gather", 1, 2, "'ttnn.all_gather' has 1 result, found 2"),
        ("ttnn.group_norm", 1, 2, "'ttnn.group_norm' has one result, found 2"),
        ("ttnn.where", 1, 1, "ttnn.where needs the operand 'first' or 'true_value'"),
    ],
)
def test_the_message_says_what_is_expected(
    name: str, operands: int, results: int, message: str
) -> None:
    text = module(name, "tensor<4x32xf32>", operands, results)
    with pytest.raises(CompileError) as caught:
        compile_module(Source("m.mlir", text), CompileOptions("m"))
    assert message in [each.message for each in caught.value.diagnostics]


@pytest.mark.parametrize("name", ["ttnn.zeros", "ttnn.ones", "ttnn.full", "ttnn.empty"])
def test_a_filling_names_the_shape_of_its_result(name: str) -> None:
    given = "fill_value = 1.0 : f32, " if name == "ttnn.full" else ""
    text = module(name, "tensor<3x3xf32>", 0, 1).replace(
        '"() :', f'"() <{{{given}shape = #ttnn.shape<3x2>}}> :'
    )
    with pytest.raises(CompileError, match=r"a result of shape \(3, 2\), found \(3, 3\)"):
        compile_module(Source("m.mlir", text), CompileOptions("m"))
