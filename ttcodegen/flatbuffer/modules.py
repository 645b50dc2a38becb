"""Functions of `.ttnn` and `.ttm` files as modules, and their verification."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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

from ttcodegen.dialects.core.datatypes import DataType, element_type_of, elements
from ttcodegen.dialects.operations.functions import (
    CONDITIONAL,
    CONST_EVAL,
    COUNTED,
    LOOP_BODY,
    SOURCE_TYPES,
    location_text,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.operations.verification import (
    faults_of_ops,
    verify_functions,
    verify_module,
)
from ttcodegen.dialects.ttcore.dialect import (
    ArgumentType,
    ArgumentTypeAttr,
    LoadCachedOp,
    set_system,
    system_of,
)
from ttcodegen.dialects.ttcore.loops import WhileLoopOp
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placed_type
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.system import read_ttsys, write_ttsys
from ttcodegen.flatbuffer.writer import Origin
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics
from ttcodegen.ops.dialects import ttir_op_classes, ttnn_op_classes

# Reconstruction of the TTNN module of a `.ttnn` file

_ORIGIN = "ttcodegen.origin"
"""Module attribute with the origin stated in the file."""


def module_of(binary: file.Binary) -> ModuleOp:
    """Reconstructs the module of a file, with layouts, names and locations.

    Written again, it gives the same file except for golden values, which a module cannot hold.

    Raises:
        CompileError: if the file calls ops or has attributes that this version does not know, or
            is inconsistent.
    """
    constants = [_constant(constant) for constant in binary.constants]
    module = _ttnn_module(binary, constants)
    origin = {"arch": binary.arch, "release": binary.release, "input_hash": binary.input_hash}
    module.attributes[_ORIGIN] = DictionaryAttr({k: StringAttr(v) for k, v in origin.items()})
    if binary.system:
        set_system(module, read_ttsys(binary.system))
    verify_module(module)
    return module


def _ttnn_module(binary: file.Binary, constants: Sequence[Attribute]) -> ModuleOp:
    maker = _FunctionMaker({"ttnn": ttnn_op_classes()}, constants, _placed_types())
    functions = [maker.function(program) for program in binary.programs]
    called = {
        operation.callee: COUNTED if operation.attributes else CONDITIONAL
        for program in binary.programs
        for operation in program.operations
        if operation.name == file.WHILE_LOOP
    }
    for function in functions:
        if (kind := called.get(function.sym_name.data)) is not None:
            function.attributes[LOOP_BODY] = kind
    return ModuleOp(functions)


def _placed_types() -> Callable[[file.TensorType], Attribute]:
    """Returns a memoized map from file types to tensor types with placements."""
    types: dict[TensorPlacement, Attribute] = {}

    def type_of(type_: file.TensorType) -> Attribute:
        placement = type_.placement
        found = types.get(placement)
        if found is None:
            found = types[placement] = placed_type(placement)
        return found

    return type_of


def origin_of(module: ModuleOp, default: Origin) -> Origin:
    """Returns origin and system of a module read from a file, with defaults from `default`."""
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


class _FunctionMaker:
    """Creates functions from the records of a file.

    `op_classes` are the ops that the file may call, by dialect and short name.
    """

    def __init__(
        self,
        op_classes: Mapping[str, Mapping[str, type[CatalogueOp]]],
        constants: Sequence[Attribute],
        type_of: Callable[[file.TensorType], Attribute],
    ) -> None:
        self._op_classes = op_classes
        self._constants = constants
        self._type_of = type_of

    def function(self, program: file.Program) -> FuncOp:
        """Creates the function of a record."""

        def type_of(tensor: int) -> Attribute:
            return self._type_of(program.tensors[tensor].type)

        block = Block(arg_types=[type_of(entry.tensor) for entry in program.inputs])
        values: dict[int, SSAValue] = {}
        for entry, argument in zip(program.inputs, block.args, strict=True):
            _name(argument, program, entry.tensor)
            values[entry.tensor] = argument
        for number, operation in enumerate(program.operations):
            results = [type_of(tensor) for tensor in operation.results]
            operands = [values[tensor] for tensor in operation.operands]
            place = _op_description(program.name, number, operation.location)
            op = self._operation(operation, operands, results, place)
            if operation.location is not None:
                op.location = NameLoc(StringAttr(operation.location), UnknownLoc())
            for tensor, result in zip(operation.results, op.results, strict=True):
                _name(result, program, tensor)
                values[tensor] = result
            block.add_op(op)
        returned = [values[entry.tensor] for entry in program.outputs]
        block.add_op(ReturnOp(*returned))
        return _function_of(program, block, [value.type for value in returned])

    def _operation(
        self,
        operation: file.Operation,
        operands: Sequence[SSAValue],
        results: Sequence[Attribute],
        place: str,
    ) -> Operation:
        if operation.callee is not None:
            if operation.name == LoadCachedOp.name:
                return LoadCachedOp(operation.callee, operands, results)
            if operation.name == WhileLoopOp.name:
                return _loop(operation, operands, results)
            if operation.name == CallOp.name:
                return CallOp(operation.callee, list(operands), list(results))
        dialect, _, name = operation.name.partition(".")
        op_class = self._op_classes.get(dialect, {}).get(name)
        if op_class is None or not op_class.definition.has_segments(operation.operand_sizes):
            raise CompileError(
                f"{place}: the file calls '{operation.name}' in a way that this version does not "
                "know",
                remedy="compile the model again with this version of ttcodegen",
            )
        return op_class.create(
            operands=list(operands),
            result_types=list(results),
            properties=_properties(operation, op_class, self._constants, place),
        )


def _loop(
    operation: file.Operation, operands: Sequence[SSAValue], results: Sequence[Attribute]
) -> WhileLoopOp:
    found = {each.name: file.plain_value(each.value, ()) for each in operation.attributes}
    trips: int | None = found.get(file.TRIP_COUNT)
    going = operands[0] if trips is None else None
    inputs = operands[int(trips is None) :]
    count = len(results)
    return WhileLoopOp(str(operation.callee), going, inputs[:count], inputs[count:], trips, results)


def _function_of(program: file.Program, block: Block, results: Sequence[Attribute]) -> FuncOp:
    """Creates a function with that body and the interface of the record."""
    function = FuncOp(
        program.name,
        FunctionType.from_lists([a.type for a in block.args], list(results)),
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
    """Returns the function's type in the source, None if the file does not state it."""

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


def _properties(
    operation: file.Operation,
    op_class: type[CatalogueOp],
    constants: Sequence[Attribute],
    place: str,
) -> dict[str, Attribute]:
    definition = op_class.definition
    specs = {spec.name: spec for spec in definition.attributes}
    properties: dict[str, Attribute] = {}
    for attribute in operation.attributes:
        spec = specs.get(attribute.name)
        if spec is None:
            raise CompileError(f"{place}: '{operation.name}' has no '{attribute.name}' here")
        value = file.plain_value(attribute.value, constants)
        if value is None or value == spec.default:
            continue
        try:
            properties[spec.name] = spec.kind.encode(value)
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise CompileError(
                f"{place}: attribute '{spec.name}' of '{operation.name}' should be "
                f"{spec.kind.expected}"
            ) from error
    if definition.needs_segments:
        sizes = definition.written_segments(operation.operand_sizes)
        properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, sizes)
    return properties


# Verification of the functions of files, like that of parsed modules


def verify_ttnn(binary: file.Binary) -> None:
    """Verifies every call of a `.ttnn` file by its definition, and functions against their calls.

    Raises:
        CompileError: with function, position and name of each invalid op.
    """
    module = _ttnn_module(binary, [_constant_in_short(c) for c in binary.constants])
    _verify(module)
    verify_functions(module)


def verify_ttm(binary: file.DeviceBinary) -> None:
    """Verifies the semantics of the programs of a `.ttm` file, op by op.

    Raises:
        CompileError: as `verify_ttnn`.
    """
    constants = [_constant_in_short(constant) for constant in binary.constants]
    maker = _FunctionMaker({"ttir": ttir_op_classes()}, constants, _plain_type)
    inner = [function for function in binary.functions if function.kind != "entry"]
    module = ModuleOp([maker.function(function) for function in inner])
    _verify(module)
    verify_functions(module)


def _verify(module: ModuleOp) -> None:
    diagnostics = Diagnostics()
    faults = dict(faults_of_ops(module))
    for op, place in _described_ops(module):
        if (fault := faults.get(op)) is not None:
            diagnostics.error(f"{place}: {fault}")
    diagnostics.raise_errors()


def _described_ops(module: ModuleOp) -> Iterator[tuple[Operation, str]]:
    for function in module.ops:
        if isinstance(function, FuncOp):
            name = function.sym_name.data
            yield function, f"function '{name}'"
            for number, op in enumerate(function.body.block.ops):
                yield op, _op_description(name, number, location_text(op))


def _op_description(function: str, number: int, location: str | None) -> str:
    """Describes an op by its position, because files have no lines, and its source location."""
    where = f" at {location}" if location else ""
    return f"function '{function}', operation {number}{where}"


def _plain_type(type_: file.TensorType) -> Attribute:
    """Returns the type of a tensor without its placement."""
    return TensorType(DataType.from_mlir(type_.data_type).element_type, type_.shape)


_LARGE = 1 << 16
"""Bytes above which verification keeps only the first element of a constant.

No op reads more of large constants, and weights need not be in memory twice.
"""


def _constant_in_short(constant: file.Constant) -> Attribute:
    if len(constant.elements) <= _LARGE:
        return _constant(constant)
    size = file.ELEMENT_SIZES[constant.element_type]
    return _constant(replace(constant, elements=constant.elements[:size]))
