"""What a row of the table of the `ttkernel` dialect says of an op.

Operands, results, attributes and template arguments are written as words, so that a row fits on a
line or two:

    "in0_cb:cb in1_cb:cb in0_tile_index:int in1_tile_index:int dst_index:dst"

is five operands with their kinds. A name that ends in `?` may be left out, if all after it are;
`*` means any number. `|` separates the signatures of a function that C++ overloads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from xdsl.dialects.builtin import Float32Type, IndexType, IntegerType
from xdsl.ir import Attribute

from ttcodegen.dialects.ttkernel.attributes import (
    CBType,
    DataFormatType,
    FabricConnectionManagerType,
    KeptTilesType,
    L1AddressType,
    L1PointerType,
    LocalSemaphoreType,
    NocAddressType,
    PageMappingType,
    RowOrderType,
    SemaphoreType,
    TensorAccessorArgsType,
    TensorAccessorType,
    ThreadType,
    TileCacheType,
)

COMPUTE = frozenset({ThreadType.COMPUTE})
DATA_MOVEMENT = frozenset({ThreadType.NOC, ThreadType.ETHERNET})
ANY_THREAD = COMPUTE | DATA_MOVEMENT


@dataclass(frozen=True, slots=True)
class OperandKind:
    """What a value of a kernel may be; `expected` completes 'should be ...'."""

    expected: str
    accepts: Callable[[Attribute], bool]


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
"""The kinds that rows name."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand or result: `optional` may be left out, `variadic` is any number."""

    name: str
    kind: str
    optional: bool = False
    variadic: bool = False

    def accepts(self, type_: Attribute) -> bool:
        """True if a value of that type is accepted here."""
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
    """Which part of the core does the work."""

    NONE = "none"
    INIT = "init"
    """Sets up an engine; the op can be moved before a loop."""
    FPU = "fpu"
    """The matrix engine: from circular buffers to the destination registers."""
    SFPU = "sfpu"
    """The vector engine: from destination registers to destination registers."""
    PACKER = "packer"
    """From the destination registers to a circular buffer."""


class CallForm(Enum):
    """How the C++ is written."""

    FUNCTION = "function"
    METHOD = "method"
    """The first operand is the object."""
    ELEMENT = "element"
    """An array and the index of an element; what is stored there, if anything is."""
    NAMED_ELEMENT = "named element"
    """As that of an array of the firmware, whose name is `function`; the index is the argument."""
    CONSTANT = "constant"
    """A constant of the firmware, whose name is `function`."""


@dataclass(frozen=True, slots=True)
class TemplateParameter:
    """A template parameter of the C++ function, with the attribute that gives it.

    `attribute` is empty if the op cannot say it, and `<result>` for the type of the result.
    `default` is C++ text, None if the argument has to be written.
    """

    attribute: str
    default: str | None = None
    is_written: bool = False
    """The function has no such default, so that it is written, too."""


@dataclass(frozen=True, slots=True)
class KernelFunction:
    """The C++ of an op in tt-metal 0.70.1."""

    header: str
    """Path of the header to include, below tt_metal/hw/inc."""
    function: str
    template: tuple[TemplateParameter, ...] = ()
    arguments: tuple[str, ...] | None = None
    """Names of operands and attributes in the order of the call, None for all operands; `<result>`
    is the type of the result.

    An absent one with a default, `linked=false`, is written if an argument after it is."""
    form: CallForm = CallForm.FUNCTION


@dataclass(frozen=True)
class KernelOp:
    """One op of the dialect."""

    name: str
    """Without the name of the dialect."""
    signatures: tuple[Signature, ...] = ((),)
    attributes: tuple[KernelAttribute, ...] = ()
    results: tuple[Operand, ...] = ()
    threads: frozenset[ThreadType] = COMPUTE
    engine: Engine = Engine.NONE
    init: str | None = None
    """The op that has to run before, if another one ran in between."""
    cpp: KernelFunction | None = None
    """None if tt-metal 0.70.1 has no such function."""
    is_terminator: bool = False
    has_region: bool = False
    pure: bool = False
    """Its value depends on its operands and attributes alone."""
    _by_name: dict[str, KernelAttribute] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {a.name: a for a in self.attributes})

    def attribute(self, name: str) -> KernelAttribute | None:
        """The attribute of that name, None if there is none."""
        return self._by_name.get(name)

    @property
    def destination_operands(self) -> frozenset[str]:
        """The operands that are destination registers."""
        return frozenset(o.name for s in self.signatures for o in s if o.kind == "dst")


def signatures(text: str) -> tuple[Signature, ...]:
    """The signatures that a text as described at the top of this file spells."""
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
    """`reduce_type:reduce_type full?:bool`, as described at the top of this file."""
    words = (word.split(":") for word in text.split())
    return tuple(KernelAttribute(n.rstrip("?"), kind, n.endswith("?")) for n, kind in words)


def template(text: str) -> tuple[TemplateParameter, ...]:
    """`reduce_type =false dtype!=DataFormat::Int32`: the attributes that are template arguments,
    and their defaults, which are written if `!=` gives them."""
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
    """The C++ of an op; an empty `function` is the name of the op."""
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
    """A row of the table."""
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
    """All rows by name; raises ValueError if two have the same."""
    rows: dict[str, KernelOp] = {}
    for group in groups:
        for entry in group:
            if entry.name in rows:
                raise ValueError(f"two rows are called {entry.name}")
            rows[entry.name] = entry
    return rows
