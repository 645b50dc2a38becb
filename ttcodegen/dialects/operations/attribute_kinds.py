"""Kinds of op attributes: conversion between MLIR attributes and Python values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    BytesAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    Float32Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, TypeAttribute

from ttcodegen.dialects.core.datatypes import DataType

T = TypeVar("T")


@dataclass(frozen=True)
class AttributeKind(Generic[T]):
    """Conversion of one kind of attribute.

    `decode` raises ValueError, TypeError or KeyError for attributes of another kind; `expected`
    completes 'should be ...' in messages.
    """

    expected: str
    decode: Callable[[Attribute], T]
    encode: Callable[[T], Attribute]


def _integer(attribute: Attribute) -> int:
    if isinstance(attribute, IntegerAttr):
        return attribute.value.data
    raise TypeError


def _boolean(attribute: Attribute) -> bool:
    value = _integer(attribute)
    if value in (0, 1, -1):
        return bool(value)
    raise ValueError


def _number(attribute: Attribute) -> float | int:
    match attribute:
        case IntegerAttr():
            return attribute.value.data
        case FloatAttr():
            return attribute.value.data
        case _:
            raise TypeError


def _small_number(attribute: Attribute) -> float | int:
    """A small number added to a variance; never NaN."""
    number = _number(attribute)
    if not 0 <= number < math.inf:
        raise ValueError
    return number


def _string(attribute: Attribute) -> str:
    if isinstance(attribute, StringAttr):
        return attribute.data
    raise TypeError


def _numbers(attribute: Attribute) -> list[Any]:
    match attribute:
        case DenseArrayBase():
            return list(elements_of(attribute))
        case ArrayAttr():
            return [_number(element) for element in attribute.data]
        case DenseIntOrFPElementsAttr():
            return list(attribute.get_values())
        case IntegerAttr() | FloatAttr():
            return [_number(attribute)]
        case _:
            raise TypeError


def elements_of(array: Attribute) -> Sequence[Any]:
    """Returns the elements of `array<i32: ...>` and the like; cached, since few arrays are
    different.

    Raises:
        TypeError: for another attribute.
    """
    match array:
        case DenseArrayBase(elt_type=IntegerType(width=width, signedness=signedness)):
            if signedness.data is Signedness.SIGNLESS:
                return _unpacked(width.data, array.data.data)
            return tuple(array.elt_type.iter_unpack(array.data.data))
        case DenseArrayBase():
            return tuple(array.elt_type.iter_unpack(array.data.data))
        case _:
            raise TypeError


@lru_cache(maxsize=1 << 14)
def _unpacked(width: int, data: bytes) -> tuple[int, ...]:
    return tuple(IntegerType(width).iter_unpack(data))


def _integers(attribute: Attribute) -> list[int]:
    match attribute:
        case DenseArrayBase(elt_type=IntegerType()):
            return list(elements_of(attribute))
        case ArrayAttr(data=elements):
            # Fast path: lists of integers are the most frequent.
            values: list[Any] = [
                each.value.data if isinstance(each, IntegerAttr) else None for each in elements
            ]
        case _:
            values = _numbers(attribute)
    if any([not isinstance(value, int) for value in values]):
        raise TypeError
    return values


def encode_number(value: float) -> Attribute:
    """Encodes an int as i32, or i64 if it does not fit, and a float as f32."""
    if isinstance(value, float):
        return FloatAttr(value, Float32Type())
    return IntegerAttr(value, i32 if -(2**31) <= value < 2**31 else i64)


def _encode_integers(values: Sequence[int]) -> Attribute:
    return _dense_array(tuple(values))


@lru_cache(maxsize=4096)
def _dense_array(values: tuple[int, ...]) -> Attribute:
    wide = any(not -(2**31) <= value < 2**31 for value in values)
    type_ = i64 if wide else i32
    return DenseArrayBase(type_, BytesAttr(type_.pack(values)))


def _enumerator(attribute: Attribute) -> str:
    """Returns the bare word of `#dialect.name<word>`, or of a string."""
    if isinstance(attribute, StringAttr):
        return attribute.data
    text = str(attribute)
    inner = text[text.index("<") + 1 : text.rindex(">")]
    return inner.strip().strip('"')


def _data_type(attribute: Attribute) -> DataType:
    from ttcodegen.dialects.core.datatypes import normalized_data_type

    if isinstance(attribute, TypeAttribute):
        found = normalized_data_type(attribute)
        if found is None:
            raise TypeError
        return found
    return DataType.from_mlir(_enumerator(attribute))


def _encode_data_type(data_type: DataType) -> Attribute:
    from ttcodegen.dialects.ttcore.dialect import DataTypeAttr

    return DataTypeAttr(data_type.mlir)


def _elements(attribute: Attribute) -> Attribute:
    """Returns an elements attribute, of any class but those that hold none."""
    if isinstance(attribute, StringAttr | ArrayAttr | IntegerAttr | FloatAttr | TypeAttribute):
        raise TypeError
    return attribute


INTEGER = AttributeKind[int]("an integer", _integer, encode_number)
BOOLEAN = AttributeKind[bool]("a boolean", _boolean, lambda value: BoolAttr.from_bool(bool(value)))
NUMBER = AttributeKind[float | int]("a number", _number, encode_number)
EPSILON = AttributeKind[float | int]("a finite number of 0 or more", _small_number, encode_number)
STRING = AttributeKind[str]("a string", _string, StringAttr)
INTEGERS = AttributeKind[list[int]]("a list of integers", _integers, _encode_integers)
NUMBERS = AttributeKind[list[Any]](
    "a list of numbers", _numbers, lambda values: ArrayAttr([encode_number(v) for v in values])
)
ENUMERATOR = AttributeKind[str]("an enumerator", _enumerator, StringAttr)
DATA_TYPE = AttributeKind[DataType]("a data type", _data_type, _encode_data_type)
CONSTANT = AttributeKind[Attribute]("elements", _elements, lambda elements: elements)
BOOLEANS = AttributeKind[list[bool]](
    "a list of booleans",
    lambda attribute: [bool(v) for v in _integers(attribute)],
    # As xDSL's parser encodes them: one byte per boolean.
    lambda values: DenseArrayBase(IntegerType(1), BytesAttr(bytes(bool(v) for v in values))),
)
