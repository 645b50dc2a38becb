"""Definitions of ops and the registry of all of them.

An op family is in one file of this package. It registers TTIR ops (what the input says:
verifier, numpy meaning, decomposition or lowering) and TTNN ops (what the library offers: layouts
it takes and gives, numpy meaning, C++ call). Dialects, conversions, the flatbuffer, its interpreter
and the table of the documentation are derived from here.
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
"""Makes ops that replace the given one; the builder maps operands that were lowered before."""

PrimitiveLowering = Callable[[OpBuilder, CatalogueOp], SSAValue | Sequence[SSAValue] | None]
"""As a lowering, but to TTIR ops; None where the op can stay as it is."""


@dataclass(frozen=True)
class TTIRDefinition(Definition):
    """An op of the input dialect. One of `decompose`, `lower`, `refusal` is set; both of the
    first two if only some forms of the op decompose."""

    decompose: PrimitiveLowering | None = None
    """Gives TTIR ops; None for a form of the op that `lower` takes."""
    lower: Lowering | None = None
    """Gives TTNN ops."""
    refusal: str | None = None
    """Reason why no target supports the op, worded for the user."""
    tile: TileLowering | None = None
    """Of an elementwise op: what it is on tiles in the registers of a core."""
    primitives: PrimitiveLowering | None = None
    """TTIR ops that device kernels are made for, where the op itself is none of them."""
    stays: Callable[[CatalogueOp], bool] | None = None
    """True if a device program computes the op as it is, without `primitives`."""
    program: PrimitiveLowering | None = None
    """As `primitives`, but last of all: what other passes would take for another spelling of the
    op."""
    cpu: CpuLowering | None = None
    """CPU lowering of the op, for computations outside of device programs."""
    refused_form: Callable[[CatalogueOp], str | None] | None = None
    """Returns why no target supports this form of the op, or None if one does."""
    counts: bool = False
    """The op computes numbers, of booleans as well: a boolean result says where they are not 0."""
    matrix_engine: bool = False
    """The op runs on the matrix engine of a core, others on its vector engine."""
    moves: bool = False
    """The result holds elements of the first operand (of all, if that is a variadic one), and
    perhaps a constant or what becomes of them in another type."""
    between_chips: ChipMovementRule | None = None
    """Of an op that only moves elements between chips: what it moves."""
    needed_chips: NeededChipsRule | None = None
    """Of an op between chips: how many it needs, for modules that name no mesh."""
    draws: bool = False
    """The op draws random numbers, so that two equal ops are not one."""
    of_nothing: float | None = None
    """The elements of the result where an operand without elements leaves nothing to add, multiply
    or compare; None if the op has no such value."""
    traits: Trait = Trait.NONE
    on_booleans: str | None = None
    """The op of TTIR that this one is if operands and result are booleans."""
    dimensions: DimensionRule | None = None
    """Dimension labels for sharding the op; None if it needs whole tensors."""

    @property
    def fills(self) -> bool:
        """True if the attributes alone say what the elements are."""
        return not self.operands and not self.draws


@dataclass(frozen=True)
class ResultRule:
    """Data type and layout of a library result before any conversion.

    `data_type`: "first" for that of the first operand, "attribute" if the call takes an output data
    type (attribute `dtype` of the op), "declared" if it follows the result type, or a fixed one.
    `layout`: None for that of the first operand.
    """

    data_type: DataType | Literal["first", "attribute", "declared"] = "first"
    layout: Layout | None = Layout.TILE
    memory: Memory = Memory.DEVICE
    like: tuple[str, ...] = ()
    """For "first": the operands of which the first that is present counts."""
    placed: bool = False
    """True if the call takes the memory configuration of its result."""
    shards: Callable[[CatalogueOp, int], tuple[MemoryLayout, Shards]] | None = None
    """Returns the shards of the result with that index, or None."""
    stored: bool = False
    """True if the result is what the first operand was when it was written to a file, on the side
    that its type says; without an operand, what its type says."""


ComputeRow = Callable[[Callable[[str], Any]], str]
"""Picks a row of `COMPUTE_DEFAULTS` by the attributes of a call, which it is given a way to ask
for."""


@dataclass(frozen=True)
class TTNNDefinition(Definition):
    """A call of the ttnn library."""

    result_rules: tuple[ResultRule, ...] = (ResultRule(),)
    """One per result; the last one applies to all that follow."""
    cpp: CppEmission | None = None
    function: str = ""
    """Name of the library function where it differs from the op's."""
    may_alias: bool = False
    """The result may share its buffer with the first operand. Calls that always do, because they
    change nothing, are not made at all."""
    compute: str | ComputeRow | None = None
    """Row of `COMPUTE_DEFAULTS` with the default compute config of a matrix engine op."""
    pure: bool = True
    """Equal calls give equal results, so that they can be merged, hoisted or dropped."""
    flops: FlopRule = one_per_element
    """Rule that counts the floating-point operations of the op."""
    vector_cycles: int = VECTOR_CYCLES
    """Of an elementwise op: cycles of the vector engine for 32 elements (calls of one tile on
    cards, see tests/cost/measured.tsv; by the length of the kernel where there are none)."""
    traits: Trait = Trait.NONE
    call_kind: CallKind = CallKind.ELEMENTWISE

    def compute_row(self, attribute_of: Callable[[str], Any]) -> str | None:
        """The row of `COMPUTE_DEFAULTS` for a call with these attributes, if there is any."""
        return self.compute(attribute_of) if callable(self.compute) else self.compute

    @property
    def computes(self) -> bool:
        """True if the op computes with elements, rather than to move or to make them."""
        return self.flops is not no_flops

    @property
    def draws(self) -> bool:
        """True if the op draws random numbers, rather than reading a file of the host."""
        return not self.pure and self.results != 0 and Trait.USES_HOST not in self.traits

    def result_rule(self, index: int) -> ResultRule:
        """The rule of the result of that index."""
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
    """True if something is true of an op; False for an op that is not in the catalogue."""
    definition = getattr(op, "definition", None)
    return definition is not None and trait in traits_of(definition)


def works_between_chips(op: Operation) -> bool:
    """True if an op gives each chip of a mesh what depends on other chips."""
    definition = getattr(op, "definition", None)
    return definition is not None and definition.chips is not None


def call_has_trait(name: str, trait: Trait) -> bool:
    """True if something is true of the TTNN op of that short name; False if there is none."""
    definition = TTNN.get(name)
    return definition is not None and trait in definition.traits


def takes_two_tensors(name: str) -> bool:
    """True if the TTNN op of that short name is of two tensors, or of one and a number."""
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
    """True if the TTNN op of that short name overwrites an operand; False if there is none."""
    definition = TTNN.get(name)
    return definition is not None and definition.in_place is not None


def with_trait(trait: Trait) -> list[str]:
    """The names of all TTIR ops that have a trait."""
    import ttcodegen.ops as catalogue

    catalogue.load()
    return [definition.name for definition in TTIR.values() if trait in definition.traits]


def register(definition: D) -> D:
    """Adds an op to the catalogue; a name is registered once."""
    table: dict[str, Any] = TTIR if isinstance(definition, TTIRDefinition) else TTNN
    if definition.short_name in table:
        raise ValueError(f"{definition.name} is in the catalogue twice")
    table[definition.short_name] = definition
    return definition
