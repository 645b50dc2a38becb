"""Host functions that run the program of an operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from ttcodegen.dialects.ttmetal.device_module import MEANING
from ttcodegen.dialects.ttmetal.program_attribute import ProgramAttr
from ttcodegen.dialects.ttmetal.programs import Program
from ttcodegen.dialects.ttnn.placement import placed_type
from ttcodegen.lang.simulator.tensors import Tensor
from ttcodegen.ops.dialects import load_dialects

NamedTensors = dict[int, tuple[str, Tensor]]
"""Tensors with their names, by identity."""


@dataclass(frozen=True)
class OperationTensors:
    """The tensors of an operation."""

    inputs: NamedTensors
    kept: NamedTensors
    """Those that it writes, and whose elements before that matter."""
    outputs: NamedTensors


def host_module(
    function: str, program: Program, kernels: Sequence[FuncOp], given: OperationTensors
) -> ModuleOp:
    """A module with a program, its kernels, and a host function of that name that runs it."""
    inputs = [*given.inputs.values(), *given.kept.values()]
    outputs = list(given.outputs.values())
    ctx = load_dialects()
    body = Block(arg_types=[_type_of(tensor) for _, tensor in inputs])
    for argument, (name, _) in zip(body.args, inputs, strict=True):
        argument.name_hint = name
    read = list(body.args)[: len(given.inputs)]
    kept = dict(zip(given.kept, list(body.args)[len(read) :], strict=True))
    made: list[SSAValue] = []
    for key, (name, tensor) in given.outputs.items():
        if key in kept:
            made.append(kept[key])
            continue
        buffer = ctx.get_op("ttmetal.create_buffer").create(result_types=[_type_of(tensor)])
        buffer.results[0].name_hint = name
        body.add_op(buffer)
        made.append(buffer.results[0])
    meaning = f"{program.name}_meaning"
    run = ctx.get_op("ttmetal.run_program").create(
        operands=[*read, *made],
        properties={"program": ProgramAttr(program), "meaning": SymbolRefAttr(meaning)},
    )
    body.add_ops([run, ReturnOp(*made)])
    types = [value.type for value in body.args], [value.type for value in made]
    host = FuncOp(function, types, Region(body))
    host.arg_attrs = _names([name for name, _ in inputs])
    host.res_attrs = _names([name for name, _ in outputs])
    # What it means is the operation of the program in Python: nothing that TTIR has ops for.
    declared = FuncOp.external(meaning, [value.type for value in read], types[1])
    declared.attributes[MEANING] = UnitAttr()
    return ModuleOp([host, declared, *kernels])


def _names(names: Sequence[str]) -> ArrayAttr[Any]:
    return ArrayAttr(DictionaryAttr({"ttir.name": StringAttr(name)}) for name in names)


def _type_of(tensor: Tensor) -> Any:
    return placed_type(tensor.placement)
