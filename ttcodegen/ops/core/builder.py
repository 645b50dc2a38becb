"""Builder of catalogue ops, and the values of splat constants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import (
    element_of,
    elements,
    f32,
    numpy_name,
    shape_of,
    splat_value,
    tensor_type,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.lazy_numpy import Array, np

_MOST_OPS = 20_000
"""Upper bound on the number of ops that one op decomposes into."""

MOST_BROADCAST_DIMS = 6
"""Number of trailing dimensions in which the library broadcasts."""

Operand = SSAValue | Sequence[SSAValue] | None
Operands = Iterable[Operand]


class OpBuilder:
    """Creates ops of one dialect that replace an op.

    Operands that belong to the replaced program are looked up in `mapping`; new ops take the
    location of the op that they replace.
    """

    def __init__(
        self,
        classes: Mapping[str, type[CatalogueOp]],
        insert: Callable[[Operation], None],
        mapping: Mapping[SSAValue, SSAValue] | None = None,
    ) -> None:
        self._classes = classes
        self.insert = insert
        self._mapping: Mapping[SSAValue, SSAValue] = mapping if mapping is not None else {}
        self.origin: Operation | None = None
        self._counted: Operation | None = None
        self._made = 0

    def __getitem__(self, value: SSAValue) -> SSAValue:
        return self._mapping.get(value, value)

    def operand(self, op: CatalogueOp, name: str) -> SSAValue:
        """Returns the lowered operand of that name."""
        return self[op.operand(name)]

    def optional(self, op: CatalogueOp, name: str) -> SSAValue | None:
        """Returns the lowered operand of that name, None if it is absent."""
        value = op.optional_operand(name)
        return None if value is None else self[value]

    def emit_op(
        self,
        name: str,
        operands: Operands,
        results: Attribute | Sequence[Attribute],
        **attributes: Any,
    ) -> CatalogueOp:
        """Creates an op.

        Operands are in the order of the definition, one entry each: a value, None for an absent
        optional, a list for a variadic. Attributes that are None or equal to their default are left
        out.
        """
        op_class = self._classes[name]
        definition = op_class.definition
        groups = [_group(operand) for operand in operands]
        groups += [[] for _ in range(len(definition.operands) - len(groups))]
        properties: dict[str, Attribute] = {}
        for key, value in attributes.items():
            spec = definition.attribute(key)
            if value is not None and value != spec.default:
                properties[key] = spec.kind.encode(value)
        if definition.needs_segments:
            sizes = definition.written_segments([len(group) for group in groups])
            properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, sizes)
        origin = self.origin
        op = op_class.create(
            operands=[value for group in groups for value in group],
            result_types=[results] if isinstance(results, Attribute) else list(results),
            properties=properties,
            location=origin.location if origin is not None else None,
        )
        op.source_offset = getattr(origin, "source_offset", -1)
        self._count()
        self.insert(op)
        return op

    def _count(self) -> None:
        """Counts ops made for one origin; raises CompileError above `_MOST_OPS`."""
        if self.origin is not self._counted:
            self._counted, self._made = self.origin, 0
        self._made += 1
        if self._made > _MOST_OPS:
            assert self.origin is not None
            raise CompileError(
                f"'{self.origin.name}' of this size would become more than {_MOST_OPS} operations",
                self.origin,
            )

    def emit(self, name: str, operands: Operands, result: Attribute, **attributes: Any) -> SSAValue:
        """Creates an op with one result and returns that result."""
        if len(shape_of(result)) > MOST_BROADCAST_DIMS:
            operands = self._repeated(list(operands), shape_of(result))
        return self.emit_op(name, operands, result, **attributes).results[0]

    def _repeated(self, operands: Sequence[Operand], shape: Sequence[int]) -> Sequence[Operand]:
        """Repeats operands along leading dimensions in which the library cannot broadcast."""
        tensors = [each for each in operands if isinstance(each, SSAValue)]
        shapes = [shape_of(each.type) for each in tensors]
        if len(shapes) < 2 or broadcast_shapes(shapes) != tuple(shape):
            return operands
        outer = len(shape) - MOST_BROADCAST_DIMS
        result: list[Operand] = []
        for each in operands:
            if isinstance(each, SSAValue):
                own = shape_of(each.type)
                aligned = [1] * (len(shape) - len(own)) + list(own)
                each = self.repeat(self.reshape(each, aligned), [*shape[:outer], *aligned[outer:]])
            result.append(each)
        return result

    def like(
        self, name: str, *operands: SSAValue, element: Attribute | None = None, **attributes: Any
    ) -> SSAValue:
        """Creates an op with the shape and, unless `element` is given, element type of its first
        operand.
        """
        first = operands[0].type
        result = tensor_type(element or element_of(first), shape_of(first))
        return self.emit(name, operands, result, **attributes)

    def broadcasting(
        self, name: str, *operands: SSAValue, element: Attribute | None = None, **attributes: Any
    ) -> SSAValue:
        """Creates an elementwise op with the broadcast shape of its operands.

        Raises VerifyException if the shapes do not broadcast.
        """
        shape = broadcast_shapes([shape_of(operand.type) for operand in operands])
        if shape is None:
            shapes = " and ".join(str(shape_of(operand.type)) for operand in operands)
            raise VerifyException(f"{name}: the shapes {shapes} do not broadcast")
        result = tensor_type(element or element_of(operands[0].type), shape)
        return self.emit(name, operands, result, **attributes)

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Reshapes `value`; returns it unchanged if it has that shape."""
        if shape_of(value.type) == tuple(shape):
            return value
        result = tensor_type(element_of(value.type), shape)
        return self.emit("reshape", [value], result, shape=list(shape))

    def repeat(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Repeats `value` to that shape; returns it unchanged if it has that shape."""
        found = shape_of(value.type)
        factors = [wanted // max(size, 1) for wanted, size in zip(shape, found, strict=True)]
        if found == tuple(shape):
            return value
        result = tensor_type(element_of(value.type), shape)
        return self.emit("repeat", [value], result, repeat_dimensions=factors)

    def permute(self, value: SSAValue, permutation: Sequence[int]) -> SSAValue:
        """Permutes `value`: dimension i of the result is dimension permutation[i]."""
        if list(permutation) == list(range(len(permutation))):
            return value
        shape = shape_of(value.type)
        result = tensor_type(element_of(value.type), [shape[axis] for axis in permutation])
        return self.emit("permute", [value], result, permutation=list(permutation))

    def typecast(self, value: SSAValue, element: Attribute) -> SSAValue:
        """Casts `value` to that element type; returns it unchanged if it has that type."""
        if element_of(value.type) == element:
            return value
        return self.like("typecast", value, element=element)

    def full(self, shape: Sequence[int], fill_value: float, element: Attribute) -> SSAValue:
        """Creates a splat tensor."""
        result = tensor_type(element, shape)
        return self.emit("full", [], result, shape=list(shape), fill_value=fill_value)

    def constant(self, array: Array, element: Attribute = f32) -> SSAValue:
        """Creates a constant of a float type from a float32 array."""
        import ml_dtypes  # registers bfloat16 with numpy

        assert ml_dtypes is not None
        value = elements(element, array.shape, array.astype(numpy_name(element)).tobytes())
        return self.emit("constant", [], tensor_type(element, array.shape), value=value)

    def slice(
        self,
        value: SSAValue,
        begins: Sequence[int],
        ends: Sequence[int],
        step: Sequence[int] | None = None,
    ) -> SSAValue:
        """Slices `value` from `begins` to `ends` with strides `step` (default 1)."""
        step = list(step) if step is not None else [1] * len(begins)
        shape = [
            -(-(end - begin) // stride)
            for begin, end, stride in zip(begins, ends, step, strict=True)
        ]
        if tuple(shape) == shape_of(value.type) and all(stride == 1 for stride in step):
            return value
        result = tensor_type(element_of(value.type), shape)
        return self.emit(
            "slice_static", [value], result, begins=list(begins), ends=list(ends), step=step
        )

    def slice_dim(self, value: SSAValue, dim: int, begin: int, end: int) -> SSAValue:
        """Slices one dimension of `value` from `begin` to `end`."""
        shape = shape_of(value.type)
        begins = [begin if axis == dim else 0 for axis in range(len(shape))]
        ends = [end if axis == dim else size for axis, size in enumerate(shape)]
        return self.slice(value, begins, ends)

    def pad(
        self, value: SSAValue, widths: Sequence[tuple[int, int]], fill: float = 0.0
    ) -> SSAValue:
        """Pads the last dimensions of `value`; returns it unchanged if all widths are 0.

        `widths` are (before, after) pairs. Tiles can only be padded after; padding before is done
        in row-major layout (docs/library-rules.md).
        """
        if not any(any(pair) for pair in widths):
            return value
        shape = shape_of(value.type)
        kept = [(0, 0)] * (len(shape) - len(widths)) + list(widths)
        result = tensor_type(
            element_of(value.type),
            [size + before + after for size, (before, after) in zip(shape, kept, strict=True)],
        )
        name = "pad_row_major" if any(before for before, _ in kept) else "pad"
        padding = [width for pair in kept for width in pair]
        if name == "pad_row_major" and fill and element_of(value.type) == f32:
            # The kernel repeats the upper 16 bits in the lower ones: infinities would become NaN.
            known = self.pad(self.full(shape, 1.0, f32), widths)
            outside = self.full([1] * len(shape), fill, f32)
            return self.broadcasting("where", known, self.pad(value, widths), outside)
        return self.emit(name, [value], result, padding=padding, value=fill)

    def concat(self, values: Sequence[SSAValue], dim: int) -> SSAValue:
        """Concatenates the values along `dim` (not negative)."""
        if len(values) == 1:
            return values[0]
        shape = list(shape_of(values[0].type))
        shape[dim] = sum(shape_of(value.type)[dim] for value in values)
        result = tensor_type(element_of(values[0].type), shape)
        return self.emit("concat", [list(values)], result, dim=dim)

    def reduce(
        self, name: str, value: SSAValue, dims: Sequence[int], keep_dim: bool = True
    ) -> SSAValue:
        """Creates a reduction (sum, mean, max, min, prod) over `dims` (not negative)."""
        shape = [
            1 if axis in dims else size
            for axis, size in enumerate(shape_of(value.type))
            if keep_dim or axis not in dims
        ]
        result = tensor_type(element_of(value.type), shape)
        return self.emit(name, [value], result, dim_arg=list(dims), keep_dim=keep_dim)


def builder_before(op: Operation, classes: Mapping[str, type[CatalogueOp]]) -> OpBuilder:
    """Returns a builder that inserts before `op` and replaces it."""
    block = op.parent
    assert block is not None
    builder = OpBuilder(classes, lambda made: block.insert_op_before(made, op))
    builder.origin = op
    return builder


def _group(operand: SSAValue | Sequence[SSAValue] | None) -> list[SSAValue]:
    if operand is None:
        return []
    return [operand] if isinstance(operand, SSAValue) else list(operand)


def broadcast_shapes(shapes: Sequence[Sequence[int]]) -> tuple[int, ...] | None:
    """Returns the numpy broadcast shape, None if the shapes do not broadcast."""
    rank = max((len(shape) for shape in shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, start=rank - len(shape)):
            if size != 1:
                if result[axis] not in (1, size):
                    return None
                result[axis] = size
    return tuple(result)


# Splat constants of TTIR and conversion of their value to an element type.

_FILLS = frozenset({"ttir.full", "ttir.zeros", "ttir.ones", "ttir.constant"})


def splat_of(value: SSAValue) -> float | int | None:
    """Returns the value of a TTIR splat constant, None if `value` is not one."""
    # Called for every operand: the cheap checks come first.
    if type(value) is not OpResult or value.op.name not in _FILLS:
        return None
    op = value.op
    if not isinstance(op, CatalogueOp):
        return None
    match op.name:
        case "ttir.full":
            return op.parameter("fill_value")
        case "ttir.zeros":
            return 0
        case "ttir.ones":
            return 1
        case _:
            return splat_value(op.parameter("value"))


def number_as(value: float, dtype: str) -> Array:
    """Converts a number to a numpy scalar of that dtype.

    Integers truncate, saturate to the range of the type, and map NaN to 0. A negative integer gives
    the bits of an unsigned one, because TTIR attributes are signed 32-bit integers.
    """
    target = np.dtype(dtype)
    if np.issubdtype(target, np.integer):
        limits = np.iinfo(target)
        low, high = int(limits.min), int(limits.max)
        if isinstance(value, float):
            value = int(np.nan_to_num(value, nan=0.0, posinf=high, neginf=low))
        elif value < 0 and low == 0:
            value %= high + 1
        value = min(max(value, low), high)
    return np.asarray(value).astype(target)
