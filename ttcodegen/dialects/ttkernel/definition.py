"""Row definitions of the `ttkernel` op table, and the attribute kinds of rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, cast

from xdsl.dialects.builtin import (
    BoolAttr,
    Float32Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ttcodegen.dialects.core.attribute_syntax import Word, WordAttribute
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.dialect import DataTypeAttr
from ttcodegen.dialects.ttcore.tile import TILE_FORMATS
from ttcodegen.dialects.ttkernel.attributes import (
    BroadcastType,
    BroadcastTypeAttr,
    CBType,
    DataFormatType,
    DestinationReuse,
    DestinationReuseAttr,
    EltwiseBinaryType,
    EltwiseBinaryTypeAttr,
    FabricConnectionManagerType,
    InputClamping,
    InputClampingAttr,
    KeptTilesType,
    L1AddressType,
    L1PointerType,
    LocalSemaphoreType,
    NocAddressType,
    PageMappingType,
    ReduceDim,
    ReduceDimAttr,
    ReduceType,
    ReduceTypeAttr,
    RowOrderType,
    SemaphoreType,
    TensorAccessorArgsType,
    TensorAccessorType,
    ThreadType,
    TileCacheType,
)

# Rows of the op table.
#
# Operands, results, attributes and template arguments are written as words, so that a row fits on
# a line or two:
#
#     "in0_cb:cb in1_cb:cb in0_tile_index:int in1_tile_index:int dst_index:dst"
#
# has five operands with their kinds. A name that ends in `?` may be absent if all after it are;
# `*` means any number. `|` separates the signatures of C++ overloads.

COMPUTE = frozenset({ThreadType.COMPUTE})
DATA_MOVEMENT = frozenset({ThreadType.NOC, ThreadType.ETHERNET})
ANY_THREAD = COMPUTE | DATA_MOVEMENT


@dataclass(frozen=True, slots=True)
class OperandKind:
    """Kind of a kernel operand; `expected` completes 'should be ...'."""

    expected: str
    accepts: Callable[[Attribute], bool]
    numbers: range | None = None
    """Valid range of constant operands; None for any."""


def _is_integer(*widths: int) -> Callable[[Attribute], bool]:
    def accepts(type_: Attribute) -> bool:
        if isinstance(type_, IndexType):
            return 32 in widths
        return isinstance(type_, IntegerType) and type_.bitwidth in widths

    return accepts


def _is(*classes: type[Attribute]) -> Callable[[Attribute], bool]:
    return lambda type_: isinstance(type_, classes)


def _is_address(type_: Attribute) -> bool:
    return _is_integer(32)(type_) or isinstance(type_, L1AddressType | LocalSemaphoreType)


def _is_argument(type_: Attribute) -> bool:
    return _is_address(type_) or isinstance(type_, CBType | SemaphoreType)


OPERAND_KINDS: dict[str, OperandKind] = {
    "cb": OperandKind("a circular buffer (!ttkernel.cb)", _is(CBType)),
    "dst": OperandKind("the index of a destination register (index or i32)", _is_integer(32)),
    "int": OperandKind("an integer (index or i32)", _is_integer(32)),
    "count": OperandKind("an integer (index or i32)", _is_integer(32), range(1 << 32)),
    "switch": OperandKind("an integer (index or i32)", _is_integer(32), range(2)),
    "trid": OperandKind("an integer (index or i32)", _is_integer(32), range(16)),
    "noc": OperandKind("i8, i16 or i32", _is_integer(8, 16, 32), range(2)),
    "flag": OperandKind("i1", _is_integer(1)),
    "i8": OperandKind("i8", _is_integer(8)),
    "i16": OperandKind("i16", _is_integer(16)),
    "word": OperandKind("i8, i16 or i32", _is_integer(8, 16, 32)),
    "f32": OperandKind("f32", _is(Float32Type)),
    "l1_addr": OperandKind("an address in L1 (i32, l1_addr or local_semaphore)", _is_address),
    "l1_ptr": OperandKind("a pointer into L1 (!ttkernel.l1_addr_ptr)", _is(L1PointerType)),
    "noc_addr": OperandKind("an address on the NoC (!ttkernel.noc_addr)", _is(NocAddressType)),
    "semaphore": OperandKind(
        "the number of a semaphore",
        lambda type_: _is_integer(32)(type_) or isinstance(type_, SemaphoreType),
        range(1 << 32),
    ),
    "argument": OperandKind("an integer, an address or a circular buffer", _is_argument),
    "accessor": OperandKind("!ttkernel.TensorAccessor", _is(TensorAccessorType)),
    "accessor_args": OperandKind("!ttkernel.TensorAccessorArgs", _is(TensorAccessorArgsType)),
    "page_mapping": OperandKind("!ttkernel.PageMapping", _is(PageMappingType)),
    "data_format": OperandKind("!ttkernel.DataFormat", _is(DataFormatType)),
    "fabric": OperandKind("!ttkernel.fabric_connection_manager", _is(FabricConnectionManagerType)),
    "kept_tiles": OperandKind("!ttkernel.KeptTiles", _is(KeptTilesType)),
    "tile_cache": OperandKind("!ttkernel.TileCache", _is(TileCacheType)),
    "row_order": OperandKind("!ttkernel.RowOrder", _is(RowOrderType)),
    "any": OperandKind("a value", lambda _: True),
}
"""Operand kinds of rows, by name."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand or result."""

    name: str
    kind: str
    optional: bool = False
    variadic: bool = False

    def accepts(self, type_: Attribute) -> bool:
        """Returns whether it accepts a value of that type."""
        return OPERAND_KINDS[self.kind].accepts(type_)

    @property
    def expected(self) -> str:
        """Completes 'should be ...'."""
        return OPERAND_KINDS[self.kind].expected


Signature = tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class KernelAttribute:
    """An attribute of an op; `kind` is a key of ATTRIBUTE_KINDS."""

    name: str
    kind: str
    optional: bool = False


class Engine(Enum):
    """Engine of the core that executes the op."""

    NONE = "none"
    INIT = "init"
    """Configures an engine; the op may be hoisted out of loops."""
    FPU = "fpu"
    """Matrix engine: from circular buffers to the destination registers."""
    SFPU = "sfpu"
    """Vector engine: from destination registers to destination registers."""
    PACKER = "packer"
    """Packer: from the destination registers to a circular buffer."""


class CallForm(Enum):
    """Form of the C++ call."""

    FUNCTION = "function"
    METHOD = "method"
    """Method call: the first operand is the object."""
    ELEMENT = "element"
    """Array element, read or assigned: operands are array, index and the stored value if any."""
    NAMED_ELEMENT = "named element"
    """Element of a firmware array named `function`; the argument is the index."""
    CONSTANT = "constant"
    """Firmware constant named `function`."""


@dataclass(frozen=True, slots=True)
class TemplateParameter:
    """Template parameter of the C++ function, with the attribute of its argument.

    `attribute` is empty if the op has none, and `<result>` for the type of the result. `default` is
    C++ text, or None if the argument is required.
    """

    attribute: str
    default: str | None = None
    is_written: bool = False
    """True if C++ has no such default, so that the argument is always written."""


@dataclass(frozen=True, slots=True)
class KernelFunction:
    """C++ function of an op in tt-metal."""

    header: str
    """Path of the header below tt_metal/hw/inc."""
    function: str
    """Name; `{eltwise_binary_type}` in it is replaced by the word of that attribute."""
    template: tuple[TemplateParameter, ...] = ()
    arguments: tuple[str, ...] | None = None
    """Names of operands and attributes in the order of the call; None for all operands.

    `<result>` is the type of the result. An absent argument with a default, `linked=false`, is
    written only if an argument after it is.
    """
    form: CallForm = CallForm.FUNCTION
    conversion: str = ""
    """Function that converts the operand to the argument, such as `Config::from_packed`."""


@dataclass(frozen=True)
class KernelOp:
    """An op of the dialect."""

    name: str
    """Name without dialect."""
    signatures: tuple[Signature, ...] = ((),)
    attributes: tuple[KernelAttribute, ...] = ()
    results: tuple[Operand, ...] = ()
    threads: frozenset[ThreadType] = COMPUTE
    engine: Engine = Engine.NONE
    init: str | None = None
    """Init op that has to run before, if other ops ran in between."""
    cpp: KernelFunction | None = None
    """C++ function; None if tt-metal has none."""
    is_terminator: bool = False
    has_region: bool = False
    pure: bool = False
    """True if its value depends only on operands and attributes."""
    _by_name: dict[str, KernelAttribute] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {a.name: a for a in self.attributes})

    def attribute(self, name: str) -> KernelAttribute | None:
        """Returns an attribute by name, or None."""
        return self._by_name.get(name)

    @property
    def destination_operands(self) -> frozenset[str]:
        """Returns the operands that are destination registers."""
        return frozenset(o.name for s in self.signatures for o in s if o.kind == "dst")


def signatures(text: str) -> tuple[Signature, ...]:
    """Parses signatures as described at the top of this file."""
    return tuple(_operands(part) for part in text.split("|"))


def _operands(text: str) -> Signature:
    operands: list[Operand] = []
    for word in text.split():
        name, kind = word.split(":")
        if kind not in OPERAND_KINDS:
            raise ValueError(f"no kind of operand is called {kind}")
        operands.append(Operand(name.rstrip("?*"), kind, name.endswith("?"), name.endswith("*")))
    return tuple(operands)


def kernel_attributes(text: str) -> tuple[KernelAttribute, ...]:
    """Parses `reduce_type:reduce_type full?:bool`, as described at the top of this file."""
    words = (word.split(":") for word in text.split())
    return tuple(KernelAttribute(n.rstrip("?"), kind, n.endswith("?")) for n, kind in words)


def template(text: str) -> tuple[TemplateParameter, ...]:
    """Parses template arguments: `reduce_type =false dtype!=DataFormat::Int32`.

    Names are attributes; defaults after `!=` are written in C++.
    """
    parameters: list[TemplateParameter] = []
    for word in text.split():
        name, separator, default = word.partition("=")
        parameter = TemplateParameter(
            name.removesuffix("!"), default if separator else None, name.endswith("!")
        )
        parameters.append(parameter)
    return tuple(parameters)


def calls(
    header: str,
    function: str = "",
    *,
    template_words: str = "",
    arguments: str | None = None,
    form: CallForm = CallForm.FUNCTION,
) -> KernelFunction:
    """Returns the C++ function of an op; an empty `function` is the name of the op."""
    names = None if arguments is None else tuple(arguments.split())
    return KernelFunction(header, function, template(template_words), names, form)


def row(
    name: str,
    operands: str = "",
    cpp: KernelFunction | None = None,
    *,
    attributes: str = "",
    results: str = "",
    threads: frozenset[ThreadType] = COMPUTE,
    engine: Engine = Engine.NONE,
    init: str | None = None,
    is_terminator: bool = False,
    has_region: bool = False,
    pure: bool = False,
) -> KernelOp:
    """Creates a row of the table."""
    if cpp is not None and not cpp.function:
        cpp = KernelFunction(cpp.header, name, cpp.template, cpp.arguments, cpp.form)
    return KernelOp(
        name,
        signatures(operands),
        kernel_attributes(attributes),
        _operands(results),
        threads,
        engine,
        init,
        cpp,
        is_terminator,
        has_region,
        pure,
    )


def table(*groups: Sequence[KernelOp]) -> dict[str, KernelOp]:
    """Returns all rows by name; raises ValueError for duplicates."""
    rows: dict[str, KernelOp] = {}
    for group in groups:
        for entry in group:
            if entry.name in rows:
                raise ValueError(f"two rows are called {entry.name}")
            rows[entry.name] = entry
    return rows


# Attribute kinds of rows: Python, MLIR and C++.


@dataclass(frozen=True, slots=True)
class AttributeKind:
    """Kind of attribute: encoding, verification, syntax and C++ spelling.

    `expected` completes 'should be ...'.
    """

    expected: str
    accepts: Callable[[Attribute], bool]
    encode: Callable[[Any], Attribute]
    parse: Callable[[AttrParser], Attribute]
    print: Callable[[Printer, Any], None]
    cpp: Callable[[Any], str]
    """C++ spelling; raises KeyError if there is none."""


def _is_integer_of(attribute: Attribute, type_: IntegerType) -> bool:
    if not isinstance(attribute, IntegerAttr):
        return False
    return cast("IntegerAttr[IntegerType]", attribute).type == type_


def _boolean() -> AttributeKind:
    return AttributeKind(
        "true or false",
        lambda attribute: _is_integer_of(attribute, i1),
        BoolAttr.from_bool,
        lambda parser: BoolAttr.from_bool(parser.parse_boolean()),
        lambda printer, attribute: printer.print_string(_truth(attribute)),
        _truth,
    )


def _truth(attribute: BoolAttr) -> str:
    return "true" if attribute.value.data else "false"


def _integer(width: int, least: int | None = None) -> AttributeKind:
    type_ = {32: i32, 64: i64}[width]
    bound = "" if least is None else f" of {least} or more"

    def accepts(attribute: Attribute) -> bool:
        if not _is_integer_of(attribute, type_):
            return False
        return least is None or cast("IntegerAttr", attribute).value.data >= least

    def parse(parser: AttrParser) -> Attribute:
        value = parser.parse_integer()
        if parser.parse_optional_punctuation(":") is not None:
            parser.parse_type()
        return IntegerAttr(value, type_)

    def spelled(attribute: IntegerAttr) -> str:
        return str(attribute.value.data)

    return AttributeKind(
        f"an i{width}{bound}",
        accepts,
        lambda value: IntegerAttr(value, type_),
        parse,
        lambda printer, attribute: printer.print_string(spelled(attribute)),
        spelled,
    )


def _text() -> AttributeKind:
    def quoted(attribute: StringAttr) -> str:
        escaped = attribute.data.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'

    return AttributeKind(
        "a string",
        lambda attribute: isinstance(attribute, StringAttr),
        StringAttr,
        lambda parser: StringAttr(parser.parse_str_literal()),
        lambda printer, attribute: printer.print_string_literal(attribute.data),
        quoted,
    )


def _words(attribute_type: type[WordAttribute[Word]], cpp: Mapping[Word, str]) -> AttributeKind:
    return AttributeKind(
        f"a #{attribute_type.name}",
        lambda attribute: isinstance(attribute, attribute_type),
        attribute_type,
        lambda parser: attribute_type.new(attribute_type.parse_parameter(parser)),
        lambda printer, attribute: attribute.print_parameter(printer),
        lambda attribute: cpp[attribute.data],
    )


def _data_type(
    spell: Callable[[str], str],
    formats: Collection[str] = frozenset(TILE_FORMATS),
    expected: str = "a #ttcore.supportedDataTypes",
) -> AttributeKind:
    return AttributeKind(
        expected,
        lambda attribute: isinstance(attribute, DataTypeAttr) and attribute.value.data in formats,
        lambda value: DataTypeAttr(value.mlir if isinstance(value, DataType) else value),
        lambda parser: DataTypeAttr.new(DataTypeAttr.parse_parameters(parser)),
        lambda printer, attribute: attribute.print_parameters(printer),
        lambda attribute: spell(f"DataFormat::{TILE_FORMATS[attribute.value.data].cpp}"),
    )


def _block_enumeration(cpp: str, words: Sequence[str]) -> AttributeKind:
    """Attribute kind of words that are enumerators in kernels/blocks."""
    return AttributeKind(
        f"one of {', '.join(words)}",
        lambda attribute: isinstance(attribute, StringAttr) and attribute.data in words,
        StringAttr,
        lambda parser: StringAttr(parser.parse_str_literal()),
        lambda printer, attribute: printer.print_string_literal(attribute.data),
        lambda attribute: f"blocks::{cpp}::{attribute.data}",
    )


NUMBERS = ("floating", "signed_integer", "unsigned_integer")
"""Interpretations of bits (kernels/blocks/row_order.hpp)."""

REDUCTIONS = ("none", "sum", "prod", "min", "max")
"""Reductions of elements scattered to one position (kernels/blocks/scattering.hpp)."""

PRINTED = ("f32", "bf16", "si32", "u32")
"""Data types of printed elements (kernels/blocks/printed_rows.hpp)."""

ATTRIBUTE_KINDS: dict[str, AttributeKind] = {
    "bool": _boolean(),
    "i32": _integer(32),
    "i64": _integer(64),
    "count": _integer(32, 0),
    "positive": _integer(32, 1),
    "dimension": _integer(64, 0),
    "text": _text(),
    "element": AttributeKind(
        "i8, i16 or i32",
        lambda attribute: attribute in (i8, i16, i32),
        lambda value: value,
        lambda parser: parser.parse_type(),
        lambda printer, attribute: printer.print_attribute(attribute),
        lambda attribute: f"uint{attribute.width.data}_t",
    ),
    "number": _block_enumeration("Number", NUMBERS),
    "reduction": _block_enumeration("Reduction", REDUCTIONS),
    "printed": _block_enumeration("Printed", PRINTED),
    "dtype": _data_type(str),
    "integer_dtype": _data_type(
        str, ("si32", "u32", "u16"), "a #ttcore.supportedDataTypes of si32, u32 or u16"
    ),
    "dtype_number": _data_type(lambda enumerator: f"static_cast<uint32_t>({enumerator})"),
    "reduce_type": _words(
        ReduceTypeAttr,
        {
            ReduceType.SUM: "PoolType::SUM",
            ReduceType.MAX: "PoolType::MAX",
            ReduceType.AVG: "PoolType::AVG",
            ReduceType.MIN: "PoolType::MIN",
        },
    ),
    "reduce_dim": _words(
        ReduceDimAttr,
        {
            ReduceDim.ROW: "ReduceDim::REDUCE_ROW",
            ReduceDim.COL: "ReduceDim::REDUCE_COL",
            ReduceDim.SCALAR: "ReduceDim::REDUCE_SCALAR",
        },
    ),
    "bcast_type": _words(
        BroadcastTypeAttr,
        {
            BroadcastType.NONE: "BroadcastType::NONE",
            BroadcastType.COL: "BroadcastType::COL",
            BroadcastType.ROW: "BroadcastType::ROW",
            BroadcastType.SCALAR: "BroadcastType::SCALAR",
        },
    ),
    "eltwise_binary_type": _words(
        EltwiseBinaryTypeAttr,
        {
            EltwiseBinaryType.ADD: "EltwiseBinaryType::ELWADD",
            EltwiseBinaryType.SUB: "EltwiseBinaryType::ELWSUB",
            EltwiseBinaryType.MUL: "EltwiseBinaryType::ELWMUL",
        },
    ),
    "reuse_type": _words(
        DestinationReuseAttr,
        {
            DestinationReuse.DEST_TO_SRCA: "EltwiseBinaryReuseDestType::DEST_TO_SRCA",
            DestinationReuse.DEST_TO_SRCB: "EltwiseBinaryReuseDestType::DEST_TO_SRCB",
        },
    ),
    "input_clamping": _words(
        InputClampingAttr,
        {
            InputClamping.NONE: "InputClamping::None",
            InputClamping.CLAMP_TO_NEGATIVE: "InputClamping::ClampToNegative",
        },
    ),
    "any": AttributeKind(
        "an attribute",
        lambda _: True,
        lambda value: value,
        lambda parser: parser.parse_attribute(),
        lambda printer, attribute: printer.print_attribute(attribute),
        str,
    ),
}
"""Attribute kinds of rows, by name."""
