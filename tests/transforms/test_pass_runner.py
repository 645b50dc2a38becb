from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.passes import ModulePass

from tests.transforms.programs import Program
from ttcodegen.dialects.core.datatypes import elements, f32
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.parsing import parse_module
from ttcodegen.transforms.module_text import ELIDED_ELEMENTS, module_text
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.rewriting import functions, set_type
from ttcodegen.transforms.ttir.canonicalize import TTIRCanonicalizePass, TTIRDecomposePass


@dataclass(frozen=True)
class BreakShapes(ModulePass):
    """Gives every result a wrong shape."""

    name = "break-shapes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for inner in function.body.block.ops:
                for result in inner.results:
                    set_type(result, TensorType(f32, [7]))


@dataclass(frozen=True)
class BreakOrder(ModulePass):
    """Moves the first op after its users."""

    name = "break-order"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            block = function.body.block
            first = block.first_op
            assert first is not None
            first.detach()
            block.insert_op_before(first, block.last_op)


def chain() -> ModuleOp:
    p = Program()
    value = p.make.like("exp", p.make.like("sin", p.argument(2, 3)))
    return p.returns(p.make.reshape(p.make.reshape(value, [6]), [3, 2]))


def test_modules_are_dumped_where_a_pass_changed_them(tmp_path: Path) -> None:
    runner = PassRunner(load_dialects(), dump=tmp_path / "ir")
    runner.run(chain(), [TTIRDecomposePass(), TTIRCanonicalizePass(), TTIRCanonicalizePass()])
    names = sorted(path.name for path in (tmp_path / "ir").iterdir())
    assert names == ["00-input.mlir", "02-ttir-canonicalize.mlir"]
    text = (tmp_path / "ir" / names[1]).read_text()
    assert text.count("ttir.reshape") == 1
    parse_module(Source("dump.mlir", text)).verify()


def test_big_constants_are_not_printed() -> None:
    p = Program()
    values = [np.arange(n, dtype=np.float32) for n in (4, 4096)]
    constants = [
        p.make.emit("constant", [], TensorType(f32, [v.size]), value=elements(f32, [v.size],
                                                                              v.tobytes()))
        for v in values
    ]  # fmt: skip
    text = module_text(p.returns(*constants), elide_above=ELIDED_ELEMENTS)
    assert "dense_resource<__elided__> : tensor<4096xf32>" in text
    assert text.count("dense<") == 1
    assert len(text) < 2000


def test_times_are_a_table() -> None:
    runner = PassRunner(load_dialects(), count_ops=True)
    runner.run(chain(), [TTIRDecomposePass(), TTIRCanonicalizePass()])
    stream = io.StringIO()
    runner.write_times(stream)
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("ttir-decompose")
    assert lines[1].startswith("ttir-canonicalize")
    assert lines[-1].startswith("total")


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (BreakShapes(), "after the pass break-shapes: "),
        (BreakOrder(), "after the pass break-order: an operand is used before it is made"),
    ],
)
def test_an_invalid_module_names_the_pass_and_the_op(broken: ModulePass, message: str) -> None:
    text = (
        "func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
        '  %0 = "ttir.sin"(%a) : (tensor<2xf32>) -> tensor<2xf32>\n'
        '  %1 = "ttir.exp"(%0) : (tensor<2xf32>) -> tensor<2xf32>\n'
        "  return %1 : tensor<2xf32>\n}\n"
    )
    source = Source("in.mlir", text)
    module = parse_module(source)
    with pytest.raises(CompileError) as error:
        PassRunner(load_dialects(), verify=True).run(module, [broken])
    rendered = error.value.render(source)
    assert message in rendered
    assert rendered.startswith("in.mlir:")


def test_an_invalid_module_is_not_noticed_without_verification() -> None:
    PassRunner(load_dialects()).run(chain(), [BreakShapes()])
