"""What the side panel says of an op: its tensors, attributes and constants in a few words."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, prod
from typing import Any, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, StringAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, Operation

from ttcodegen.dialects.core.constants import constant_array, splat_value
from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.dialects.ttnn.placement import TensorPlacement, TTNNLayoutAttr
from ttcodegen.explorer.graph import TENSOR_SHAPE, KeyValue, attributes

_LONGEST = 1000
"""Characters of an attribute's text; what is longer is cut."""
_MOST_SUMMED = 1 << 24
"""Elements of a constant of which least, greatest and mean are given; of larger ones the first."""
_HIDDEN = frozenset({"operandSegmentSizes", "resultSegmentSizes", "program"})


def shortened(text: str) -> str:
    """A text that the side panel has room for."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"


def placement_attributes(placement: TensorPlacement) -> list[KeyValue]:
    """The layout of a tensor: data type, pages, memory, sharding, shard and grid."""
    pairs: list[tuple[str, object]] = [
        ("data_type", placement.data_type.mlir),
        ("layout", placement.layout.value),
        ("memory", placement.buffer_type),
        ("sharding", placement.memory_layout),
    ]
    if placement.shards is not None:
        box = placement.shards.bounding_box()
        height, width = placement.shards.shape
        pairs += [
            ("shard", f"{height}x{width}"),
            ("grid", f"{box.columns}x{box.rows}"),
            ("orientation", str(placement.shards.orientation)),
        ]
    return attributes(pairs)


class Texts:
    """Texts of types and attributes, each made once: the ops of a model share most of them."""

    def __init__(self, elements: int = 16) -> None:
        """`elements` is how many of a constant's elements are listed."""
        self._elements = elements
        self._types: dict[Attribute, list[KeyValue]] = {}
        self._attributes: dict[Attribute, str] = {}

    def tensor(self, type_: Attribute) -> list[KeyValue]:
        """What is said of a value of that type."""
        found = self._types.get(type_)
        if found is None:
            found = self._types[type_] = list(self._tensor(type_))
        return found

    def _tensor(self, type_: Attribute) -> Iterator[KeyValue]:
        if not isinstance(type_, TensorType):
            yield KeyValue(TENSOR_SHAPE, shortened(str(type_)))
            return
        tensor = cast("TensorType[Any]", type_)
        sizes = "x".join("?" if size < 0 else str(size) for size in shape_of(tensor))
        element = str(element_of(tensor))
        yield KeyValue(TENSOR_SHAPE, f"tensor<{sizes}x{element}>" if sizes else element)
        if isinstance(tensor.encoding, TTNNLayoutAttr):
            yield from placement_attributes(tensor.encoding.data)
        elif str(tensor.encoding) != "none":
            yield KeyValue("layout", shortened(str(tensor.encoding)))

    def op(self, op: Operation) -> Iterator[tuple[str, str]]:
        """The attributes of an op by name."""
        for name, value in (*op.properties.items(), *op.attributes.items()):
            if name not in _HIDDEN:
                yield name, self.attribute(value)

    def attribute(self, value: Attribute) -> str:
        """The text of an attribute; elements of constants are summed up."""
        if isinstance(value, DenseIntOrFPElementsAttr):
            return constant_text(cast("Attribute", value), self._elements)
        found = self._attributes.get(value)
        if found is None:
            text = value.data if isinstance(value, StringAttr) else str(value)
            text = "true" if isinstance(value, UnitAttr) else text
            found = self._attributes[value] = shortened(text)
        return found


def constant_text(value: Attribute, elements: int = 16) -> str:
    """A constant in a line: its elements if they are few, else the first, the smallest, the largest
    and their mean."""
    splat = splat_value(value)
    dense = cast("DenseIntOrFPElementsAttr[Any]", value)
    count = prod(dense.get_shape())
    if splat is not None:
        return f"{splat:g}" if count <= 1 else f"{count} times {splat:g}"
    try:
        array = constant_array(dense).reshape(-1)
    except ValueError:
        return f"{count} elements"
    values = [float(each) for each in array[:elements]]
    listed = ", ".join(f"{each:g}" for each in values)
    if count <= elements:
        return f"[{listed}]"
    text = f"{count} elements [{listed}, …]" if values else f"{count} elements"
    if count > _MOST_SUMMED:
        return text
    least, greatest = float(array.min()), float(array.max())
    mean = float(array.mean(dtype="float64"))
    numbers = (("least", least), ("greatest", greatest), ("mean", mean))
    return ", ".join([text, *(f"{name} {one:g}" for name, one in numbers if isfinite(one))])
