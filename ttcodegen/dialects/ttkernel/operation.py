"""Op classes of the `ttkernel` dialect, and the C++ calls that they are emitted as."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    Signedness,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Data, Operation, OpTraits, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoTerminator, OpTrait, Pure
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.operations.functions import KERNEL_THREAD
from ttcodegen.dialects.ttkernel.attributes import (
    CBType,
    DataFormatType,
    KeptTilesType,
    L1AddressType,
    L1PointerType,
    LocalSemaphoreType,
    NocAddressType,
    RowOrderType,
    SemaphoreType,
    TensorAccessorArgsType,
    TensorAccessorType,
    ThreadType,
    ThreadTypeAttr,
    TileCacheType,
)
from ttcodegen.dialects.ttkernel.conditions import CONDITIONS
from ttcodegen.dialects.ttkernel.dataflow_table import DATAFLOW_HEADER
from ttcodegen.dialects.ttkernel.definition import (
    ANY_THREAD,
    ATTRIBUTE_KINDS,
    OPERAND_KINDS,
    CallForm,
    KernelFunction,
    KernelOp,
    Signature,
    template,
)
from ttcodegen.dialects.ttkernel.table import kernel_ops
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.systems.releases import CATALOGUE_RELEASE
from ttcodegen.systems.releases.release import KernelChange, Release

# Op classes generated from the table.
#
# The assembly format follows the reference dialect:
#
#     ttkernel.reduce_tile(%in, %scale, %i, %j, %dst, <reduce_sum>, <reduce_dim_row>)
#         : (!ttkernel.cb<8, !ttcore.tile<32x32, bf16>>, ...) -> ()

DESTINATION_TILES = "ttkernel.dst_tiles"
"""Attribute (i64) of a compute kernel with the number of tiles of its destination registers."""
COMMENT = "ttkernel.comment"
"""Attribute of an op with the comment above it in C++."""
STAGE = "ttkernel.stage"
"""Attribute of the ops of a kernel stage: the name of its function if the kernel is too long."""
STAGE_PURPOSE = "ttkernel.stage_purpose"
"""Attribute of the first op of a stage: the purpose of the stage."""
BITS = "ttkernel.bits"
"""Attribute of a constant that C++ prints in hexadecimal."""
MOST_DESTINATION_TILES = 16
"""Number of 16-bit tiles in all destination registers (tt-metal)."""


class TTKernelOp(Operation):
    """An op of the `ttkernel` dialect, described by its `definition`."""

    definition: ClassVar[KernelOp]
    property_names: ClassVar[frozenset[str]] = frozenset()
    """Properties that are parsed among the other attributes."""
    traits = OpTraits(tuple)
    source_offset: int = -1

    @property
    def signature(self) -> Signature:
        """Returns the signature that the operands match; raises VerifyException if there is
        none."""
        types = [operand.type for operand in self.operands]
        for signature in self.definition.signatures:
            if not _mismatch(signature, types):
                return signature
        candidates = self.definition.signatures
        # The signature of the closest length gives the best message.
        closest = min(candidates, key=lambda s: abs(len(s) - len(types)))
        raise VerifyException(f"{self.name} {_mismatch(closest, types)}")

    def operand_named(self, name: str) -> SSAValue | None:
        """Returns an operand by name, or None if it is absent."""
        for spec, value in zip(self.signature, self.operands, strict=False):
            if spec.name == name:
                return value
        return None

    def number_named(self, name: str) -> int | None:
        """Returns the constant value of an operand or attribute; None if absent or only known at
        run time."""
        attribute = self.properties.get(name)
        if isinstance(attribute, IntegerAttr):
            return attribute.value.data
        value = self.operand_named(name)
        return None if value is None else constant_integer(value)

    def numbered_registers(self) -> Iterator[tuple[SSAValue, int]]:
        """Yields the operands that are destination registers with constant index, and the index."""
        for spec, value in zip(self.signature, self.operands, strict=False):
            if spec.kind == "dst" and (number := constant_integer(value)) is not None:
                yield value, number

    def verify_(self) -> None:
        """Verifies operands, attributes, results, the kind of thread, and destination indices."""
        signature = self.signature
        self._verify_results()
        self._verify_attributes()
        self._verify_numbers(signature)
        if (condition := CONDITIONS.get(self.definition.name)) is not None:
            fault = condition(self)
            if fault:
                raise VerifyException(f"{self.name}{fault}")
        if len(self.regions) != int(self.definition.has_region):
            raise VerifyException(f"{self.name} has {int(self.definition.has_region)} regions")
        kernel = self._kernel()
        if kernel is not None:
            self._verify_thread(kernel)
            self._verify_destinations(signature, kernel)

    def _verify_results(self) -> None:
        mismatch = _mismatch(
            self.definition.results, [result.type for result in self.results], "result"
        )
        if mismatch:
            raise VerifyException(f"{self.name} {mismatch}")

    def _verify_attributes(self) -> None:
        for spec in self.definition.attributes:
            attribute = self.properties.get(spec.name)
            if attribute is None:
                if not spec.optional:
                    raise VerifyException(f"{self.name} needs the attribute '{spec.name}'")
                continue
            kind = ATTRIBUTE_KINDS[spec.kind]
            if not kind.accepts(attribute):
                raise VerifyException(
                    f"{self.name}: attribute '{spec.name}' should be {kind.expected}, "
                    f"found {attribute}"
                )
        for name in self.properties:
            if self.definition.attribute(name) is None and name != "operandSegmentSizes":
                raise VerifyException(f"{self.name} has no attribute '{name}'")

    def _verify_numbers(self, signature: Signature) -> None:
        for spec, value in zip(signature, self.operands, strict=False):
            numbers = OPERAND_KINDS[spec.kind].numbers
            if numbers is None or (number := constant_integer(value)) is None:
                continue
            if number not in numbers:
                bound = "not negative" if numbers[-1] > 15 else f"0 to {numbers[-1]}"
                raise VerifyException(f"{self.name}: '{spec.name}' is {bound}, found {number}")

    def _kernel(self) -> FuncOp | None:
        """Returns the enclosing kernel, or None."""
        parent = self.parent_op()
        while parent is not None:
            if isinstance(parent, FuncOp):
                return parent if KERNEL_THREAD in parent.attributes else None
            parent = parent.parent_op()
        return None

    def _verify_thread(self, kernel: FuncOp) -> None:
        thread = kernel_thread(kernel)
        if thread not in self.definition.threads:
            allowed = " or ".join(t.value for t in ThreadType if t in self.definition.threads)
            raise VerifyException(
                f"{self.name} runs in kernels of the thread {allowed}, but "
                f"@{kernel.sym_name.data} is a kernel of the thread {thread.value}"
            )

    def _verify_destinations(self, signature: Signature, kernel: FuncOp) -> None:
        capacity = destination_tiles(kernel)
        for spec, value in zip(signature, self.operands, strict=False):
            if spec.kind != "dst" or (index := constant_integer(value)) is None:
                continue
            if not 0 <= index < capacity:
                raise VerifyException(
                    f"{self.name}: '{spec.name}' is the destination register {index}, but "
                    f"@{kernel.sym_name.data} has {capacity}, numbered from 0"
                )

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        operands, properties, attributes = _parse_parentheses(cls.definition, parser)
        regions: list[Region] = []
        if cls.definition.has_region:
            regions.append(parser.parse_region())
        parser.parse_punctuation(":")
        position = parser.pos
        function_type = parser.parse_function_type()
        types = function_type.inputs.data
        if len(types) != len(operands):
            parser.raise_error(
                f"the operation has {len(operands)} operands, but its type lists {len(types)}",
                position,
            )
        return cls.create(
            operands=[parser.resolve_operand(o, t) for o, t in zip(operands, types, strict=True)],
            result_types=function_type.outputs.data,
            properties=properties,
            attributes=attributes,
            regions=regions,
        )

    def print(self, printer: Printer) -> None:
        shown: set[str] = set()
        printer.print_string("(")
        printer.print_list(self.operands, printer.print_ssa_value)
        separator = ", " if self.operands else ""
        for spec in self.definition.attributes:
            attribute = self.properties.get(spec.name)
            # A single index is printed like an operand.
            is_index = spec.kind in ("i32", "count") and not self.operands
            if attribute is None or (spec.optional and not is_index):
                break
            printer.print_string(separator)
            ATTRIBUTE_KINDS[spec.kind].print(printer, attribute)
            separator = ", "
            shown.add(spec.name)
        printer.print_string(")")
        rest = {k: v for k, v in (self.properties | self.attributes).items() if k not in shown}
        printer.print_op_attributes(rest, print_keyword=self.definition.has_region)
        for region in self.regions:
            printer.print_string(" ")
            printer.print_region(region)
        printer.print_string(" : ")
        printer.print_operation_type(self)


def _parse_parentheses(
    definition: KernelOp, parser: Parser
) -> tuple[list[UnresolvedOperand], dict[str, Attribute], dict[str, Attribute]]:
    """Parses `(%operands..., attributes...) {further attributes}`.

    Returns operands, properties and discardable attributes.
    """
    operands: list[UnresolvedOperand] = []
    properties: dict[str, Attribute] = {}
    waiting = iter(definition.attributes)

    def parse_item() -> None:
        if (operand := parser.parse_optional_unresolved_operand()) is not None:
            operands.append(operand)
            return
        spec = next(waiting, None)
        if spec is None:
            parser.raise_error(f"ttkernel.{definition.name} has no further attribute")
        attribute = parser.parse_optional_attribute() if spec.kind not in _PLAIN else None
        if attribute is None:
            attribute = ATTRIBUTE_KINDS[spec.kind].parse(parser)
        properties[spec.name] = attribute

    parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_item)
    attributes: dict[str, Attribute] = {}
    if not definition.has_region:
        attributes = parser.parse_optional_attr_dict()
    elif (dictionary := parser.parse_optional_attr_dict_with_keyword()) is not None:
        attributes = dict(dictionary.data)
    for name in [name for name in attributes if definition.attribute(name) is not None]:
        properties[name] = attributes.pop(name)
    return operands, properties, attributes


_PLAIN = frozenset({"bool", "i32", "i64", "count", "positive", "dimension", "text"})
"""Kinds whose short form would also parse as an attribute of another type."""


def _mismatch(specs: Signature, types: Sequence[Attribute], noun: str = "operand") -> str:
    """Returns the mismatch between types and a signature as text; empty if there is none."""
    variadic = bool(specs) and specs[-1].variadic
    least = sum(not (spec.optional or spec.variadic) for spec in specs)
    if len(types) < least or (len(types) > len(specs) and not variadic):
        count = str(least) if least == len(specs) else f"{least} to {len(specs)}"
        count = f"at least {least}" if variadic else count
        return f"has {count} {noun}s, found {len(types)}"
    for position, type_ in enumerate(types):
        spec = specs[min(position, len(specs) - 1)]
        if not spec.accepts(type_):
            return f": {noun} '{spec.name}' should be {spec.expected}, found {type_}"
    return ""


def kernel_thread(kernel: FuncOp) -> ThreadType:
    """Returns the kind of thread of a kernel; raises VerifyException if the function is no
    kernel."""
    attribute = kernel.attributes.get(KERNEL_THREAD)
    if not isinstance(attribute, ThreadTypeAttr):
        raise VerifyException(
            f"@{kernel.sym_name.data}: attribute '{KERNEL_THREAD}' should be a "
            f"#{ThreadTypeAttr.name}"
        )
    return attribute.data.kind


def destination_tiles(kernel: FuncOp) -> int:
    """Returns the number of tiles of a compute kernel's destination registers."""
    attribute = kernel.attributes.get(DESTINATION_TILES)
    if isinstance(attribute, IntegerAttr):
        return attribute.value.data
    return MOST_DESTINATION_TILES


def constant_integer(value: SSAValue) -> int | None:
    """Returns the value of an integer constant, or None for other values."""
    owner = value.owner
    if isinstance(owner, Operation) and owner.name == "arith.constant":
        attribute = owner.properties.get("value")
        if isinstance(attribute, IntegerAttr):
            return attribute.value.data
    return None


@cache
def ttkernel_op_classes() -> Mapping[str, type[TTKernelOp]]:
    """Returns one op class per row of the table, by name without dialect."""
    return {name: _op_class(definition) for name, definition in kernel_ops().items()}


def _op_class(definition: KernelOp) -> type[TTKernelOp]:
    words = definition.name.replace(".", "_").split("_")
    traits: tuple[OpTrait, ...] = (
        *([IsTerminator()] if definition.is_terminator else []),
        *([Pure()] if definition.pure else []),
        *([NoTerminator()] if definition.has_region else []),
    )
    members = {
        "name": f"ttkernel.{definition.name}",
        "definition": definition,
        "property_names": frozenset(a.name for a in definition.attributes),
        "traits": OpTraits(lambda: traits),
        "__doc__": f"`ttkernel.{definition.name}`, as the table says.",
        "__module__": __name__,
    }
    return type("".join(word.capitalize() for word in words) + "Op", (TTKernelOp,), members)


def create(
    name: str,
    operands: Sequence[SSAValue] = (),
    attributes: Mapping[str, object] | None = None,
    result_types: Sequence[Attribute] = (),
    regions: Sequence[Region] = (),
) -> TTKernelOp:
    """Creates an op by its name without dialect; attributes are Python values.

    Raises KeyError if there is no such op or attribute.
    """
    op_class = ttkernel_op_classes()[name]
    properties: dict[str, Attribute] = {}
    for key, value in (attributes or {}).items():
        spec = op_class.definition.attribute(key)
        if spec is None:
            raise KeyError(f"ttkernel.{name} has no attribute '{key}'")
        kind = ATTRIBUTE_KINDS[spec.kind]
        properties[key] = value if isinstance(value, Attribute) else kind.encode(value)
    return op_class.create(
        operands=operands, result_types=result_types, properties=properties, regions=regions
    )


def kernel_function_type(inputs: Sequence[Attribute]) -> FunctionType:
    """Returns the type of a kernel, which has no results."""
    return FunctionType.from_lists(inputs, [])


# C++ calls of ops.

RESULT = "<result>"
"""Placeholder for the C++ type of the result."""


@dataclass(frozen=True, slots=True)
class KernelCall:
    """C++ call `callee<template arguments>(arguments)`, or a method of the first argument."""

    header: str
    """Header to include, for example `api/compute/matmul.h`."""
    callee: str
    template_arguments: tuple[str, ...]
    arguments: tuple[SSAValue | str, ...]
    """Values of the program, or C++ text."""
    form: CallForm
    """Form of the callee and the arguments."""
    conversion: str = ""
    """Function that converts each argument."""


def kernel_call(
    op: TTKernelOp, thread: ThreadType, release: Release = CATALOGUE_RELEASE
) -> KernelCall:
    """Returns the C++ call of an op in a kernel of that thread: the last of `kernel_calls`.

    Raises CompileError if the release has no function for it, or none for its attributes.
    """
    return kernel_calls(op, thread, release)[-1]


def kernel_calls(op: TTKernelOp, thread: ThreadType, release: Release) -> list[KernelCall]:
    """Returns the C++ calls of an op in a kernel of that thread; the last one gives its result.

    Raises CompileError if the release has no function for it, or none for its attributes.
    """
    functions = functions_in(op.definition, release)
    if not functions:
        raise CompileError(
            f"{op.name} has no counterpart in tt-metal {release.name}",
            op,
            remedy="use an op that the kernel API of this release has",
        )
    return [
        KernelCall(
            header_of(function, thread, op.definition.threads),
            _name(op, function),
            _template_arguments(op, function, release),
            _arguments(op, function, release),
            function.form,
            function.conversion,
        )
        for function in functions
    ]


@lru_cache(maxsize=1 << 12)
def functions_in(definition: KernelOp, release: Release) -> tuple[KernelFunction, ...]:
    """Returns the functions of a release that an op calls in order; empty if there are none."""
    function = definition.cpp
    if function is None or definition.name in release.absent_kernels:
        return ()
    change = release.kernels.get(definition.name)
    if change is None:
        return (function,)
    before = () if change.before is None else (_changed(function, change.before),)
    return (*before, _changed(function, change))


def _changed(function: KernelFunction, change: KernelChange) -> KernelFunction:
    words = change.arguments
    return KernelFunction(
        function.header if change.header is None else change.header,
        function.function if change.function is None else change.function,
        function.template if change.template is None else template(change.template),
        function.arguments if words is None else tuple(words.split()),
        function.form,
        change.conversion,
    )


def _name(op: TTKernelOp, function: KernelFunction) -> str:
    """Returns the name of a function for the attributes of an op."""
    text, begin, rest = function.function.partition("{")
    if not begin:
        return text
    attribute, _, end = rest.partition("}")
    word = op.properties.get(attribute)
    if not isinstance(word, Data):
        raise CompileError(f"{op.name} needs the attribute '{attribute}'", op)
    return f"{text}{cast('Data[str]', word).data}{end}"


def header_of(function: KernelFunction, thread: ThreadType, threads: frozenset[ThreadType]) -> str:
    """Returns the header that declares a function; data movement kernels have a header of their
    own."""
    shared = threads == ANY_THREAD and function.header.startswith("api/compute/")
    return DATAFLOW_HEADER if shared and thread is not ThreadType.COMPUTE else function.header


def _template_arguments(
    op: TTKernelOp, function: KernelFunction, release: Release
) -> tuple[str, ...]:
    """Returns the template arguments without trailing defaults."""
    arguments: list[str] = []
    needed = 0
    for parameter in function.template:
        text = _attribute_text(op, parameter.attribute, release)
        if parameter.attribute == RESULT:
            text = cpp_type(op.results[0].type)
        given = text is not None and text != parameter.default
        if text is None:
            text = parameter.default
        if text is None:
            raise CompileError(f"{op.name} needs the attribute '{parameter.attribute}'", op)
        arguments.append(text)
        if given or parameter.default is None or parameter.is_written:
            needed = len(arguments)
    return tuple(arguments[:needed])


def _arguments(
    op: TTKernelOp, function: KernelFunction, release: Release
) -> tuple[SSAValue | str, ...]:
    if function.arguments is None:
        return tuple(op.operands)
    arguments: list[SSAValue | str] = []
    needed = 0
    for word in function.arguments:
        if word == RESULT:
            arguments.append(cpp_type(op.results[0].type))
            needed = len(arguments)
            continue
        name, optional, default = word.partition("=")
        value = op.operand_named(name)
        argument = value if value is not None else _attribute_text(op, name, release)
        if argument is None and not optional:
            raise CompileError(f"{op.name}: the function of the kernel API needs '{name}'", op)
        given = argument is not None and argument != default
        # The index of an array element is always written.
        given |= function.form is CallForm.NAMED_ELEMENT
        arguments.append(argument if argument is not None else default)
        if given:
            needed = len(arguments)
    return tuple(arguments[:needed])


def _attribute_text(op: TTKernelOp, name: str, release: Release) -> str | None:
    """Returns the C++ text of an attribute, or None if it is absent."""
    spec = op.definition.attribute(name)
    attribute = op.properties.get(name)
    if spec is None or attribute is None:
        return None
    try:
        return ATTRIBUTE_KINDS[spec.kind].cpp(attribute)
    except KeyError:
        raise CompileError(
            f"{op.name}: {attribute} has no counterpart in tt-metal {release.name}", op
        ) from None


def cpp_type(type_: Attribute) -> str:
    """Returns the C++ type of a kernel value; raises CompileError if there is none."""
    match type_:
        case NocAddressType():
            return "uint64_t"
        case L1PointerType():
            return f"volatile tt_l1_ptr uint{type_.width.data}_t*"
        case TensorAccessorArgsType() | TensorAccessorType():
            return "auto"
        case KeptTilesType() | RowOrderType() | TileCacheType():
            return "auto"
        case DataFormatType():
            return "DataFormat"
        case IndexType() | CBType() | L1AddressType() | LocalSemaphoreType() | SemaphoreType():
            return "uint32_t"
        case Float32Type():
            return "float"
        case BFloat16Type() | Float16Type():
            return "uint16_t"
        case IntegerType():
            if type_.width.data == 1:
                return "bool"
            signed = type_.signedness.data is Signedness.SIGNED
            return f"{'int' if signed else 'uint'}{type_.width.data}_t"
        case _:
            raise CompileError(f"kernels have no values of the type {type_}")
