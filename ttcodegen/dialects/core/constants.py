"""Reading the elements of constants without expanding what is one number throughout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Attribute

from ttcodegen.dialects.core.datatypes import numpy_name

if TYPE_CHECKING:
    import numpy as np


def constant_array(attribute: Attribute) -> np.ndarray:
    """The elements in the shape of their type; a splat is broadcast, which takes no memory.

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
    """The number that all elements are, None if they differ or there are none."""
    first = splat_bytes(attribute)
    if first is None:
        return None
    constant = cast("DenseIntOrFPElementsAttr[Any]", attribute)
    return next(iter(constant.get_element_type().iter_unpack(first)))


def splat_bytes(attribute: Attribute) -> bytes | None:
    """The bytes of the number that all elements are, None if they differ or there are none."""
    if not isinstance(attribute, DenseIntOrFPElementsAttr):
        return None
    constant = cast("DenseIntOrFPElementsAttr[Any]", attribute)
    element_type = constant.get_element_type()
    if numpy_name(element_type) is None:
        return None
    data = constant.data.data
    size = element_type.compile_time_size
    first = data[:size]
    # Most constants show at their second or last element that they are no splat.
    if data[size : 2 * size] not in (b"", first) or data[-size:] != first:
        return None
    if not data or (len(data) > size and first * (len(data) // size) != data):
        return None
    return first


def elements(element_type: Attribute, shape: Sequence[int], data: bytes) -> Attribute:
    """The attribute of a constant from its bytes: all elements, or one splat value."""
    # The library's type annotation knows no tensors whose element type is only known at run time.
    type_: Any = TensorType(element_type, shape)
    return DenseIntOrFPElementsAttr(type_, BytesAttr(data))


def reshaped(attribute: Attribute, shape: Sequence[int]) -> Attribute:
    """The same elements in another shape of the same size; they are shared, not copied.

    Raises ValueError if the attribute holds no elements.
    """
    if not isinstance(attribute, DenseIntOrFPElementsAttr):
        raise ValueError(f"not a constant: {attribute}")
    constant = cast("DenseIntOrFPElementsAttr[Any]", attribute)
    return elements(constant.get_element_type(), shape, constant.data.data)
