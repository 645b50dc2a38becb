"""CPU hoisting: ops without a device program move into functions that run on the CPU."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, UnitAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import (
    INDEXED,
    SCATTER,
    WINDOWS,
    is_fill,
)
from ttcodegen.conversions.ttir_to_ttmetal.grouping.index_maps import is_movement
from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import (
    REDUCTIONS,
    is_elementwise,
    unsupported_on_tiles,
)
from ttcodegen.conversions.ttir_to_ttmetal.movement_programs import INDEX_OPERANDS
from ttcodegen.conversions.ttir_to_ttmetal.sort_and_scatter import (
    unsupported_order,
    unsupported_scatter,
)
from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.operations.functions import (
    CPU_CALL,
    CPU_FUNCTION,
    FUNCTION_TYPE,
    GENERIC,
    SOURCE_TYPES,
    is_cpu_function,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import ONE_CHIP, declared_mesh
from ttcodegen.dialects.ttcore.loops import WhileLoopOp
from ttcodegen.dialects.ttcore.tile import TILE_FORMATS, TILE_SIDE
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.diagnostics import CompileError, Diagnostic, copy_source_offset
from ttcodegen.layout.placements import TiledShape, tile_bytes_of
from ttcodegen.naming.functions import cpu_function_symbol
from ttcodegen.naming.sources import name_in_text
from ttcodegen.ops.attention.sdpa import ATTENTION, is_one_program
from ttcodegen.ops.collectives.reference import MESH_SHAPE
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.ops.core.definition import TTIRDefinition, has_trait, works_between_chips
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.reduction.reduce import is_on_integer_tiles
from ttcodegen.ops.tt_lang import CALLED_OPERATION
from ttcodegen.transforms.functions import is_entry
from ttcodegen.transforms.rewriting import body_of, functions

# Ops without a device program, and the reasons.

_INDICES = (DataType.INT32, DataType.UINT32)
MOST_ELEMENTS = 2**32
"""Maximum number of elements: kernels count them with 32 bits."""


def unsupported_reason(op: Operation) -> str | None:
    """Returns the reason for which an op has no device program; None if it has one."""
    if not isinstance(op, CatalogueOp):
        if isinstance(op, WhileLoopOp):
            return "a loop that is not unrolled has no lowering"
        is_call = CPU_CALL in op.attributes or GENERIC in op.attributes
        return (
            None if isinstance(op, ReturnOp | FuncOp) or is_call else f"'{op.name}' has no lowering"
        )
    if any(size == 0 for value in (*op.operands, *op.results) for size in shape_of(value.type)):
        return f"'{op.name}' of a tensor without elements has no lowering"
    if is_elementwise(op):
        return unsupported_on_tiles(op)
    if op.name in REDUCTIONS and is_on_integer_tiles(op):
        return None
    if op.name in REDUCTIONS or op.name == "ttir.matmul":
        integers = [v for v in op.operands if not declared_data_type(v).is_float]
        return f"'{op.name}' of integers has no lowering" if integers else None
    if op.name in WINDOWS:
        floats = all(declared_data_type(v).is_float for v in (*op.operands, *op.results))
        return None if floats else f"'{op.name}' of integers has no lowering"
    if op.name == ATTENTION and is_one_program(op):
        return None
    if has_trait(op, Trait.ORDERS):
        return unsupported_order(op)
    if op.name == SCATTER:
        return unsupported_scatter(op)
    if op.definition.in_place is not None:
        return _unsupported_cache(op)
    if is_movement(op) or op.name in INDEXED:
        return _unsupported_movement(op)
    if is_fill(op) or op.name == CALLED_OPERATION:
        return None
    return f"'{op.name}' has no lowering"


def _unsupported_movement(op: CatalogueOp) -> str | None:
    largest = max(prod(shape_of(value.type)) for value in (*op.operands, *op.results))
    if largest > MOST_ELEMENTS:
        return f"'{op.name}' of more than {MOST_ELEMENTS} elements has no lowering"
    if op.name in INDEXED:
        index = declared_data_type(op.operand(INDEX_OPERANDS[op.name]))
        if index not in _INDICES:
            return f"'{op.name}' has no lowering for {index.mlir} indices"
    data_type = declared_data_type(op.results[0])
    if TILE_FORMATS[data_type.mlir].shares_exponent:
        return f"'{op.name}' of {data_type.mlir} has no lowering"
    return None


def _unsupported_cache(op: CatalogueOp) -> str | None:
    cache = op.operand("cache")
    data_type = declared_data_type(cache)
    if TILE_FORMATS[data_type.mlir].shares_exponent or prod(shape_of(cache.type)) > MOST_ELEMENTS:
        return f"'{op.name}' of {data_type.mlir} has no lowering"
    if declared_data_type(op.operand("input")) is not data_type:
        return f"'{op.name}' of other elements than those of the cache has no lowering"
    if splat_of(cache) is not None:
        return f"'{op.name}' of a constant has no lowering"
    if op.name == "ttir.paged_update_cache" and op.parameter("share_cache"):
        # Cores would write rows of one tile at the same time.
        return f"'{op.name}' of a shared cache has no lowering"
    for value in op.operands:
        index = declared_data_type(value)
        if not index.is_float and index not in _INDICES:
            return f"'{op.name}' has no lowering for {index.mlir} indices"
    return None


def check_coverage(module: ModuleOp) -> None:
    """Raises CompileError with one diagnostic per reason for which ops have no program."""
    found: dict[str, list[Operation]] = {}
    hosts = [function for function in functions(module) if not is_cpu_function(function)]
    for op in (op for function in hosts for op in function.walk()):
        if _is_dead(op):
            continue
        reason = unsupported_reason(op)
        if reason is not None:
            found.setdefault(reason, []).append(op)
    if found:
        raise CompileError.from_diagnostics(
            [
                Diagnostic(
                    f"{reason} for --target ttmetal" + _times(len(ops)),
                    getattr(ops[0], "source_offset", None),
                    "compile for --target ttnn",
                )
                for reason, ops in found.items()
            ]
        )


def _is_dead(op: Operation) -> bool:
    """Returns whether an op needs no program: it fills a tensor with a number that kernels know."""
    if not is_fill(op) or not op.results or 0 in shape_of(op.results[0].type):
        return False
    return splat_of(op.results[0]) is not None


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""


# Moves ops into functions that run on the CPU, between device programs.
#
# An op becomes a function, with those of its operands that are splats, and is replaced by a call;
# equal ops share a function. An op that overwrites an operand does so in the function.

SHOULD_HOIST = "ttir.should_hoist"
"""Marks an op that is to run on the CPU."""


@dataclass(frozen=True)
class CPUHoistManuallyTagged(ModulePass):
    """Hoists ops that are marked `ttir.should_hoist`.

    Ops that overwrite an operand are left in place: they have no device program, so `cpu-hoist`
    moves them once the ops around them are final."""

    name = "cpu-hoist-manually-tagged"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _Hoisting(op).hoist(
            lambda op: (
                SHOULD_HOIST in op.attributes
                and op.definition.in_place is None
                and (runs_on_cpu(op) or _becomes_others(op))
            )
        )


@dataclass(frozen=True)
class CPUHoist(ModulePass):
    """Hoists ops without a device program, and movements of arguments that tiles would mostly pad.

    Constants in CPU functions that are not splats become arguments, so that they are stored in
    files of the project like those of other functions."""

    name = "cpu-hoist"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _Hoisting(op).hoist(
            lambda op: runs_on_cpu(op) and (unsupported_reason(op) is not None or _unpacks(op))
        )
        _pass_constants(op)


_MOST_PADDED_BYTES = 1 << 20
_MOST_PADDING = 8
"""Maximum ratio of elements in tiles to elements of the tensor."""


def _unpacks(op: CatalogueOp) -> bool:
    """Returns whether an op moves an argument or constant that tiles would mostly pad.

    An example is the weight of a convolution: the CPU has it in rows."""
    if not is_movement(op):
        return False
    value = op.operands[0]
    owner = value.owner
    is_given = isinstance(owner, Block) or owner.name == "ttir.constant" or CPU_CALL in (
        owner.attributes
    )  # fmt: skip
    data_type = declared_data_type(value)
    held = TiledShape(shape_of(value.type)).tiles * tile_bytes_of(data_type)
    tightly = prod(shape_of(value.type)) * tile_bytes_of(data_type) // TILE_SIDE**2
    return is_given and held > max(_MOST_PADDED_BYTES, _MOST_PADDING * tightly)


def runs_on_cpu(op: CatalogueOp) -> bool:
    """Returns whether the CPU has a function for an op."""
    definition = op.definition
    if not isinstance(definition, TTIRDefinition) or definition.cpu is None:
        return False
    if works_between_chips(op) and declared_mesh(op) == ONE_CHIP:
        return False
    if any(prod(shape_of(v.type)) > MOST_ELEMENTS for v in (*op.operands, *op.results)):
        return False
    # Other constants are stored in files, which the device loads directly.
    return op.name != "ttir.constant" or _is_number(op)


def _is_number(op: CatalogueOp) -> bool:
    return splat_of(op.results[0]) is not None or 0 in op.result_shape


def _becomes_others(op: CatalogueOp) -> bool:
    """Returns whether later passes decompose the op."""
    definition = op.definition
    assert isinstance(definition, TTIRDefinition)
    rules = (definition.decompose, definition.primitives, definition.program)
    return any(rule is not None for rule in rules)


class _Hoisting:
    """Hoists ops of the functions of a module."""

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        self._symbols = {f.sym_name.data: f for f in functions(module)}

    def hoist(self, wanted: Callable[[CatalogueOp], bool]) -> None:
        """Hoists the ops for which `wanted` is true."""
        for function in [f for f in functions(self._module) if is_entry(f)]:
            for op in list(function.body.block.ops):
                if isinstance(op, CatalogueOp) and wanted(op):
                    self._move(op)

    def _move(self, op: CatalogueOp) -> None:
        passed = passed_operands(op)
        made = _function_of(op, passed)
        symbol = made.sym_name.data
        if symbol not in self._symbols:
            self._symbols[symbol] = made
            self._module.body.block.add_op(made)
        replace_by_call(op, symbol, passed)


def replace_by_call(op: Operation, symbol: str, passed: Sequence[SSAValue]) -> None:
    """Replaces an op by a call of a CPU function, which has its results."""
    call = CallOp(symbol, passed, [result.type for result in op.results])
    call.attributes[CPU_CALL] = UnitAttr()
    call.location = op.location
    copy_source_offset(op, call)
    block = op.parent
    assert block is not None
    block.insert_op_before(call, op)
    for old, new in zip(op.results, call.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    block.erase_op(op)


def passed_operands(op: Operation) -> list[SSAValue]:
    """Returns the operands that a CPU function of an op takes: all but splats, which it makes."""
    return [value for value in dict.fromkeys(op.operands) if splat_of(value) is None]


def cloned_into(block: Block, op: Operation, mapping: dict[SSAValue, SSAValue]) -> Operation:
    """Adds a copy of an op to the block of a CPU function, after copies of its splats.

    Args:
        block: the block.
        op: the op.
        mapping: the arguments of the block for its other operands.
    """
    for value in dict.fromkeys(op.operands):
        if value not in mapping:
            assert isinstance(value.owner, Operation)
            block.add_op(value.owner.clone(mapping))
    inner = op.clone(mapping)
    copy_source_offset(op, inner)
    block.add_op(inner)
    return inner


def _function_of(op: CatalogueOp, passed: Sequence[SSAValue]) -> FuncOp:
    """Returns the op as a function of the passed operands.

    Its name contains a hash of its content, so that equal ops share it."""
    body = Block(arg_types=[value.type for value in passed])
    mapping: dict[SSAValue, SSAValue] = dict(zip(passed, body.args, strict=True))
    for value, name in _named_operands(op):
        if value in mapping:
            argument = mapping[value]
            argument.name_hint = name_in_text(argument, name)
    inner = cloned_into(body, op, mapping)
    inner.attributes.pop(SHOULD_HOIST, None)
    if works_between_chips(op):
        # The function must not depend on the mesh of its module.
        inner.properties[MESH_SHAPE.name] = MESH_SHAPE.kind.encode(declared_mesh(op))
    for result in inner.results:
        result.name_hint = None
    text = "\n".join(_description(each) for each in body.ops)
    body.add_op(ReturnOp(*inner.results))
    inputs = [value.type for value in passed]
    digest = hashlib.sha256(f"{inputs} {text}".encode()).hexdigest()[:8]
    function = FuncOp(
        cpu_function_symbol(op.definition.short_name, digest),
        FunctionType.from_lists(inputs, [result.type for result in op.results]),
        Region(body),
        "private",
    )
    function.attributes[FUNCTION_TYPE] = CPU_FUNCTION
    return function


def _named_operands(op: CatalogueOp) -> Iterator[tuple[SSAValue, str]]:
    for name, group in op.operand_groups().items():
        for index, value in enumerate(group):
            yield value, f"{name}_{index}" if len(group) > 1 else name


def _description(op: Operation) -> str:
    """Key that distinguishes an op from ops that compute something else."""
    places = [
        str(value.index) if isinstance(value, BlockArgument) else "number" for value in op.operands
    ]
    attributes = sorted(f"{k}={v}" for k, v in {**op.properties, **op.attributes}.items())
    return f"{op.name} {places} {attributes} {[str(result.type) for result in op.results]}"


def _pass_constants(module: ModuleOp) -> None:
    """Turns constants of CPU functions into arguments that their callers pass, those of bodies of
    loops into arguments of the functions around them first."""
    hoisted = [function for function in functions(module) if is_cpu_function(function)]
    calls: dict[str, list[CallOp | WhileLoopOp]] = {f.sym_name.data: [] for f in hoisted}
    for caller in functions(module) if hoisted else ():
        for op in body_of(caller).ops:
            if isinstance(op, CallOp | WhileLoopOp):
                calls.get(op.callee.string_value(), []).append(op)
    while any([_pass_constants_of(each, calls[each.sym_name.data]) for each in hoisted]):
        pass


def _pass_constants_of(function: FuncOp, calls: Sequence[CallOp | WhileLoopOp]) -> bool:
    """Turns constants of a function into arguments of its calls; returns whether it had any."""
    block = function.body.block
    constants = [
        op for op in block.ops if op.name == "ttir.constant" and splat_of(op.results[0]) is None
    ]
    for op in constants:
        argument = block.insert_arg(op.results[0].type, len(block.args))
        argument.name_hint = name_in_text(op.results[0], "constant")
        op.results[0].replace_all_uses_with(argument)
        op.detach()
    if not constants:
        return False
    outputs = list(function.function_type.outputs.data)
    types = [argument.type for argument in block.args]
    function.function_type = FunctionType.from_lists(types, outputs)
    function.attributes.pop(SOURCE_TYPES, None)
    if function.arg_attrs is not None:
        described = [*function.arg_attrs, *(DictionaryAttr({}) for _ in constants)]
        function.arg_attrs = ArrayAttr(described)
    for call in calls:
        _append_constants(call, constants)
    return True


def _append_constants(call: CallOp | WhileLoopOp, constants: Sequence[Operation]) -> None:
    copies = [constant.clone() for constant in constants]
    block = call.parent
    assert block is not None
    block.insert_ops_before(copies, call)
    values = [result for copy in copies for result in copy.results]
    if isinstance(call, WhileLoopOp):
        call.capture([*call.captured, *values])
    else:
        call.operands = [*call.operands, *values]
