"""Makes the TTNN module that a `.ttnn` file was written from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    NameLoc,
    StringAttr,
    TensorType,
    UnitAttr,
    UnknownLoc,
    i32,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ttcodegen.dialects.core.constants import elements
from ttcodegen.dialects.core.datatypes import element_type_of
from ttcodegen.dialects.operations.functions import CONST_EVAL, SOURCE_TYPES
from ttcodegen.dialects.operations.verification import verify_module
from ttcodegen.dialects.ttcore.dialect import ArgumentType, ArgumentTypeAttr, LoadCachedOp
from ttcodegen.dialects.ttcore.module_system import set_system, system_of
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placed_type
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.system import read_ttsys, write_ttsys
from ttcodegen.flatbuffer.writer import Origin
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.ops.dialects import TTNNOp, ttnn_op_classes

_ORIGIN = "ttcodegen.origin"
"""The attribute of a module with what the file says of its origin."""


def module_of(binary: file.Binary) -> ModuleOp:
    """The functions of a file, with layouts, names and locations. Written again, they give the same
    file but for golden values, which a module has no place for.

    Raises:
        CompileError: if the file calls ops or has attributes that this version does not know, or
            contradicts itself.
    """
    constants = [_constant(constant) for constant in binary.constants]
    placements: dict[TensorPlacement, Attribute] = {}
    module = ModuleOp(
        [_function(program, binary, constants, placements) for program in binary.programs]
    )
    origin = {"arch": binary.arch, "release": binary.release, "input_hash": binary.input_hash}
    module.attributes[_ORIGIN] = DictionaryAttr({k: StringAttr(v) for k, v in origin.items()})
    if binary.system:
        set_system(module, read_ttsys(binary.system))
    verify_module(module)
    return module


def origin_of(module: ModuleOp, default: Origin) -> Origin:
    """What a module says of its origin, if it was read from a file, and of the system that it is
    for; the rest is taken from `default`."""
    system = system_of(module)
    if system is not None:
        default = replace(default, arch=system.arch, system=write_ttsys(system))
    attribute = module.attributes.get(_ORIGIN)
    if not isinstance(attribute, DictionaryAttr):
        return default
    texts = {k: v.data for k, v in attribute.data.items() if isinstance(v, StringAttr)}
    return replace(
        default,
        input_hash=texts.get("input_hash", default.input_hash),
        arch=default.arch if system is not None else texts.get("arch", default.arch),
        release=texts.get("release", default.release),
    )


def _constant(constant: file.Constant) -> Attribute:
    element_type = element_type_of(constant.element_type)
    return elements(element_type, constant.shape, bytes(constant.elements))


def _function(
    program: file.Program,
    binary: file.Binary,
    constants: Sequence[Attribute],
    types: dict[TensorPlacement, Attribute],
) -> FuncOp:
    def type_of(tensor: int) -> Attribute:
        placement = program.tensors[tensor].type.placement
        found = types.get(placement)
        if found is None:
            found = types[placement] = placed_type(placement)
        return found

    block = Block(arg_types=[type_of(entry.tensor) for entry in program.inputs])
    values: dict[int, SSAValue] = {}
    for entry, argument in zip(program.inputs, block.args, strict=True):
        _name(argument, program, entry.tensor)
        values[entry.tensor] = argument
    for operation in program.operations:
        results = [type_of(tensor) for tensor in operation.results]
        operands = [values[tensor] for tensor in operation.operands]
        op = _operation(operation, operands, results, binary, constants)
        if operation.location is not None:
            op.location = NameLoc(StringAttr(operation.location), UnknownLoc())
        for tensor, result in zip(operation.results, op.results, strict=True):
            _name(result, program, tensor)
            values[tensor] = result
        block.add_op(op)
    returned = [values[entry.tensor] for entry in program.outputs]
    block.add_op(ReturnOp(*returned))
    function = FuncOp(
        program.name,
        FunctionType.from_lists([a.type for a in block.args], [v.type for v in returned]),
        Region(block),
        None if program.kind == "entry" else "private",
        arg_attrs=ArrayAttr([_argument_attributes(entry, program) for entry in program.inputs]),
        res_attrs=ArrayAttr(
            [DictionaryAttr({"ttir.name": StringAttr(entry.name)}) for entry in program.outputs]
        ),
    )
    if program.kind == "const_eval":
        function.attributes[CONST_EVAL] = UnitAttr()
    if (source := _source_type(program)) is not None:
        function.attributes[SOURCE_TYPES] = source
    return function


def _name(value: SSAValue, program: file.Program, tensor: int) -> None:
    name = program.tensors[tensor].source_name
    if name is not None and SSAValue.is_valid_name(name):
        value.name_hint = name


def _argument_attributes(entry: file.Input, program: file.Program) -> DictionaryAttr:
    attributes: dict[str, Attribute] = {"ttir.name": StringAttr(entry.name)}
    if program.kind == "entry":
        attributes["ttcore.argument_type"] = ArgumentTypeAttr(ArgumentType(entry.kind))
    return DictionaryAttr(attributes)


def _source_type(program: file.Program) -> FunctionType | None:
    """The type that the function had in the source, None if the file does not say."""

    def types(entries: Sequence[file.Input | file.Output]) -> list[Attribute | None]:
        return [
            TensorType(
                element_type_of(entry.element_type), program.tensors[entry.tensor].type.shape
            )
            if entry.element_type is not None
            else None
            for entry in entries
        ]

    inputs, outputs = types(program.inputs), types(program.outputs)
    if program.kind != "entry" or None in inputs or None in outputs:
        return None
    return FunctionType.from_lists(
        [type_ for type_ in inputs if type_ is not None],
        [type_ for type_ in outputs if type_ is not None],
    )


def _operation(
    operation: file.Operation,
    operands: Sequence[SSAValue],
    results: Sequence[Attribute],
    binary: file.Binary,
    constants: Sequence[Attribute],
) -> Operation:
    if operation.callee is not None:
        if operation.name == LoadCachedOp.name:
            return LoadCachedOp(operation.callee, operands, results)
        if operation.name == CallOp.name:
            return CallOp(operation.callee, list(operands), list(results))
    dialect, _, name = operation.name.partition(".")
    op_class = ttnn_op_classes().get(name) if dialect == "ttnn" else None
    if op_class is None or len(operation.operand_sizes) != len(op_class.definition.operands):
        raise CompileError(
            f"the file calls '{operation.name}' in a way that this version does not know",
            remedy="compile the model again with this version of ttcodegen",
        )
    return op_class.create(
        operands=list(operands),
        result_types=list(results),
        properties=_properties(operation, op_class, constants),
    )


def _properties(
    operation: file.Operation, op_class: type[TTNNOp], constants: Sequence[Attribute]
) -> dict[str, Attribute]:
    definition = op_class.definition
    specs = {spec.name: spec for spec in definition.attributes}
    properties: dict[str, Attribute] = {}
    for attribute in operation.attributes:
        spec = specs.get(attribute.name)
        if spec is None:
            raise CompileError(f"a '{operation.name}' of the file has no '{attribute.name}' here")
        value = file.plain_value(attribute.value, constants)
        if value is None or value == spec.default:
            continue
        try:
            properties[spec.name] = spec.kind.encode(value)
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise CompileError(
                f"the attribute '{spec.name}' of a '{operation.name}' of the file should be "
                f"{spec.kind.expected}"
            ) from error
    if definition.needs_segments:
        properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, operation.operand_sizes)
    return properties
