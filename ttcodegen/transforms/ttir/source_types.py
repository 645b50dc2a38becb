"""Conversion of source element types for which the device has fewer bits, with notes to users."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    Float16Type,
    FunctionType,
    IntegerType,
    ModuleOp,
    Signedness,
    TensorType,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.hints import isa

from ttcodegen.dialects.core.datatypes import (
    constant_array,
    element_of,
    elements,
    f32,
    is_boolean,
    shape_of,
)
from ttcodegen.dialects.operations.functions import SOURCE_TYPES
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import Source, place_of
from ttcodegen.foundation.messages import Level, report
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.ops.core.definition import TTIRDefinition, traits_of
from ttcodegen.ops.core.traits import COMPARISON
from ttcodegen.ops.dialects import ttir_op_classes
from ttcodegen.transforms.rewriting import (
    Rewriter,
    function_blocks,
    functions,
    rewrite_each,
    set_type,
)
from ttcodegen.transforms.ttir.integer_ranges import needs_upper_half
from ttcodegen.transforms.ttir.queries import is_elementwise

_f16 = Float16Type()
_ui64 = IntegerType(64, Signedness.UNSIGNED)
_STEEP = frozenset(
    f"ttir.{name}"
    for name in (
        "acos acosh asin atanh ceil cos floor log pow round rsqrt sin sqrt tan trunc".split()
    )
)
_MOST_KEPT = 8
"""Upper bound on float32 ops between an argument and an op that needs all its bits."""
_MOST_NAMES = 4
"""Upper bound on the values that a note names."""


def widen_f16(module: ModuleOp) -> bool:
    """Widens all f16 tensors to f32; callers still pass and receive f16. Returns False if there are
    none."""
    found = False
    for function in functions(module):
        source = function.function_type
        widened = FunctionType.from_lists(
            [_widened(type_) for type_ in source.inputs],
            [_widened(type_) for type_ in source.outputs],
        )
        function.attributes.setdefault(SOURCE_TYPES, source)
        function.properties["function_type"] = widened
        for block in function_blocks(function):
            for value in (*block.args, *(result for op in block.ops for result in op.results)):
                found |= (type_ := _widened(value.type)) is not value.type
                set_type(value, type_)
            for op in block.ops:
                for attributes in (op.properties, op.attributes):
                    for key, attribute in attributes.items():
                        attributes[key] = _widened_attribute(attribute)
    return found


def _widened(type_: Attribute) -> Attribute:
    if not isinstance(type_, TensorType):
        return type_
    tensor = cast("TensorType[Attribute]", type_)
    if tensor.element_type != _f16:
        return tensor
    return TensorType(f32, tensor.get_shape(), tensor.encoding)


def _widened_attribute(attribute: Attribute) -> Attribute:
    match attribute:
        case Float16Type():
            return f32
        case DenseIntOrFPElementsAttr():
            return _widened_elements(attribute)
        case _:
            return _widened(attribute)


def _widened_elements(attribute: DenseIntOrFPElementsAttr) -> Attribute:
    """Widens constant elements; splats stay splats."""
    if attribute.type.get_element_type() != _f16:
        return attribute
    values = constant_array(attribute)
    stored = values if values.size == 0 or any(values.strides) else values[(0,) * values.ndim]
    return elements(f32, attribute.type.get_shape(), stored.astype("float32").tobytes())


def settle_source_types(module: ModuleOp, f16: str, source: Source) -> None:
    """Applies the choice for f16, and reports lossy types to the user.

    Notes list 64-bit integers and f16 of arguments and results, and ops that need the high half of
    integers computed from narrower ones.
    """
    outer = list(_outer_elements(module))
    wide = [place for place, element in outer if element in (IntegerType(64), _ui64)]
    if wide:
        report(
            Level.INFO,
            "ttcodegen: note: integers of 64 bits have 32 on the device, and their lowest bits are "
            f"kept: {_listed(wide)}",
        )
    if lossy := [_described(op, source) for op in needs_upper_half(module)]:
        report(
            Level.INFO,
            "ttcodegen: note: integers beyond 32 bits keep their lowest 32 on the device, but all "
            f"bits are needed by {_listed(lossy)}",
        )
    if f16 == "float32":
        if not widen_f16(module):
            report(Level.INFO, "ttcodegen: note: the module has no f16 that --f16 could widen")
        return
    _keep_bits_of_arguments(module)
    if half := [place for place, element in outer if element == _f16]:
        report(
            Level.INFO,
            "ttcodegen: note: f16 is bf16 on the device, which has three bits less: "
            f"{_listed(half)}; --f16 float32 keeps its values",
        )


def _keep_bits_of_arguments(module: ModuleOp) -> None:
    """Computes in float32 from f16 arguments to ops that need all bits.

    Such ops amplify or cut off the last bits, or convert to float32 or integers. Only elementwise
    ops and data movement in between are widened.
    """
    called = {name for op in module.walk() if (name := _callee(op)) is not None}
    for function in functions(module):
        if not function.is_declaration and function.sym_name.data not in called:
            _KeptBits(function).run()


class _KeptBits:
    """Widening of f16 to float32 between arguments and the ops that need all bits."""

    def __init__(self, function: FuncOp) -> None:
        self._function = function
        self._ops, self._arguments = _before_all_bits(function.body.block)
        self._wide: dict[SSAValue, SSAValue] = {}
        """Float32 values by their f16 counterparts."""

    def run(self) -> None:
        if not self._arguments:
            return
        function, block = self._function, self._function.body.block
        function.attributes.setdefault(SOURCE_TYPES, function.function_type)
        first = block.first_op
        assert first is not None
        for argument in self._arguments:
            half = argument.type
            set_type(argument, _widened(half))
            cast_ = ttir_op_classes()["typecast"].create(operands=[argument], result_types=[half])
            block.insert_op_before(cast_, first)
            argument.replace_uses_with_if(
                cast_.results[0], lambda use, made=cast_: use.operation is not made
            )
            self._wide[cast_.results[0]] = argument
        function.properties["function_type"] = FunctionType.from_lists(
            [argument.type for argument in block.args], list(function.function_type.outputs)
        )
        rewrite_each(function, self._in_float32, self._ops.__contains__)

    def _in_float32(self, rewriter: Rewriter, op: CatalogueOp) -> SSAValue:
        operands = [self._widened(rewriter, value) for value in op.operands]
        result = op.results[0].type
        if op.name == "ttir.typecast" and element_of(result) == f32:
            return operands[0]
        found = rewriter.again(op, operands, _widened(result))
        if found.type == result:
            return found
        narrow = rewriter.typecast(found, _f16)
        self._wide[narrow] = found
        return narrow

    def _widened(self, rewriter: Rewriter, value: SSAValue) -> SSAValue:
        if value in self._wide or element_of(value.type) != _f16:
            return self._wide.get(value, value)
        if (number := splat_of(value)) is not None:
            return rewriter.full(shape_of(value.type), number, f32)
        return rewriter.typecast(value, f32)


def _before_all_bits(block: Block) -> tuple[set[Operation], list[SSAValue]]:
    """Returns ops that need all bits of f16 arguments with the ops before them, and the
    arguments."""
    distance = dict[SSAValue, int]()
    distance.update((value, 0) for value in block.args if _widened(value.type) != value.type)
    ops = [op for op in block.ops if isinstance(op, CatalogueOp)]
    for op in ops:
        near = [distance[value] for value in op.operands if value in distance]
        if near and max(near) < _MOST_KEPT and _keeps_bits(op):
            distance[op.results[0]] = 1 + max(near)
    needed, values = set[Operation](), set[SSAValue]()
    for op in reversed(ops):
        if _needs_all_bits(op) or not values.isdisjoint(op.results):
            before = [value for value in op.operands if value in distance]
            values.update(before)
            needed.update([op] if before else [])
    return needed, [value for value in block.args if value in values]


def _keeps_bits(op: CatalogueOp) -> bool:
    """Returns whether the op is elementwise or data movement, on f16."""
    if len(op.results) != 1 or element_of(op.results[0].type) != _f16 or op.name == "ttir.typecast":
        return False
    definition = op.definition
    return is_elementwise(op) or (isinstance(definition, TTIRDefinition) and definition.moves)


def _callee(op: Operation) -> str | None:
    return op.callee.string_value() if isinstance(op, CallOp) else None


def _needs_all_bits(op: CatalogueOp) -> bool:
    if op.name == "ttir.typecast":
        element = element_of(op.results[0].type)
        return element == f32 or (isa(element, IntegerType) and not is_boolean(element))
    return op.name in _STEEP or COMPARISON in traits_of(op.definition)


def _described(op: CatalogueOp, source: Source) -> str:
    place = place_of(op)
    where = source.location(place) if isinstance(place, int) else place
    return f"'{op.name}'" if where is None else f"'{op.name}' ({where})"


def _listed(places: list[str]) -> str:
    more = len(places) - _MOST_NAMES
    named = ", ".join(places[:_MOST_NAMES])
    return f"{named} and {more} more" if more > 0 else named


def _outer_elements(module: ModuleOp) -> Iterator[tuple[str, Attribute]]:
    """Yields arguments and results of all functions with their element types."""
    for function in functions(module):
        types = function.function_type
        for kind, each in (("argument", types.inputs.data), ("result", types.outputs.data)):
            for index, type_ in enumerate(each):
                if isinstance(type_, TensorType):
                    tensor = cast("TensorType[Attribute]", type_)
                    place = f"{kind} {index} of '@{function.sym_name.data}'"
                    yield place, tensor.element_type


def note_kept_weights(module: ModuleOp, weights: str) -> None:
    """Notes that a lowered module has no weights that can become block floats."""
    types = {value.type for op in module.walk() for value in (*op.results, *op.operands)}
    if not any("bfp_bf" in str(type_) for type_ in types):
        note_unused_weight_type(weights)


def note_unused_weight_type(weights: str) -> None:
    """Notes that no weights can become block floats."""
    report(
        Level.INFO,
        f"ttcodegen: note: no matmul has weights that can be {weights}: all keep their type",
    )
