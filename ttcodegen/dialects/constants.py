"""Reading the elements of constants without expanding what is one number throughout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute

from ttcodegen.dialects.datatypes import numpy_name

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
    name = numpy_name(attribute.type.get_element_type())
    if name is None:
        raise ValueError(f"constants of {attribute.type.get_element_type()} are not supported")
    values = np.frombuffer(attribute.data.data, dtype=np.dtype(name))
    shape = attribute.type.get_shape()
    return np.broadcast_to(values, shape) if values.size == 1 else values.reshape(shape)


def splat_value(attribute: Attribute) -> float | int | None:
    """The number that all elements are, None if they differ or there are several stored."""
    if not isinstance(attribute, DenseIntOrFPElementsAttr):
        return None
    element_type = attribute.type.get_element_type()
    size = getattr(element_type, "size", None)
    if size is None or len(attribute.data.data) != size:
        return None
    return next(iter(element_type.iter_unpack(attribute.data.data)))
