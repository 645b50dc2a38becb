"""Parsed operations of StableHLO and access to their attributes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    ComplexType,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnregisteredAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, OpTraits

from ttcodegen.dialects.core.datatypes import (
    constant_array,
    element_of,
    shape_of,
    tensor_type,
)
from ttcodegen.foundation.lazy_numpy import np

if TYPE_CHECKING:
    import numpy


# An operation of StableHLO and of the dialects that come with it, and what it says.
#
# What an operation says besides its operands is read by name, whichever of its forms it was
# written in (`StableHLOOp.get`).

_ITEM = re.compile(r"([a-z_]\w*)\s*=\s*(\[[^\]]*\]|\"[^\"]*\"|-?[\w.]+)")
_ENUMERATION = re.compile(r"^<?\s*(?:[a-z_]+\s+)?([A-Za-z0-9_]+)\s*>?$")


_OF_64_BITS = frozenset({"padding", "replica_groups", "source_target_pairs"})
"""Attributes that are tensors of i64 by their operation's definition."""


class StableHLOOp(Operation):
    """Operation of one of the dialects."""

    traits = OpTraits(tuple)
    short_name: ClassVar[str]
    """Name of the operation without its dialect."""
    source_offset: int = -1

    @property
    def given(self) -> dict[str, Any]:
        """Attributes of the operation's own assembly format, as Python values."""
        found = getattr(self, "_given", None)
        if found is None:
            found = self._given = {}
        return cast("dict[str, Any]", found)

    def get(self, name: str, default: Any = None) -> Any:
        """Attribute of the operation as a Python value, or `default`."""
        given = self.given
        if name in given:
            return given[name]
        attribute = self.properties.get(name)
        if attribute is None:
            attribute = self.attributes.get(name)
        if attribute is None:
            return default
        if name in _OF_64_BITS:
            _check_64_bits(name, attribute)
        value = given[name] = python_value(attribute)
        return value

    @property
    def direction(self) -> str:
        """Comparison direction: EQ, NE, GE, GT, LE or LT, from any spelling."""
        return str(self["comparison_direction"]).rpartition("_")[2].upper()

    def __getitem__(self, name: str) -> Any:
        value = self.get(name)
        if value is None:
            raise ValueError(f"'{self.name}' needs the attribute '{name}'")
        return value

    def ints(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """Integer list attribute; raises ValueError if it is absent without a default."""
        value = self.get(name)
        if value is None and default is not None:
            return list(default)
        if value is None:
            raise ValueError(f"'{self.name}' needs the attribute '{name}'")
        return [int(each) for each in _flat(value)]


def _check_64_bits(name: str, attribute: Attribute) -> None:
    if isinstance(attribute, DenseIntOrFPElementsAttr):
        found = cast("DenseIntOrFPElementsAttr[Any]", attribute).get_element_type()
        if found != i64:
            raise ValueError(f"'{name}' holds 64-bit integers, found {found}")


def factors(
    op: StableHLOOp, name: str, rank: int, default: Sequence[int] | None = None
) -> list[int]:
    """Attribute with one positive integer per window dimension.

    Raises:
        ValueError: if the count differs from `rank`, or an integer is not positive.
    """
    found = op.ints(name, default)
    if len(found) != rank or min(found, default=1) < 1:
        raise ValueError(
            f"'{name}' has a positive integer for each of {rank} dimensions, found {found}"
        )
    return found


def _flat(value: Any) -> list[Any]:
    if hasattr(value, "ravel"):
        return list(value.ravel())
    return list(cast("list[Any]", value)) if isinstance(value, list | tuple) else [value]


def is_unsigned(element: Attribute) -> bool:
    """Returns whether an element type is an unsigned integer."""
    return str(element).startswith("ui")


def part_element(element: Attribute) -> Attribute:
    """Returns the element type of a complex type's parts; other types unchanged."""
    if not isinstance(element, ComplexType):
        return element
    return cast("ComplexType[Any]", element).element_type


def python_value(attribute: Attribute) -> Any:
    """Converts an attribute to a number, string, list, numpy array or dictionary if it has that
    form."""
    match attribute:
        case IntegerAttr():
            one_bit = isinstance(attribute.type, IntegerType) and attribute.type.bitwidth == 1
            return bool(attribute.value.data) if one_bit else attribute.value.data
        case FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case SymbolRefAttr():
            return attribute.string_value()
        case DenseArrayBase():
            return list(cast("DenseArrayBase[Any]", attribute).iter_values())
        case DenseIntOrFPElementsAttr():
            return constant_array(cast("DenseIntOrFPElementsAttr[Any]", attribute))
        case ArrayAttr():
            return [python_value(each) for each in attribute.data]
        case DictionaryAttr():
            return {name: python_value(value) for name, value in attribute.data.items()}
        case UnregisteredAttr():
            return _structure(attribute)
        case _:
            return attribute


def _structure(attribute: UnregisteredAttr) -> Any:
    """Python value of a dialect attribute: a dictionary or an enumerator's name."""
    body = attribute.value.data.strip()
    name = attribute.attr_name.data.rpartition(".")[2]
    if name == "conv":
        return convolution_dimensions(body.removeprefix("<").removesuffix(">"))
    if "=" not in body:
        match = _ENUMERATION.match(body)
        return match.group(1) if match else body
    return structure(body)


def structure(body: str) -> dict[str, Any]:
    """Parses `a = [0, 1], b = 2` to a dictionary."""
    found: dict[str, Any] = {}
    for name, text in _ITEM.findall(body):
        if text.startswith("["):
            found[name] = [int(number) for number in re.findall(r"-?\d+", text)]
        elif re.fullmatch(r"-?\d+", text):
            found[name] = int(text)
        else:
            found[name] = {"true": True, "false": False}.get(text, text.strip('"'))
    return found


def convolution_dimensions(text: str) -> dict[str, list[str]]:
    """Parses the dimension labels `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]` by tensor."""
    lists = re.findall(r"\[([^\]]*)\]", text)
    if len(lists) != 3:
        raise ValueError(f"'{text}' does not give the dimensions of a convolution")
    names = ("input", "kernel", "output")
    return {
        name: [each.strip() for each in listed.split(",") if each.strip()]
        for name, listed in zip(names, lists, strict=True)
    }


# The numpy dtypes of elements.


def numpy_dtype(name: str) -> numpy.dtype:
    """Returns the dtype of a name, those of ml_dtypes included."""
    import ml_dtypes

    assert ml_dtypes is not None
    return np.dtype(name)


# Options of custom calls and composites, from attributes or text.


def called_computations(op: StableHLOOp) -> list[str]:
    """Names of the functions that a custom call refers to, such as a comparator."""
    found = op.get("called_computations")
    return [str(name) for name in cast("list[Any]", found)] if isinstance(found, list) else []


def flag(attributes: Mapping[str, Any], name: str, default: bool = False) -> bool:
    """Boolean option, possibly as Python prints it."""
    value = attributes.get(name, default)
    return value.strip().lower() in ("true", "1") if isinstance(value, str) else bool(value)


def number(attributes: Mapping[str, Any], name: str) -> float | None:
    """Numeric option, None if absent; raises ValueError if it is not a number."""
    value = attributes.get(name)
    if value in (None, "", "None"):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"'{name}' has to be a number, found '{value}'") from None


def integer(attributes: Mapping[str, Any], name: str, default: int | None = None) -> int | None:
    """Integer option, `default` if absent; raises ValueError if it is not an integer."""
    value = number(attributes, name)
    if value is not None and not value.is_integer():
        raise ValueError(f"'{name}' has to be an integer, found '{attributes[name]}'")
    return default if value is None else int(value)


def integers(value: Any) -> list[int]:
    """Integer list from an array or a string."""
    if isinstance(value, str):
        return [int(each) for each in re.findall(r"-?\d+", value)]
    return [int(each) for each in np.asarray(value).flat]


def like_result(op: StableHLOOp, index: int = 0) -> Any:
    """Type of a result without encoding."""
    type_ = op.results[index].type
    return tensor_type(element_of(type_), shape_of(type_))


def is_tensor(type_: Attribute) -> bool:
    """Returns whether a type is a ranked tensor."""
    return isinstance(type_, TensorType)


def is_token(type_: Attribute) -> bool:
    """Returns whether a type is a token."""
    return "token" in str(type_) and not is_tensor(type_)


def is_complex(type_: Attribute) -> bool:
    """Returns whether a type is a complex tensor."""
    return is_tensor(type_) and isinstance(element_of(type_), ComplexType)


def part_type(type_: Attribute) -> Attribute:
    """Type of the real or the imaginary part of a complex tensor."""
    return tensor_type(part_element(element_of(type_)), shape_of(type_))


def real_type(type_: Attribute) -> Attribute:
    """Type at function boundaries: complex tensors get a last dimension of size 2.

    Other tensors lose their encoding.
    """
    if not is_tensor(type_):
        return type_
    if is_complex(type_):
        part = part_type(type_)
        return tensor_type(element_of(part), [*shape_of(part), 2])
    return tensor_type(element_of(type_), shape_of(type_))
