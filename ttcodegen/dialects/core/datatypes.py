"""Element types: TTIR and device data types, their spellings, and elements of constants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    Signedness,
    TensorType,
)
from xdsl.ir import Attribute

from ttcodegen.foundation.diagnostics import CompileError

if TYPE_CHECKING:
    import numpy as np


# Element types of TTIR and of device tensors, and their spellings.


@dataclass(frozen=True)
class DataTypeSpelling:
    """Spellings of one device data type in each place that names it."""

    mlir: str
    """Word in `#ttcore.supportedDataTypes<...>`, `!ttcore.tile<32x32, ...>` and layouts."""
    cpp: str
    """Enumerator of `tt::tt_metal::DataType` (tt-metal, tt-metalium/data_types.hpp)."""
    numpy: str
    """Dtype of host arrays; `bfloat16` is from ml_dtypes. Block floats are passed as float32."""
    is_float: bool


class DataType(Enum):
    """Data type of device tensors in tt-metal."""

    BFLOAT16 = DataTypeSpelling("bf16", "BFLOAT16", "bfloat16", True)
    FLOAT32 = DataTypeSpelling("f32", "FLOAT32", "float32", True)
    BFLOAT8_B = DataTypeSpelling("bfp_bf8", "BFLOAT8_B", "float32", True)
    BFLOAT4_B = DataTypeSpelling("bfp_bf4", "BFLOAT4_B", "float32", True)
    UINT32 = DataTypeSpelling("u32", "UINT32", "uint32", False)
    UINT16 = DataTypeSpelling("u16", "UINT16", "uint16", False)
    UINT8 = DataTypeSpelling("u8", "UINT8", "uint8", False)
    INT32 = DataTypeSpelling("si32", "INT32", "int32", False)

    @property
    def mlir(self) -> str:
        return self.value.mlir

    @property
    def cpp(self) -> str:
        return self.value.cpp

    @property
    def numpy(self) -> str:
        return self.value.numpy

    @property
    def is_float(self) -> bool:
        return self.value.is_float

    @property
    def is_block_float(self) -> bool:
        return self in (DataType.BFLOAT8_B, DataType.BFLOAT4_B)

    @property
    def element_type(self) -> Attribute:
        """Returns the builtin element type of tensors of this data type; bf16 for block floats."""
        return _ELEMENT_TYPES[self]

    @staticmethod
    def from_mlir(name: str) -> DataType:
        """Returns the data type of an MLIR spelling; raises KeyError if there is none."""
        return _BY_MLIR[name]


_BY_MLIR = {d.mlir: d for d in DataType}

bf16 = BFloat16Type()
f32 = Float32Type()
si32 = IntegerType(32, Signedness.SIGNED)
ui32 = IntegerType(32, Signedness.UNSIGNED)
ui16 = IntegerType(16, Signedness.UNSIGNED)
ui8 = IntegerType(8, Signedness.UNSIGNED)
i1 = IntegerType(1)

_ELEMENT_TYPES: dict[DataType, Attribute] = {
    DataType.BFLOAT16: bf16,
    DataType.FLOAT32: f32,
    DataType.BFLOAT8_B: bf16,
    DataType.BFLOAT4_B: bf16,
    DataType.UINT32: ui32,
    DataType.UINT16: ui16,
    DataType.UINT8: ui8,
    DataType.INT32: si32,
}
_DATA_TYPES = {
    element: data_type
    for data_type, element in _ELEMENT_TYPES.items()
    if not data_type.is_block_float
}


_INTEGER_WIDTHS = (8, 16, 32, 64)
"""Bit widths of integers in sources, besides booleans."""


def normalized_data_type(element_type: Attribute) -> DataType | None:
    """Returns the device data type for a source element type, or None if there is none.

    Booleans become bf16 (the device has no predicate tensors), wider types the widest that the
    device computes with, as in tt-mlir's element type normalization.
    """
    if (known := _DATA_TYPES.get(element_type)) is not None:
        return known
    match element_type:
        case Float64Type():
            return DataType.FLOAT32
        case Float16Type():
            return DataType.BFLOAT16
        case IntegerType():
            width = element_type.width.data
            if width == 1:
                return DataType.BFLOAT16
            if width not in _INTEGER_WIDTHS:
                return None
            if element_type.signedness.data == Signedness.UNSIGNED:
                return DataType.UINT32 if width > 16 else DataType.UINT16
            return DataType.INT32
        case _:
            return None


def is_boolean(element_type: Attribute) -> bool:
    """Returns whether an element type is the one-bit integer."""
    return isinstance(element_type, IntegerType) and element_type.bitwidth == 1


def numpy_name(element_type: Attribute) -> str | None:
    """Returns the numpy dtype name of a source element type, or None if there is none."""
    match element_type:
        case BFloat16Type():
            return "bfloat16"
        case Float16Type():
            return "float16"
        case Float32Type():
            return "float32"
        case Float64Type():
            return "float64"
        case IndexType():
            return "int64"
        case IntegerType():
            width = element_type.width.data
            if width == 1:
                return "bool"
            unsigned = element_type.signedness.data == Signedness.UNSIGNED
            return f"{'uint' if unsigned else 'int'}{width}" if width in (8, 16, 32, 64) else None
        case _:
            return None


_NAMED_ELEMENT_TYPES: dict[str, Attribute] = {
    "bfloat16": bf16,
    "float16": Float16Type(),
    "float32": f32,
    "float64": Float64Type(),
    "bool": i1,
    **{f"int{width}": IntegerType(width) for width in (8, 16, 32, 64)},
    **{f"uint{w}": IntegerType(w, Signedness.UNSIGNED) for w in (8, 16, 32, 64)},
}


def element_type_of(name: str) -> Attribute:
    """Returns the element type of a numpy dtype name; signed integers are signless, as in sources.

    Raises KeyError if there is none.
    """
    return _NAMED_ELEMENT_TYPES[name]


def shape_of(type_: Attribute) -> tuple[int, ...]:
    """Returns the logical shape of a tensor type; raises CompileError for other types."""
    # Cached, since this is the most frequent query and types are immutable.
    shape: tuple[int, ...] | None = getattr(type_, _KNOWN_SHAPE, None)
    if shape is None:
        if not isinstance(type_, TensorType):
            raise _no_tensor(type_)
        tensor = cast("TensorType[Attribute]", type_)
        shape = tuple([dim.data for dim in tensor.shape.data])
        # Setting it through `__dict__` would slow down all attribute accesses of the object.
        object.__setattr__(tensor, _KNOWN_SHAPE, shape)
    return shape


_KNOWN_SHAPE = "_known_shape"
"""Attribute that caches the shape of a type as a Python tuple."""


def without_encoding(type_: Attribute) -> Attribute:
    """Returns a tensor type without its encoding; other types unchanged."""
    if not isinstance(type_, TensorType):
        return type_
    tensor = cast("TensorType[Attribute]", type_)
    return TensorType(tensor.element_type, tensor.get_shape())


def element_of(type_: Attribute) -> Attribute:
    """Returns the element type of a tensor type; raises CompileError for other types."""
    if not isinstance(type_, TensorType):
        raise _no_tensor(type_)
    return cast("TensorType[Attribute]", type_).element_type


def _no_tensor(type_: Attribute) -> CompileError:
    return CompileError(f"values of type {type_} are not supported here: expected a tensor")


def tensor_type(element: Attribute, shape: Iterable[int]) -> TensorType[Attribute]:
    """Returns a tensor type without encoding.

    Cached: creating a type takes longer than a look-up, and a program has few types.
    """
    return _tensor_type(element, tuple(shape))


@lru_cache(maxsize=4096)
def _tensor_type(element: Attribute, shape: tuple[int, ...]) -> TensorType[Attribute]:
    return TensorType(element, shape)


# Elements of constants, without expanding splats.


def constant_array(attribute: Attribute) -> np.ndarray:
    """Returns the elements in the shape of their type; a splat is broadcast without copying.

    Raises ValueError if the attribute holds no elements.
    """
    import ml_dtypes  # registers bfloat16 with numpy
    import numpy as np

    assert ml_dtypes is not None
    if not isinstance(attribute, DenseIntOrFPElementsAttr):
        raise ValueError(f"not a constant: {attribute}")
    constant = cast("DenseIntOrFPElementsAttr[Any]", attribute)
    element_type = constant.get_element_type()
    name = numpy_name(element_type)
    if name is None:
        raise ValueError(f"constants of {element_type} are not supported")
    values = np.frombuffer(constant.data.data, dtype=np.dtype(name))
    shape = constant.get_shape()
    return np.broadcast_to(values.reshape(()), shape) if values.size == 1 else values.reshape(shape)


def splat_value(attribute: Attribute) -> float | int | None:
    """Returns the value of a splat, or None if elements differ or there are none."""
    first = splat_bytes(attribute)
    if first is None:
        return None
    constant = cast("DenseIntOrFPElementsAttr[Any]", attribute)
    return next(iter(constant.get_element_type().iter_unpack(first)))


def splat_bytes(attribute: Attribute) -> bytes | None:
    """Returns the bytes of a splat's value, or None if elements differ or there are none."""
    if not isinstance(attribute, DenseIntOrFPElementsAttr):
        return None
    constant = cast("DenseIntOrFPElementsAttr[Any]", attribute)
    element_type = constant.get_element_type()
    if numpy_name(element_type) is None:
        return None
    data = constant.data.data
    size = element_type.compile_time_size
    first = data[:size]
    # Fast path: most constants differ in their second or last element already.
    if data[size : 2 * size] not in (b"", first) or data[-size:] != first:
        return None
    if not data or (len(data) > size and first * (len(data) // size) != data):
        return None
    return first


def elements(element_type: Attribute, shape: Sequence[int], data: bytes) -> Attribute:
    """Returns the attribute of a constant from the bytes of all elements, or of one splat value."""
    # xDSL's annotation does not cover element types that are only known at run time.
    type_: Any = TensorType(element_type, shape)
    return DenseIntOrFPElementsAttr(type_, BytesAttr(data))


def reshaped(attribute: Attribute, shape: Sequence[int]) -> Attribute:
    """Returns a constant in another shape of the same size, without copying.

    Raises ValueError if the attribute holds no elements.
    """
    if not isinstance(attribute, DenseIntOrFPElementsAttr):
        raise ValueError(f"not a constant: {attribute}")
    constant = cast("DenseIntOrFPElementsAttr[Any]", attribute)
    return elements(constant.get_element_type(), shape, constant.data.data)
