"""Definitions of ops and the registry of all of them.

Each op family is one file of this package. It registers TTIR ops (verifier, numpy semantics,
decomposition or lowering) and TTNN ops (layouts of operands and results, numpy semantics, C++
call). Dialects, conversions, the flatbuffer, its interpreter and the op table of the documentation
are derived from these definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.operation import (
    REQUIRED,
    AttributeSpec,
    Call,
    CatalogueOp,
    Definition,
    NumpyMeaning,
    OperandSpec,
    ResultInfo,
    Verifier,
    attribute,
    operand,
    optional,
    variadic,
)
from ttcodegen.dialects.ttcore.shards import Layout, Memory, MemoryLayout, Shards
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import CppEmission
from ttcodegen.ops.core.dimensions import DimensionRule
from ttcodegen.ops.core.lowering import CpuLowering, TileLowering
from ttcodegen.ops.core.traits import (
    VECTOR_CYCLES,
    CallKind,
    ChipMovementRule,
    FlopRule,
    NeededChipsRule,
    Trait,
    no_flops,
    one_per_element,
)

__all__ = [
    "REQUIRED",
    "TTIR",
    "TTNN",
    "AttributeSpec",
    "Call",
    "CppEmission",
    "Definition",
    "Layout",
    "Lowering",
    "Memory",
    "NumpyMeaning",
    "OperandSpec",
    "ResultInfo",
    "ResultRule",
    "TTIRDefinition",
    "TTNNDefinition",
    "Verifier",
    "attribute",
    "operand",
    "optional",
    "register",
    "variadic",
]


Lowering = Callable[[OpBuilder, CatalogueOp], SSAValue | Sequence[SSAValue]]
"""Creates ops that replace the given one; the builder maps operands lowered before."""

PrimitiveLowering = Callable[[OpBuilder, CatalogueOp], SSAValue | Sequence[SSAValue] | None]
"""Lowering to TTIR ops; returns None where the op stays as it is."""


@dataclass(frozen=True)
class TTIRDefinition(Definition):
    """An op of the input dialect.

    One of `decompose`, `lower`, `refusal` is set; both of the first two if only some forms of the
    op decompose.
    """

    decompose: PrimitiveLowering | None = None
    """Decomposes the op to TTIR ops; returns None for a form that `lower` takes."""
    lower: Lowering | None = None
    """Lowers the op to TTNN ops."""
    refusal: str | None = None
    """Reason why no target supports the op, worded for the user."""
    tile: TileLowering | None = None
    """Lowering of an elementwise op to tile ops in destination registers."""
    tile_numpy: NumpyMeaning | None = None
    """Numpy semantics of `tile`, where the kernel differs from `numpy`."""
    primitives: PrimitiveLowering | None = None
    """Decomposition to TTIR ops that have device kernels, where the op itself has none."""
    stays: Callable[[CatalogueOp], bool] | None = None
    """True if a device program computes the op as it is, without `primitives`."""
    program: PrimitiveLowering | None = None
    """Decomposition like `primitives`, but run last: other passes would match its ops as another
    spelling of the op.
    """
    cpu: CpuLowering | None = None
    """Lowering to a CPU function, for computations outside of device programs."""
    refused_form: Callable[[CatalogueOp], str | None] | None = None
    """Returns why no target supports this form of the op, None if one does."""
    counts: bool = False
    """True if the op computes numbers; a boolean result is true where they are not 0."""
    matrix_engine: bool = False
    """True if the op runs on the matrix engine of a core, not on its vector engine."""
    moves: bool = False
    """True if the op only moves elements of its first operand (all operands, if variadic),
    optionally with a constant fill or a typecast.
    """
    between_chips: ChipMovementRule | None = None
    """Data movement of a collective that only moves elements."""
    needed_chips: NeededChipsRule | None = None
    """Mesh size that a collective requires, for modules that name no mesh."""
    draws: bool = False
    """True if the op draws random numbers: equal ops must not be merged."""
    of_nothing: float | None = None
    """Element of the result where an empty operand leaves nothing to add, multiply or compare; None
    if there is no such identity.
    """
    traits: Trait = Trait.NONE
    on_booleans: str | None = None
    """Equivalent TTIR op on boolean operands and results."""
    dimensions: DimensionRule | None = None
    """Dimension labels for sharding the op; None if it needs whole tensors."""

    @property
    def fills(self) -> bool:
        """True if the attributes alone determine the elements."""
        return not self.operands and not self.draws


@dataclass(frozen=True)
class ResultRule:
    """Data type and layout of a library result before any conversion.

    `data_type`: "first" for the data type of the first operand, "attribute" if the call takes an
    output data type (attribute `dtype` of the op), "declared" if it follows the result type, or a
    fixed one. `layout`: None for the layout of the first operand.
    """

    data_type: DataType | Literal["first", "attribute", "declared"] = "first"
    layout: Layout | None = Layout.TILE
    memory: Memory = Memory.DEVICE
    like: tuple[str, ...] = ()
    """For "first": operand names of which the first present one counts."""
    placed: bool = False
    """True if the call takes the memory config of its result."""
    shards: Callable[[CatalogueOp, int], tuple[MemoryLayout, Shards]] | None = None
    """Returns the memory layout and shards of the result with that index."""
    stored: bool = False
    """True if the result has data type and layout of the serialized tensor: those of the first
    operand, or without one those of its type.
    """


ComputeRow = Callable[[Callable[[str], Any]], str]
"""Selects a row of `COMPUTE_DEFAULTS` from the attributes of a call, given by a getter."""


@dataclass(frozen=True)
class TTNNDefinition(Definition):
    """A call of the ttnn library."""

    result_rules: tuple[ResultRule, ...] = (ResultRule(),)
    """One rule per result; the last one applies to all further results."""
    cpp: CppEmission | None = None
    function: str = ""
    """Name of the library function where it differs from the op's."""
    may_alias: bool = False
    """True if the result may share its buffer with the first operand.

    Calls that always do, because they change nothing, are not emitted.
    """
    compute: str | ComputeRow | None = None
    """Row of `COMPUTE_DEFAULTS` with the default compute config of a matrix engine op."""
    pure: bool = True
    """True if equal calls give equal results: they can be merged, hoisted or dropped."""
    flops: FlopRule = one_per_element
    """Rule that counts the floating-point operations of the op."""
    vector_cycles: int = VECTOR_CYCLES
    """Vector engine cycles of an elementwise op for 32 elements.

    Measured with one-tile calls on devices (tests/cost/measured.tsv), else estimated from the
    length of the kernel.
    """
    traits: Trait = Trait.NONE
    call_kind: CallKind = CallKind.ELEMENTWISE
    block_floats: tuple[str, ...] = ()
    """Operands that may be block floats where activations are, and with them the results."""

    def compute_row(self, attribute_of: Callable[[str], Any]) -> str | None:
        """Returns the row of `COMPUTE_DEFAULTS` for a call with these attributes, if any."""
        return self.compute(attribute_of) if callable(self.compute) else self.compute

    @property
    def computes(self) -> bool:
        """True if the op computes with elements rather than moving or creating them."""
        return self.flops is not no_flops

    @property
    def draws(self) -> bool:
        """True if the op draws random numbers rather than reading a file of the host."""
        return not self.pure and self.results != 0 and Trait.USES_HOST not in self.traits

    def result_rule(self, index: int) -> ResultRule:
        """Returns the rule of the result with that index."""
        return self.result_rules[min(index, len(self.result_rules) - 1)]


TTIR: dict[str, TTIRDefinition] = {}
"""All TTIR ops by short name."""
TTNN: dict[str, TTNNDefinition] = {}
"""All TTNN ops by short name."""

D = TypeVar("D", bound=Definition)


def traits_of(definition: Definition) -> Trait:
    """Returns the traits of an op."""
    known = isinstance(definition, TTIRDefinition | TTNNDefinition)
    return definition.traits if known else Trait.NONE


def library_definition(op: CatalogueOp) -> Definition:
    """Returns the TTNN definition of a TTIR op's name, or else the op's own."""
    return TTNN.get(op.definition.short_name, op.definition)


def has_trait(op: Operation, trait: Trait) -> bool:
    """True if an op has a trait; False for an op outside the catalogue."""
    definition = getattr(op, "definition", None)
    return definition is not None and trait in traits_of(definition)


def works_between_chips(op: Operation) -> bool:
    """True if the result of an op on one device depends on other devices."""
    definition = getattr(op, "definition", None)
    return definition is not None and definition.chips is not None


def call_has_trait(name: str, trait: Trait) -> bool:
    """True if the TTNN op of that short name has a trait; False if there is none."""
    definition = TTNN.get(name)
    return definition is not None and trait in definition.traits


def takes_two_tensors(name: str) -> bool:
    """True if the TTNN op of that short name has two operands."""
    definition = TTNN.get(name)
    return definition is not None and len(definition.operands) == 2


def call_kind(name: str) -> CallKind:
    """Returns the call kind of a TTNN op by its short name."""
    definition = TTNN.get(name)
    return CallKind.ELEMENTWISE if definition is None else definition.call_kind


def vector_cycles(name: str) -> int:
    """Returns the vector engine cycles of a TTNN op by its short name."""
    definition = TTNN.get(name)
    return VECTOR_CYCLES if definition is None else definition.vector_cycles


def function_of(name: str) -> str:
    """Returns the library function's name of a TTNN op by its short name."""
    definition = TTNN.get(name)
    return name if definition is None else definition.function or name


def overwrites(name: str) -> bool:
    """True if the TTNN op of that short name writes an operand in place."""
    definition = TTNN.get(name)
    return definition is not None and definition.in_place is not None


def with_trait(trait: Trait) -> list[str]:
    """Returns the names of all TTIR ops that have a trait."""
    import ttcodegen.ops as catalogue

    catalogue.load()
    return [definition.name for definition in TTIR.values() if trait in definition.traits]


def register(definition: D) -> D:
    """Adds an op to the catalogue; raises ValueError if the name is taken."""
    table: dict[str, Any] = TTIR if isinstance(definition, TTIRDefinition) else TTNN
    if definition.short_name in table:
        raise ValueError(f"{definition.name} is in the catalogue twice")
    table[definition.short_name] = definition
    return definition
