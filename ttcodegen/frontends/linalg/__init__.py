"""linalg on tensors to TTIR: `linalg.generic` whose body computes each element from those at the
same place, with broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.diagnostics import CompileError, Diagnostic, Diagnostics, place_of
from ttcodegen.dialects.datatypes import shape_of
from ttcodegen.dialects.operation import operation_name
from ttcodegen.frontends.program_globals import GLOBALS, drop_unused_globals
from ttcodegen.frontends.source_ops import source_context
from ttcodegen.frontends.translation import Translator
from ttcodegen.parsing import parse_operations
from ttcodegen.parsing.structure import flatten, unsupported
from ttcodegen.transforms.rewriting import erase, erase_dead

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ttcodegen.diagnostics import Source

_BODY = {
    "arith.addf": "add", "arith.addi": "add", "arith.subf": "subtract", "arith.subi": "subtract",
    "arith.mulf": "multiply", "arith.muli": "multiply", "arith.divf": "div",
    "arith.maximumf": "maximum", "arith.minimumf": "minimum", "arith.maxnumf": "maximum",
    "arith.minnumf": "minimum", "arith.negf": "neg", "math.exp": "exp", "math.log": "log",
    "math.sqrt": "sqrt", "math.rsqrt": "rsqrt", "math.tanh": "tanh", "math.erf": "erf",
    "math.sin": "sin", "math.cos": "cos", "math.absf": "abs", "math.floor": "floor",
    "math.ceil": "ceil", "math.powf": "pow",
}  # fmt: skip
"""What an operation on elements is as an op on tensors."""


def read(source: Source, diagnostics: Diagnostics) -> ModuleOp:
    """The module of TTIR that a text with operations of linalg means.

    Raises:
        CompileError: if it is no such text, or with all that cannot be translated.
    """
    from xdsl.dialects.linalg import Linalg
    from xdsl.dialects.math import Math

    context = source_context({"ml_program": GLOBALS})
    context.load_dialect(Linalg)
    context.load_dialect(Math)
    module = flatten(parse_operations(source, diagnostics, context), diagnostics)
    drop_unused_globals(module)
    findings: list[Diagnostic] = []
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    for function in functions:
        for op in [op for op in function.walk() if op.dialect_name() == "linalg"]:
            if op.parent in function.body.blocks:
                _replace(op, findings)
    if findings:
        raise CompileError.from_diagnostics(findings)
    for function in functions:
        erase_dead(function)
    return module


def _replace(op: Operation, findings: list[Diagnostic]) -> None:
    block = op.parent
    assert block is not None
    build = Translator(lambda made: block.insert_op_before(made, op))
    build.origin = op
    try:
        value = _generic(build, op)
    except CompileError as error:
        findings += [Diagnostic(d.message, place_of(op), d.remedy) for d in error.diagnostics]
        return
    op.results[0].replace_all_uses_with(value)
    erase(op)


def _generic(build: Translator, op: Operation) -> SSAValue:
    if op.name != "linalg.generic":
        raise CompileError(unsupported(op.name))
    kinds: list[Any] = list(cast("Any", op.properties["iterator_types"]).data)
    maps: list[Any] = list(cast("Any", op.properties["indexing_maps"]).data)
    if len(op.results) != 1 or any("parallel" not in str(kind) for kind in kinds):
        raise CompileError("a linalg.generic that reduces is not supported")
    shape = shape_of(op.results[0].type)
    body = op.regions[0].block
    values: dict[SSAValue, SSAValue] = {
        argument: _spread(build, operand, map_, len(shape))
        for argument, operand, map_ in zip(body.args, op.operands, maps, strict=True)
    }
    for inner in body.ops:
        if not all(value in values for value in inner.operands):
            raise CompileError("a linalg.generic that takes values from outside is not supported")
        if inner.name == "linalg.yield":
            return build.repeat(values[inner.operands[0]], shape)
        found = _BODY.get(inner.name)
        if found is None:
            raise CompileError(f"'{operation_name(inner)}' in a linalg.generic is not supported")
        arguments = [values[value] for value in inner.operands]
        values[inner.results[0]] = build.broadcasting(found, *arguments)
    raise CompileError("a linalg.generic without linalg.yield is not supported")


def _spread(build: Translator, value: SSAValue, map_: Any, rank: int) -> SSAValue:
    """An operand with a dimension for each loop: of one element where it does not depend on it."""
    from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr

    sizes = [1] * rank
    places: list[int] = []
    for axis, expression in enumerate(map_.data.results):
        if isinstance(expression, AffineDimExpr):
            places.append(expression.position)
            sizes[expression.position] = shape_of(value.type)[axis]
        elif not isinstance(expression, AffineConstantExpr):
            raise CompileError(f"the indexing map {map_} is not supported")
    if places != sorted(set(places)):
        raise CompileError(f"the indexing map {map_} is not supported")
    return build.reshape(value, sizes)
