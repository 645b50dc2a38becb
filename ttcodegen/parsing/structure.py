"""Module structure: wrappers, CPU modules, and all unsupported ops at once."""

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

# Functions for the CPU, as they are written: in a `ttcore.cpu_module` beside the device's.
#
# A module of ours is flat. A function that runs on the CPU says so (`is_cpu_function`), and is
# next to those that call it; in the text the module that calls it declares it.

CPU_MODULE = "ttcore.cpu_module"
_DECLARED = "_decl"
"""Prefixes of function names in declarations of older tools."""


def take_cpu_functions(operations: Sequence[Operation]) -> list[FuncOp]:
    """Takes the functions for the CPU out of the operations of a file, and their declarations;
    calls name the functions themselves from then on.

    Raises:
        CompileError: if a module for the CPU holds something else than functions.
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
        # Reading gives what begins with `tt.` the name of today's dialect.
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


# The shape of a module: wrappers taken off, and what is not supported listed all at once.

_LOWER_DIALECTS = frozenset({"arith", "emitc", "memref", "scf", "ttkernel", "ttmetal"})
"""Dialects that are read for tools that look at one stage; no input of the compiler has them."""

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
"""Operations of TTNN that tt-mlir prints and no program here has."""
_TILES = "work on tiles is not compiled, only work on whole tensors"
_WHOLE_TENSORS = (
    "give the module as it was before its lowering; a ttir.generic on whole tensors compiles: ops "
    "of TTIR in its region, which takes and yields tensors of the types of the operands"
)
for _dialect in ("ttkernel", "emitc"):
    _REMEDIES[_dialect] = "give the module as it was before its lowering"


def refused(name: str) -> str | None:
    """Reason for which no target supports an operation of the catalogue, None if one does."""
    dialect, _, short_name = name.partition(".")
    definition = TTIR.get(short_name) if dialect == "ttir" else None
    return definition.refusal if definition is not None else None


@cache
def _names_of_generics() -> frozenset[str]:
    from ttcodegen.dialects.ttir.generic import generic_ops

    return frozenset(op.name for op in generic_ops())


def unsupported(name: str) -> str:
    """The message at an operation that cannot be compiled."""
    if (reason := refused(name)) is not None:
        return f"'{name}' is not supported: {reason}"
    if name in _names_of_generics():
        return f"'{name}' is not supported here: {_TILES}"
    if name in _REMEDIES_FOR_OPERATIONS:
        return f"'{name}' is not supported"
    return f"unknown operation '{name}'"


def remedy_for_operation(name: str) -> str | None:
    """Remedy for an unknown operation: one of a similar name, or that of its dialect."""
    dialect = name.partition(".")[0]
    if name in _names_of_generics():
        return _WHOLE_TENSORS
    if dialect == "ttir" and refused(name) is None:
        close = closest(name, (f"ttir.{known}" for known in TTIR))
        return f"did you mean '{close}'?" if close is not None else None
    return _REMEDIES_FOR_OPERATIONS.get(name) or _REMEDIES.get(dialect)


FIXED_SHAPES = "export the model for inputs of fixed shapes"
"""Remedy for sizes that are only known at run time."""


def is_of_unknown_size(type_: Attribute) -> bool:
    """True if tensors of the type have an unknown size or rank."""
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
    """Refuses what gives tensors of elements that no device tensor has; what is quantized is left
    to those who express it otherwise.

    Raises:
        CompileError: at the operation.
    """
    if _has_unknown_elements(type_) and "!quant." not in str(type_):
        raise CompileError(_refusal(type_) or "", op, remedy=_remedy_for_type(type_))


def _has_unknown_elements(type_: Attribute) -> bool:
    """True if tensors of the type have elements that no device tensor has."""
    if not isinstance(type_, TensorType):
        return False
    return normalized_data_type(cast("TensorType[Attribute]", type_).element_type) is None


def flatten(operations: list[Operation], diagnostics: Diagnostics) -> ModuleOp:
    """One module of functions from the top-level operations of a file.

    Modules inside modules, `ttcore.device_module` and `ttcore.cpu_module` are opened; of the
    descriptions of devices the first is kept that is understood. The attributes of modules around
    one another are kept, the inner ones win. Functions of equal name in different modules get a
    number.

    Raises:
        CompileError: if functions for the CPU are lowered, or a module defines a symbol twice.
    """
    module = ModuleOp([])
    attributes: dict[str, Attribute] = {}
    for operation in operations:
        _call_decompositions(operation)
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


def _call_decompositions(operation: Operation) -> None:
    """A composite is what the function that it names computes."""
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
    """Functions of one module and the modules in it, under names not in `taken`, which it
    extends."""
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
    """True if an op describes a device in a form that is not supported any more."""
    if operation_name(op) != DEVICE:
        return False
    return not isinstance(op, DeviceOp) or op.device_attr is None


def _rename(functions: list[Operation], names: dict[str, str]) -> None:
    """Gives functions of one module new names, where they are defined and where they are called."""
    for function in functions:
        for op in function.walk():
            if isinstance(op, FuncOp) and op.sym_name.data in names:
                op.sym_name = StringAttr(names[op.sym_name.data])
            elif isinstance(op, CallOp) and op.callee.root_reference.data in names:
                op.callee = SymbolRefAttr(names[op.callee.root_reference.data])


def _is_wrapper(op: Operation) -> bool:
    return isinstance(op, ModuleOp) or operation_name(op) == DEVICE_MODULE


def _opened(wrapper: Operation) -> list[Operation]:
    """The operations in a module, taken out of it."""
    content = [op for region in wrapper.regions for block in region.blocks for op in block.ops]
    for op in content:
        op.detach()
    return [op for op in content if operation_name(op) != CPU_MODULE]


def refuse_unregistered(module: ModuleOp, remedy: str | None = None) -> None:
    """Raises CompileError with all operations that no dialect has, each with its count; `remedy`
    goes with those that have none of their own."""
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
    """Refuses what no stage after parsing could handle.

    Raises:
        CompileError: with one diagnostic for each unknown or refused operation (how often, first
            where), each tensor type that no device tensor can represent, and each function with
            several blocks.
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
    """Reason for which no target supports the op, though one supports others of its name."""
    if not isinstance(op, CatalogueOp):
        return None
    definition = op.definition
    if not isinstance(definition, TTIRDefinition) or definition.refused_form is None:
        return None
    try:
        return definition.refused_form(op)
    except VerifyException:
        return None  # The verifier of the op says what is wrong with it.
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        # A form is looked at before anything is verified: shapes and attributes may be any.
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
    """True if an op belongs to a stage after TTIR."""
    dialect = op.dialect_name()
    return dialect in _LOWER_DIALECTS or (dialect == "ttir" and not isinstance(op, CatalogueOp))


def _values(op: Operation) -> Iterator[SSAValue]:
    if isinstance(op, FuncOp):
        for block in op.body.blocks:
            yield from block.args
    yield from op.results


def _refusal(type_: Attribute) -> str | None:
    """Reason for which no device tensor can represent a type, None if one can."""
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
    """The message, and how often it applies."""
    return message if count == 1 else f"{message} ({count} times)"
