"""Module structure: wrappers, CPU modules, and unsupported ops reported at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count
from typing import cast

from xdsl.dialects.builtin import (
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    UnrankedTensorType,
    UnrealizedConversionCastOp,
    UnregisteredOp,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import normalized_data_type
from ttcodegen.dialects.operations.functions import CPU_CALL, CPU_FUNCTION, FUNCTION_TYPE
from ttcodegen.dialects.operations.operation import CatalogueOp, operation_name
from ttcodegen.dialects.ttcore.dialect import DeviceOp
from ttcodegen.foundation.diagnostics import (
    CompileError,
    Diagnostic,
    Diagnostics,
    Note,
    copy_source_offset,
    place_of,
    source_offset,
)
from ttcodegen.foundation.messages import closest
from ttcodegen.ops.core.definition import TTIR, TTIRDefinition

# CPU functions, in a `ttcore.cpu_module` beside the device module.
#
# Our modules are flat: CPU functions are marked (`is_cpu_function`), next to their callers. In the
# text, the device module has declarations of them.

CPU_MODULE = "ttcore.cpu_module"
_DECLARED = "_decl"
"""Suffix of declared function names in the output of older tools."""


def take_cpu_functions(operations: Sequence[Operation]) -> list[FuncOp]:
    """Takes CPU functions and their declarations out of the operations of a file.

    Calls refer to the functions themselves from then on.

    Raises:
        CompileError: if a CPU module has anything but functions.
    """
    modules = [op for top in operations for op in top.walk() if _is_cpu_module(op)]
    functions = [function for module in modules for function in _functions(module)]
    if not functions:
        return []
    defined = {function.sym_name.data for function in functions}
    names = defined | {f"{name}{_DECLARED}" for name in defined}
    on_cpu = {op for function in functions for op in function.walk()}
    for op in [op for top in operations for op in top.walk()]:
        if isinstance(op, FuncOp) and op.is_declaration and op.sym_name.data in names:
            op.detach()
        elif isinstance(op, CallOp) and (name := op.callee.string_value()) in names:
            if name not in defined:
                op.callee = SymbolRefAttr(name.removesuffix(_DECLARED))
            if op not in on_cpu:
                op.attributes[CPU_CALL] = UnitAttr()
    for function in functions:
        function.detach()
        function.sym_visibility = StringAttr("private")
        # The parser renames the `tt` dialect to `ttcore`.
        function.attributes.pop(FUNCTION_TYPE.replace("tt.", "ttcore."), None)
        function.attributes[FUNCTION_TYPE] = CPU_FUNCTION
    return functions


def _is_cpu_module(op: Operation) -> bool:
    name = op.op_name.data if isinstance(op, UnregisteredOp) else op.name
    return name == CPU_MODULE


def _functions(module: Operation) -> Iterator[FuncOp]:
    for region in module.regions:
        for block in region.blocks:
            for op in block.ops:
                if isinstance(op, ModuleOp):
                    yield from _functions(op)
                elif isinstance(op, FuncOp):
                    yield op
                else:
                    raise CompileError(
                        "a ttcore.cpu_module should contain functions of TTIR",
                        op,
                        remedy="give the module as it was before its functions were lowered",
                    )


# Flattening of modules, and diagnostics of unsupported ops.

_LOWER_DIALECTS = frozenset({"arith", "emitc", "memref", "scf", "ttkernel", "ttmetal"})
"""Dialects that are parsed for tools on single stages, but are no compiler input."""

DEVICE_MODULE = "ttcore.device_module"
DEVICE = "ttcore.device"
COMPOSITE = "ttcore.composite"

_REMEDIES = {
    "ttnn": "give the module as it was before its lowering to TTNN",
    "ttmetal": "give the module as it was before its lowering to TTMetal",
    "d2m": "give the module as it was before its lowering to D2M",
}
_TRACES = "compile the module as it was before traces were captured; --trace captures one"
_REMEDIES_FOR_OPERATIONS = {
    "ttnn.begin_trace_capture": _TRACES,
    "ttnn.end_trace_capture": _TRACES,
    "ttnn.execute_trace": _TRACES,
    "ttnn.capture_or_execute_trace": _TRACES,
}
"""TTNN operations that tt-mlir prints and this compiler does not support."""
_TILES = "work on tiles is not compiled, only work on whole tensors"
_WHOLE_TENSORS = (
    "give the module as it was before its lowering; a ttir.generic on whole tensors compiles: ops "
    "of TTIR in its region, which takes and yields tensors of the types of the operands"
)
for _dialect in ("ttkernel", "emitc"):
    _REMEDIES[_dialect] = "give the module as it was before its lowering"


def refused(name: str) -> str | None:
    """Returns why no target supports an operation of the catalogue, or None."""
    dialect, _, short_name = name.partition(".")
    definition = TTIR.get(short_name) if dialect == "ttir" else None
    return definition.refusal if definition is not None else None


@cache
def _names_of_generics() -> frozenset[str]:
    from ttcodegen.dialects.ttir.generic import generic_ops

    return frozenset(op.name for op in generic_ops())


def unsupported(name: str) -> str:
    """Returns the message for an unsupported operation."""
    if (reason := refused(name)) is not None:
        return f"'{name}' is not supported: {reason}"
    if name in _names_of_generics():
        return f"'{name}' is not supported here: {_TILES}"
    if name in _REMEDIES_FOR_OPERATIONS:
        return f"'{name}' is not supported"
    return f"unknown operation '{name}'"


def remedy_for_operation(name: str) -> str | None:
    """Returns the remedy for an unknown operation: a similar name, or that of its dialect."""
    dialect = name.partition(".")[0]
    if name in _names_of_generics():
        return _WHOLE_TENSORS
    if dialect == "ttir" and refused(name) is None:
        close = closest(name, (f"ttir.{known}" for known in TTIR))
        return f"did you mean '{close}'?" if close is not None else None
    return _REMEDIES_FOR_OPERATIONS.get(name) or _REMEDIES.get(dialect)


FIXED_SHAPES = "export the model for inputs of fixed shapes"
"""Remedy for dynamic shapes."""


def is_of_unknown_size(type_: Attribute) -> bool:
    """Returns whether a tensor type has a dynamic shape or unknown rank."""
    if isinstance(type_, UnrankedTensorType):
        return True
    if not isinstance(type_, TensorType):
        return False
    return any(size < 0 for size in cast("TensorType[Attribute]", type_).get_shape())


def _remedy_for_type(type_: Attribute) -> str | None:
    if is_of_unknown_size(type_):
        return FIXED_SHAPES
    if "!quant." in str(type_):
        return (
            "quantize to integers of up to 32 bits with one scale for the tensor, or one for each "
            "place along one dimension"
        )
    if _has_unknown_elements(type_):
        return "convert them to bfloat16, float32 or int32"
    return None


def refuse_elements(type_: Attribute, op: Operation) -> None:
    """Raises CompileError for tensors of unsupported elements, except quantized ones.

    Quantized types are lowered later.

    Raises:
        CompileError: at the operation.
    """
    if _has_unknown_elements(type_) and "!quant." not in str(type_):
        raise CompileError(_refusal(type_) or "", op, remedy=_remedy_for_type(type_))


def _has_unknown_elements(type_: Attribute) -> bool:
    """Returns whether no device tensor supports the elements of a tensor type."""
    if not isinstance(type_, TensorType):
        return False
    return normalized_data_type(cast("TensorType[Attribute]", type_).element_type) is None


def flatten(operations: list[Operation], diagnostics: Diagnostics) -> ModuleOp:
    """Returns one module of functions from the top-level operations of a file.

    Nested modules, `ttcore.device_module` and `ttcore.cpu_module` are opened; the first supported
    device description is kept. Attributes of nested modules are merged, inner ones win. Functions
    of equal name in different modules are numbered.

    Raises:
        CompileError: if CPU functions are lowered, a module defines a symbol twice, or a device
            module does not contain exactly one module.
    """
    module = ModuleOp([])
    attributes: dict[str, Attribute] = {}
    for operation in operations:
        _call_decompositions(operation)
        _require_one_module(operation)
    cpu_functions = take_cpu_functions(operations)
    content = [op for op in operations if operation_name(op) != CPU_MODULE]
    while len(content) == 1 and _is_wrapper(content[0]):
        wrapper = content[0]
        if isinstance(wrapper, ModuleOp):
            attributes |= wrapper.attributes
            if wrapper.sym_name is not None:
                module.sym_name = wrapper.sym_name
            copy_source_offset(wrapper, module)
        content = _opened(wrapper)
    module.attributes.update(attributes)
    taken: set[str] = set()
    functions = _module_functions([*content, *cpu_functions], taken, diagnostics)
    devices = [op for op in functions if isinstance(op, DeviceOp)]
    module.body.block.add_ops(op for op in functions if op not in devices[1:])
    return module


def _require_one_module(operation: Operation) -> None:
    for op in operation.walk():
        if operation_name(op) not in (DEVICE_MODULE, CPU_MODULE):
            continue
        blocks = [block for region in op.regions for block in region.blocks]
        modules = sum(isinstance(each, ModuleOp) for block in blocks for each in block.ops)
        if modules != 1:
            raise CompileError(f"'{operation_name(op)}' is around one module, found {modules}", op)


def _call_decompositions(operation: Operation) -> None:
    """Replaces composites by calls of their decompositions."""
    for op in list(operation.walk()):
        callee = op.attributes.get("decomposition")
        if callee is None:
            callee = op.properties.get("decomposition")
        if operation_name(op) != COMPOSITE or not isinstance(callee, SymbolRefAttr):
            continue
        call = CallOp(callee.string_value(), op.operands, [result.type for result in op.results])
        copy_source_offset(op, call)
        for old, new in zip(op.results, call.results, strict=True):
            new.name_hint = old.name_hint
        Rewriter.replace_op(op, call)


def _module_functions(
    content: list[Operation], taken: set[str], diagnostics: Diagnostics
) -> list[Operation]:
    """Returns the functions of a module and its nested modules, under names not in `taken`.

    Extends `taken`.
    """
    content = [op for op in content if not _is_undescribed_device(op)]
    _require_distinct_symbols(content)
    own = [op for op in content if not _is_wrapper(op)]
    renamed: dict[str, str] = {}
    for op in own:
        if not isinstance(op, FuncOp):
            continue
        name = op.sym_name.data
        if name in taken:
            renamed[name] = next(n for i in count(1) if (n := f"{name}_{i}") not in taken)
            diagnostics.warn(f"another module defines @{name}; this one is @{renamed[name]}", op)
        taken.add(renamed.get(name, name))
    if renamed:
        _rename(own, renamed)
    functions: list[Operation] = []
    for op in content:
        if _is_wrapper(op):
            functions += _module_functions(_opened(op), taken, diagnostics)
        else:
            functions.append(op)
    return functions


def _require_distinct_symbols(content: list[Operation]) -> None:
    """Raises CompileError if two operations of one module define the same symbol."""
    defined: dict[str, Operation] = {}
    for op in content:
        symbol = op.properties.get("sym_name", op.attributes.get("sym_name"))
        if not isinstance(symbol, StringAttr):
            continue
        first = defined.setdefault(symbol.data, op)
        if first is not op:
            kind = _SYMBOLS.get(type(op), "symbol")
            note = Note("first defined here", source_offset(first))
            raise CompileError(f"{kind} @{symbol.data} is defined twice", op, notes=[note])


_SYMBOLS: dict[type[Operation], str] = {FuncOp: "function", ModuleOp: "module"}


def _is_undescribed_device(op: Operation) -> bool:
    """Returns whether an op is a device in an unsupported form."""
    if operation_name(op) != DEVICE:
        return False
    return not isinstance(op, DeviceOp) or op.device_attr is None


def _rename(functions: list[Operation], names: dict[str, str]) -> None:
    """Renames functions of a module and their calls."""
    for function in functions:
        for op in function.walk():
            if isinstance(op, FuncOp) and op.sym_name.data in names:
                op.sym_name = StringAttr(names[op.sym_name.data])
            elif isinstance(op, CallOp) and op.callee.root_reference.data in names:
                op.callee = SymbolRefAttr(names[op.callee.root_reference.data])


def _is_wrapper(op: Operation) -> bool:
    return isinstance(op, ModuleOp) or operation_name(op) == DEVICE_MODULE


def _opened(wrapper: Operation) -> list[Operation]:
    """Detaches and returns the operations of a module."""
    content = [op for region in wrapper.regions for block in region.blocks for op in block.ops]
    for op in content:
        op.detach()
    return [op for op in content if operation_name(op) != CPU_MODULE]


def refuse_unregistered(module: ModuleOp, remedy: str | None = None) -> None:
    """Raises CompileError with all unknown operations, each with its count.

    `remedy` is used for operations without a specific one.
    """
    found: dict[str, list[UnregisteredOp]] = {}
    for op in module.walk():
        if isinstance(op, UnregisteredOp):
            found.setdefault(operation_name(op), []).append(op)
    errors = [
        Diagnostic(
            counted(unsupported(name), len(ops)),
            place_of(ops[0]),
            remedy_for_operation(name) or remedy,
        )
        for name, ops in found.items()
    ]
    if errors:
        raise CompileError.from_diagnostics(errors)


_IN_GENERIC = (
    "put it into the body of a linalg.generic, as mlir-opt --convert-elementwise-to-linalg does, "
    "or write the op of TTIR"
)


def check_supported(module: ModuleOp) -> None:
    """Refuses what no later stage supports.

    Raises:
        CompileError: with one diagnostic for each unknown or refused operation (with count and
            first location), each unsupported tensor type, and each function with several blocks.
    """
    findings: dict[str, list[Operation | SSAValue]] = {}
    remedies: dict[str, str | None] = {}
    types: dict[Attribute, str | None] = {}
    for op in module.walk():
        if isinstance(op, UnregisteredOp | UnrealizedConversionCastOp) or _is_lowered(op):
            name = operation_name(op)
            message = unsupported(name)
            findings.setdefault(message, []).append(op)
            remedies[message] = remedy_for_operation(name)
        elif op.dialect_name() == "math" and any(
            isinstance(value.type, TensorType) for value in op.results
        ):
            message = f"'{op.name}' of tensors is not supported"
            findings.setdefault(message, []).append(op)
            remedies[message] = _IN_GENERIC
        elif op.dialect_name() == "tensor":
            message = f"'{op.name}' beside operations of TTIR or TTNN is not supported"
            findings.setdefault(message, []).append(op)
            remedies[message] = "write the op of TTIR"
        elif refused(op.name) is not None:
            findings.setdefault(unsupported(op.name), []).append(op)
        elif (reason := _refused_form(op)) is not None:
            findings.setdefault(f"this '{op.name}' is not supported: {reason}", []).append(op)
        elif isinstance(op, FuncOp):
            if not op.body.blocks:
                findings.setdefault("a function without a body is not supported", []).append(op)
            elif len(op.body.blocks) > 1:
                findings.setdefault("control flow between blocks is not supported", []).append(op)
        for value in _values(op):
            if value.type not in types:
                types[value.type] = _refusal(value.type)
            if (message := types[value.type]) is not None:
                findings.setdefault(message, []).append(value)
                remedies[message] = _remedy_for_type(value.type)
    diagnostics = [
        Diagnostic(counted(message, len(where)), place_of(where[0]), remedies.get(message))
        for message, where in findings.items()
    ]
    if diagnostics:
        raise CompileError.from_diagnostics(diagnostics)


def _refused_form(op: Operation) -> str | None:
    """Returns why no target supports this form of an op, or None."""
    if not isinstance(op, CatalogueOp):
        return None
    definition = op.definition
    if not isinstance(definition, TTIRDefinition) or definition.refused_form is None:
        return None
    try:
        return definition.refused_form(op)
    except VerifyException:
        return None  # Reported by the verifier of the op.
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        # Forms are checked before verification: shapes and attributes may be invalid.
        if _is_verified(op):
            raise
        return None


def _is_verified(op: CatalogueOp) -> bool:
    try:
        op.verify_()
    except VerifyException:
        return False
    return True


def _is_lowered(op: Operation) -> bool:
    """Returns whether an op belongs to a stage after TTIR."""
    dialect = op.dialect_name()
    return dialect in _LOWER_DIALECTS or (dialect == "ttir" and not isinstance(op, CatalogueOp))


def _values(op: Operation) -> Iterator[SSAValue]:
    if isinstance(op, FuncOp):
        for block in op.body.blocks:
            yield from block.args
    yield from op.results


def _refusal(type_: Attribute) -> str | None:
    """Returns why no device tensor supports a type, or None."""
    if isinstance(type_, UnrankedTensorType):
        return f"tensors of unknown rank are not supported: {type_}"
    if not isinstance(type_, TensorType):
        return f"values of type {type_} are not supported"
    tensor = cast(TensorType[Attribute], type_)
    if any(size < 0 for size in tensor.get_shape()):
        return f"tensors of unknown size are not supported: {type_}"
    if any(size >= 1 << 32 for size in tensor.get_shape()):
        return f"tensors with a dimension of 2^32 or more are not supported: {type_}"
    if normalized_data_type(tensor.element_type) is None:
        return f"elements of type {tensor.element_type} are not supported"
    return None


def counted(message: str, count: int) -> str:
    """Returns the message with the number of occurrences."""
    return message if count == 1 else f"{message} ({count} times)"
