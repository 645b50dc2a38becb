"""Portable bytecode: from the versioned dialect VHLO to StableHLO.

The codes of types and attributes are those that the dialect never changes (StableHLO 1.0 and later,
VHLO's bytecode interface; MLIR's for the builtin dialect).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    BFloat16Type,
    BytesAttr,
    CallSiteLoc,
    ComplexType,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FileLineColLoc,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    FunctionType,
    FusedLoc,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    ModuleOp,
    NameLoc,
    NoneAttr,
    NoneType,
    Signedness,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    TupleType,
    UnitAttr,
    UnknownLoc,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.frontends.stablehlo.reading.bytecode import (
    ATTRIBUTES,
    Entry,
    RawBlock,
    RawOperation,
    Reader,
    Tables,
    damaged,
    read_bytecode,
)
from ttcodegen.frontends.stablehlo.reading.dialect import operation_class
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp, is_unsigned
from ttcodegen.parsing.elements import unpack_booleans

_VERSIONED = re.compile(r"^vhlo\.(.*)_v(\d+)$")
_NEWEST = (1, 17)
"""Newest supported version of StableHLO."""
_NEWEST_OPERATION = 2
"""Highest operation version in that version of StableHLO."""
_PRODUCER = re.compile(r"^StableHLO_v(\d+)\.(\d+)\.")
"""Producer string of StableHLO artifacts, by target version."""
_UNKNOWN = NoneType()


def _sizes(numbers: list[int]) -> list[int]:
    """Maps dynamic sizes, negative in every version, to DYNAMIC_INDEX."""
    return [size if size >= 0 else DYNAMIC_INDEX for size in numbers]


def _unsigned(width: int) -> IntegerType:
    return IntegerType(width, Signedness.UNSIGNED)


_PLAIN_TYPES: dict[int, Attribute] = {
    0: IntegerType(1),
    2: BFloat16Type(),
    3: Float16Type(),
    4: Float32Type(),
    5: Float64Type(),
    9: IndexType(),
    10: IntegerType(4),
    11: IntegerType(8),
    12: IntegerType(16),
    13: IntegerType(32),
    14: IntegerType(64),
    15: _unsigned(4),
    16: _unsigned(8),
    17: _unsigned(16),
    18: _unsigned(32),
    19: _unsigned(64),
    31: IntegerType(2),
    32: _unsigned(2),
    33: NoneType(),
}
_OTHER_TYPES = {
    **dict.fromkeys((6, 7, 27, 28, 29, *range(34, 40)), "floats of eight bits or fewer"),
    **dict.fromkeys((24, 30), "quantized elements"),
    25: "tensors of unknown rank",
}
"""Unsupported types of VHLO, with their description for errors."""
_DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")
_ENUMERATIONS: dict[int, tuple[str, ...]] = {
    3: _DIRECTIONS,
    4: ("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"),
    5: ("UNSPECIFIED", "ORIGINAL", "STATUS_RETURNING", "STATUS_RETURNING_UNIFIED", "TYPED_FFI"),
    7: ("FFT", "IFFT", "RFFT", "IRFFT"),
    11: ("DEFAULT", "HIGH", "HIGHEST"),
    12: ("DEFAULT", "THREE_FRY", "PHILOX"),
    13: ("", "UNIFORM", "NORMAL"),
    16: ("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"),
    19: ("DEFAULT", "HIGHEST", "TOLERANCE"),
}
_GROUPED = {
    "dot_general": "dot_dimension_numbers",
    "convolution": "dimension_numbers",
    "dynamic_conv": "dimension_numbers",
    "gather": "dimension_numbers",
    "dynamic_gather": "dimension_numbers",
    "scatter": "scatter_dimension_numbers",
}
"""Operations whose attributes VHLO flattens, with the StableHLO attribute that groups them."""


def read_portable(data: bytes) -> list[Operation]:
    """Reads the top-level operations of a portable artifact.

    Raises:
        CompileError: if the bytes are damaged, of a newer version, or no portable artifact.
    """
    tables, block = read_bytecode(data)
    _refuse_newer_version(tables.producer)
    dialects = {name.partition(".")[0] for name in tables.operations}
    if "vhlo" not in dialects:
        named = ", ".join(sorted(dialects - {"builtin"})) or "builtin"
        raise CompileError(
            f"the bytecode holds operations of another dialect than VHLO: {named}",
            remedy="write a portable artifact (jax.export, stablehlo.serialize_portable_artifact), "
            "or give the module as text",
        )
    try:
        return _Module(tables).operations(block, {})
    except (
        ArithmeticError,
        AssertionError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        VerifyException,
        struct.error,
    ) as error:
        raise CompileError(
            f"the bytecode is damaged: {str(error).splitlines()[0] if str(error) else error!r}",
            remedy="write the file again; a download or a copy may have been cut off",
        ) from None
    except RecursionError:
        raise CompileError("the bytecode is damaged: it refers to itself") from None


def _refuse_newer_version(producer: str) -> None:
    """Refuses artifacts for a newer StableHLO, which is only backward compatible.

    Source: https://github.com/openxla/stablehlo/blob/main/docs/compatibility.md
    """
    match = _PRODUCER.match(producer)
    if match is None or (int(match[1]), int(match[2])) <= _NEWEST:
        return
    newest = ".".join(map(str, _NEWEST))
    raise CompileError(
        f"the bytecode is for {producer.removeprefix('StableHLO_v')} of StableHLO; versions up to "
        f"{newest} are read",
        remedy=f"serialize the module for {newest}.0 (the second argument of "
        "stablehlo.serialize_portable_artifact), or give it as text",
    )


class _Module:
    """Decoder of a file's types, attributes and operations."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._types: dict[int, Attribute] = {}
        self._attributes: dict[int, Attribute] = {}

    def _newer(self, what: str) -> CompileError:
        return CompileError(
            f"the bytecode is of a newer version of StableHLO ({self.tables.producer}): {what}",
            remedy="serialize the module for an older version, or give it as text",
        )

    # Types

    def type(self, index: int) -> Attribute:
        """Returns the type of an index."""
        if index not in self._types:
            if index >= len(self.tables.types):
                damaged(0, f"there is no type {index}")
            self._types[index] = self._read_type(self.tables.types[index])
        return self._types[index]

    def _read_type(self, entry: Entry) -> Attribute:
        reader = self.tables.reader(entry)
        if not entry.encoded:
            raise self._newer(f"the type {reader.text()}")
        code = reader.number()
        if entry.dialect == "builtin":
            return self._builtin_type(reader, code)
        if code in _PLAIN_TYPES:
            return _PLAIN_TYPES[code]
        match code:
            case 1:
                return ComplexType(cast(Any, self.type(reader.number())))
            case 8:
                inputs = [self.type(number) for number in reader.numbers()]
                return FunctionType.from_lists(inputs, [self.type(n) for n in reader.numbers()])
            case 20 | 21:
                if code == 21:
                    reader.number()
                shape = _sizes(reader.signed_numbers())
                return TensorType(self.type(reader.number()), shape)
            case 22 | 26:
                return NoneType()
            case 23:
                return TupleType(tuple(cast(Any, self.type(number)) for number in reader.numbers()))
            case _ if code in _OTHER_TYPES:
                raise CompileError(
                    f"bytecode with {_OTHER_TYPES[code]} is not supported",
                    remedy="give the module as text, with elements of a type that is (docs/ops.md)",
                )
            case _:
                raise self._newer(f"type {code}")

    def _builtin_type(self, reader: Reader, code: int) -> Attribute:
        match code:
            case 0:
                encoded = reader.number()
                kinds = (Signedness.SIGNLESS, Signedness.SIGNED, Signedness.UNSIGNED)
                return IntegerType(encoded >> 2, kinds[encoded & 3])
            case 1:
                return IndexType()
            case 2:
                inputs = [self.type(number) for number in reader.numbers()]
                return FunctionType.from_lists(inputs, [self.type(n) for n in reader.numbers()])
            case 3:
                return BFloat16Type()
            case 4:
                return Float16Type()
            case 5:
                return Float32Type()
            case 6:
                return Float64Type()
            case 13:
                shape = reader.signed_numbers()
                return TensorType(self.type(reader.number()), _sizes(shape))
            case _:
                return _UNKNOWN

    # Attributes

    def attribute(self, index: int) -> Attribute:
        """Returns the attribute of an index."""
        if index not in self._attributes:
            if index >= len(self.tables.attributes):
                damaged(0, f"there is no attribute {index}")
            self._attributes[index] = self._read_attribute(self.tables.attributes[index])
        return self._attributes[index]

    def _read_attribute(self, entry: Entry) -> Attribute:
        reader = self.tables.reader(entry)
        if not entry.encoded:
            return StringAttr(reader.text())
        code = reader.number()
        if entry.dialect == "builtin":
            return self._builtin_attribute(reader, code)
        if code in _ENUMERATIONS:
            names, value = _ENUMERATIONS[code], reader.number()
            if value >= len(names):
                raise self._newer(f"value {value} of attribute {code}")
            return StringAttr(names[value])
        read = self._vhlo_readers().get(code)
        if read is None:
            raise self._newer(f"attribute {code}")
        return read(reader)

    def _vhlo_readers(self) -> dict[int, Callable[[Reader], Attribute]]:
        return {
            1: self._array,
            2: lambda reader: IntegerAttr(reader.number(), IntegerType(1)),
            6: self._dictionary,
            8: self._float,
            9: self._integer,
            10: lambda _: UnitAttr(),
            14: lambda reader: StringAttr(self.tables.string(reader)),
            15: self._tensor,
            17: lambda reader: self.type(reader.number()),
            18: lambda _: UnitAttr(),
            20: lambda _: UnitAttr(),
        }

    def _array(self, reader: Reader) -> Attribute:
        return ArrayAttr([self.attribute(number) for number in reader.numbers()])

    def _dictionary(self, reader: Reader) -> Attribute:
        found: dict[str, Attribute] = {}
        for _ in range(reader.count()):
            name = self.attribute(reader.number())
            value = self.attribute(reader.number())
            if isinstance(name, StringAttr):
                found[name.data] = value
        return DictionaryAttr(found)

    def _bits(self, reader: Reader, width: int) -> int:
        """Reads an integer of `width` bits as unsigned."""
        value = reader.byte() if width <= 8 else reader.signed()
        return value & ((1 << width) - 1)

    def _float(self, reader: Reader) -> Attribute:
        type_ = cast(Any, self.type(reader.number()))
        width: int = type_.bitwidth
        data = self._bits(reader, width).to_bytes(width // 8, "little")
        return FloatAttr(next(iter(type_.iter_unpack(data))), type_)

    def _integer(self, reader: Reader) -> Attribute:
        type_ = self.type(reader.number())
        width: int = cast(Any, type_).bitwidth if isinstance(type_, IntegerType) else 64
        bits = self._bits(reader, width)
        unsigned = is_unsigned(cast(Attribute, type_))
        if not unsigned and width > 1 and bits >> (width - 1):
            bits -= 1 << width
        return IntegerAttr(bits, cast(Any, type_))

    def _tensor(self, reader: Reader) -> Attribute:
        type_ = self.type(reader.number())
        data = reader.take(reader.number())
        if str(element_of(type_)) == "i1":
            count = 1
            for size in shape_of(type_):
                count *= size
            unpacked = unpack_booleans(data, count)
            if unpacked is None:
                damaged(reader.offset, f"{len(data)} bytes are no {count} booleans")
            data = unpacked
        return DenseIntOrFPElementsAttr(cast(Any, type_), BytesAttr(data))

    def _builtin_attribute(self, reader: Reader, code: int) -> Attribute:
        match code:
            case 0:
                return self._array(reader)
            case 1:
                return self._dictionary(reader)
            case 2 | 3:
                return StringAttr(self.tables.string(reader))
            case 4 | 5:
                name = self.attribute(reader.number())
                return SymbolRefAttr(cast(StringAttr, name).data)
            case 6:
                return self.type(reader.number())
            case 7:
                return UnitAttr()
            case 8:
                return self._integer(reader)
            case 9:
                return self._float(reader)
            case 18:
                return self._tensor(reader)
            case _:
                return self._location(reader, code)

    def _location(self, reader: Reader, code: int) -> Attribute:
        match code:
            case 10:
                callee = self.location(reader.number())
                return CallSiteLoc(callee, self.location(reader.number()))
            case 11 | 22:
                name = cast(StringAttr, self.attribute(reader.number()))
                places = reader.numbers() if code == 22 else [reader.number(), reader.number()]
                places = [*places, 0, 0][:2]
                return FileLineColLoc(name, IntAttr(places[0]), IntAttr(places[1]))
            case 12 | 13:
                parts = [self.location(number) for number in reader.numbers()]
                return FusedLoc(tuple(parts), NoneAttr())
            case 14:
                name = cast(StringAttr, self.attribute(reader.number()))
                return NameLoc(name, self.location(reader.number()))
            case 15:
                return UnknownLoc()
            case _:
                return UnitAttr()

    def location(self, index: int) -> LocationAttr:
        """Returns the location of an index."""
        found = self.attribute(index)
        return found if isinstance(found, LocationAttr) else UnknownLoc()

    # Operations

    def operations(self, block: RawBlock, values: dict[int, SSAValue]) -> list[Operation]:
        """Decodes the operations of a block; `values` maps value indices of its scope."""
        return [self._operation(raw, values) for raw in block.operations]

    def _operation(self, raw: RawOperation, values: dict[int, SSAValue]) -> Operation:
        attributes: dict[str, Attribute] = {}
        if raw.attributes is not None:
            found = self.attribute(raw.attributes)
            if isinstance(found, DictionaryAttr):
                attributes = dict(found.data)
        if raw.properties is not None:
            attributes |= self._properties(raw)
        if raw.successors:
            raise CompileError("control flow between blocks is not supported")
        operands = [values[number] for number in raw.operands]
        regions = [self._region(blocks, raw, values) for blocks in raw.regions]
        op = self._made(raw, operands, attributes, regions)
        op.location = self.location(raw.location)
        for index, result in enumerate(op.results):
            values[raw.first_result + index] = result
        return op

    def _properties(self, raw: RawOperation) -> dict[str, Attribute]:
        """Properties of an operation in bytecode, ordered by name."""
        if raw.properties is None or raw.properties >= len(self.tables.properties):
            damaged(0, f"there are no properties {raw.properties}")
        reader = Reader(self.tables.data, *self.tables.properties[raw.properties])
        if raw.name == "builtin.module":
            # The lowest bit flags an optional attribute.
            encoded = reader.number()
            return {"sym_name": self.attribute(encoded >> 1)} if encoded & 1 else {}
        names = ATTRIBUTES.get(raw.name.removeprefix("vhlo."), ())
        found = {name: self.attribute(reader.number()) for name in names}
        if reader.offset < reader.end:
            raise self._newer(f"the operation '{raw.name}' has attributes that are not known")
        return found

    def _region(
        self, blocks: list[RawBlock], raw: RawOperation, values: dict[int, SSAValue]
    ) -> Region:
        scope: dict[int, SSAValue] = {} if raw.isolated else values
        made: list[Block] = []
        for block in blocks:
            new = Block(arg_types=[self.type(number) for number, _ in block.arguments])
            for index, argument in enumerate(new.args):
                scope[block.first + index] = argument
                place = block.arguments[index][1]
                if place is not None:
                    argument.location = self.location(place)
            new.add_ops(self.operations(block, scope))
            made.append(new)
        return Region(made)

    def _made(
        self,
        raw: RawOperation,
        operands: list[SSAValue],
        attributes: dict[str, Attribute],
        regions: list[Region],
    ) -> Operation:
        if raw.name == "builtin.module":
            module = ModuleOp(regions[0], attributes)
            name = attributes.pop("sym_name", None)
            module.attributes.pop("sym_name", None)
            if isinstance(name, StringAttr):
                module.sym_name = name
            return module
        match = _VERSIONED.match(raw.name)
        if match is None:
            raise self._newer(f"the operation '{raw.name}'")
        short, version = match.group(1), int(match.group(2))
        if version > _NEWEST_OPERATION:
            raise self._newer(f"the operation '{raw.name}'")
        if short == "func":
            return _function(attributes, regions[0])
        results = [self.type(number) for number in raw.results]
        if short == "call":
            return CallOp(cast(StringAttr, attributes["callee"]).data, operands, results)
        cls = operation_class(f"stablehlo.{short}")
        if cls is None:
            raise self._newer(f"the operation '{raw.name}'")
        op = cls.create(
            operands=operands, result_types=results, attributes=attributes, regions=regions
        )
        _group(op)
        return op


def _function(attributes: dict[str, Attribute], body: Region) -> FuncOp:
    type_ = cast(FunctionType, attributes["function_type"])
    visibility = attributes.get("sym_visibility")
    public = not isinstance(visibility, StringAttr) or not visibility.data
    # The portable form has one operation that ends functions and regions.
    for block in body.blocks:
        last = block.last_op
        if last is not None and last.name == "stablehlo.return":
            end = ReturnOp(*last.operands)
            end.location = last.location
            block.insert_op_before(end, last)
            last.detach()
            last.erase()
    return FuncOp(
        cast(StringAttr, attributes["sym_name"]).data,
        type_,
        body,
        None if public else cast(StringAttr, visibility),
        arg_attrs=_dictionaries(attributes.get("arg_attrs")),
        res_attrs=_dictionaries(attributes.get("res_attrs")),
    )


def _dictionaries(attribute: Attribute | None) -> ArrayAttr[DictionaryAttr] | None:
    if not isinstance(attribute, ArrayAttr):
        return None
    entries = list(cast("ArrayAttr[Attribute]", attribute).data)
    if not entries:
        return None
    return ArrayAttr(
        [entry if isinstance(entry, DictionaryAttr) else DictionaryAttr({}) for entry in entries]
    )


def _group(op: StableHLOOp) -> None:
    """Groups flattened dimension attributes as StableHLO does."""
    name = _GROUPED.get(op.short_name)
    if name is None:
        return
    given = {key: op.get(key) for key in op.attributes}
    op.given[name] = {
        key: [int(each) for each in value.ravel()] if hasattr(value, "ravel") else value
        for key, value in given.items()
    }
