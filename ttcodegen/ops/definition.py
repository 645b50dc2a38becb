"""What the catalogue says of an op, and the register of all ops.

An op family stands in one file of this package. It registers TTIR ops (what the input says:
verifier, numpy meaning, decomposition or lowering) and TTNN ops (what the library offers: layouts
it takes and gives, numpy meaning, C++ call). Dialects, conversions, the flatbuffer, its interpreter
and the table of the documentation are derived from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.datatypes import DataType
from ttcodegen.dialects.memory import Layout, Memory
from ttcodegen.ops.attribute_kinds import AttributeKind

if TYPE_CHECKING:
    import numpy as np
    from xdsl.ir import SSAValue

    from ttcodegen.conversions.cpp_calls import CppCalls
    from ttcodegen.conversions.op_builder import OpBuilder
    from ttcodegen.dialects.operation import CatalogueOp
    from ttcodegen.dialects.placement import Shards


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


class Required(Enum):
    """Marks an attribute without a default."""

    REQUIRED = 0


REQUIRED = Required.REQUIRED


@dataclass(frozen=True)
class OperandSpec:
    """One operand of an op: its name, how often it occurs, and what a TTNN op asks of it."""

    name: str
    count: Literal["one", "optional", "variadic"] = "one"
    layout: Layout | None = Layout.TILE
    """The page layout the library needs; None accepts either."""
    memory: Memory | None = Memory.DEVICE
    """None accepts either."""
    data_types: tuple[DataType, ...] | None = None
    """The data types that the library takes, the preferred one first; None takes all."""
    shards: Callable[[CatalogueOp], Shards] | None = None
    """How the library needs the rows of the tensor divided among cores; None if it does not."""
    domain: tuple[float, float] | None = None
    """Where drawn inputs should lie so that the op is well conditioned."""
    drawn_as: Literal["activation", "weight", "index", "mask", "attention_mask", "variance"] = (
        "activation"
    )
    """How values are drawn for an argument that feeds this operand: a mask holds 0 and 1, an
    attention mask, which is added to scores, 0 and large negative numbers."""
    fan_in: Callable[[CatalogueOp], int] | None = None
    """For a weight: how many products with its elements one element of the result sums up."""
    places: Callable[[CatalogueOp], int] | None = None
    """For an index: how many places there are that it may name, counted from 0."""


@dataclass(frozen=True)
class AttributeSpec:
    """One attribute of an op. `default` is a Python value; REQUIRED if there is none."""

    name: str
    kind: AttributeKind[Any]
    default: Any = REQUIRED


def attribute(name: str, kind: AttributeKind[Any], default: Any = REQUIRED) -> AttributeSpec:
    """Shorthand for the tables of the catalogue."""
    return AttributeSpec(name, kind, default)


def operand(name: str, **demands: Any) -> OperandSpec:
    """An operand that occurs once."""
    return OperandSpec(name, **demands)


def optional(name: str, **demands: Any) -> OperandSpec:
    """An operand that may be absent."""
    return OperandSpec(name, "optional", **demands)


def variadic(name: str, **demands: Any) -> OperandSpec:
    """An operand that occurs any number of times."""
    return OperandSpec(name, "variadic", **demands)


@dataclass(frozen=True)
class ResultInfo:
    """Shape and numpy dtype name of a result that a numpy meaning has to produce."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Call:
    """One execution of an op in numpy.

    Floats arrive as float32 (float64 where the source says so), already rounded to the dtype of
    their tensor; integers and booleans in their own dtype. Whoever runs the op rounds the result.
    """

    name: str
    operands: Mapping[str, Sequence[np.ndarray]]
    attributes: Mapping[str, Any]
    results: Sequence[ResultInfo]
    operand_dtypes: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    def __getitem__(self, attribute_name: str) -> Any:
        return self.attributes[attribute_name]

    def array(self, name: str) -> np.ndarray:
        """The operand of that name."""
        return self.operands[name][0]

    def optional(self, name: str) -> np.ndarray | None:
        """The operand of that name, None if absent."""
        group = self.operands[name]
        return group[0] if group else None

    @property
    def inputs(self) -> list[np.ndarray]:
        """All operands in order."""
        return [array for group in self.operands.values() for array in group]


NumpyMeaning = Callable[[Call], "np.ndarray | Sequence[np.ndarray]"]
"""Gives the only result, or all of them; an op without results returns an empty sequence after it
changed its operand in place."""

Verifier = Callable[["CatalogueOp"], None]
Lowering = Callable[["OpBuilder", "CatalogueOp"], "SSAValue | Sequence[SSAValue]"]
"""Makes ops that stand for the given one; the builder maps operands that were lowered before."""

CppEmission = Callable[["CppCalls", "CatalogueOp"], None]


@dataclass(frozen=True)
class Definition:
    """What TTIR and TTNN ops have in common."""

    name: str
    operands: tuple[OperandSpec, ...] = ()
    attributes: tuple[AttributeSpec, ...] = ()
    results: int = 1
    """How many results; -1 for any number."""
    verify: Verifier | None = None
    numpy: NumpyMeaning | None = None
    in_place: str | None = None
    """The operand that the op overwrites."""

    @property
    def dialect(self) -> str:
        return self.name.partition(".")[0]

    @property
    def short_name(self) -> str:
        return self.name.partition(".")[2]

    def attribute(self, name: str) -> AttributeSpec:
        """Raises KeyError when the op has no attribute of that name."""
        for spec in self.attributes:
            if spec.name == name:
                return spec
        raise KeyError(f"{self.name} has no attribute {name}")

    def segments(self, count: int, explicit: Sequence[int] | None = None) -> list[int]:
        """Divides `count` operands among the operands of the definition."""
        required = sum(spec.count == "one" for spec in self.operands)
        flexible = [spec for spec in self.operands if spec.count != "one"]
        if explicit is not None and len(explicit) == len(self.operands) and sum(explicit) == count:
            return list(explicit)
        extra = count - required
        variadics = any(spec.count == "variadic" for spec in flexible)
        if extra < 0 or (extra > len(flexible) and not variadics):
            wanted = " ".join(
                {"one": "", "optional": "optional ", "variadic": "any number of "}[spec.count]
                + f"'{spec.name}'"
                for spec in self.operands
            )
            raise VerifyException(f"{self.name} takes {wanted or 'no operands'}, found {count}")
        sizes: list[int] = []
        for index, spec in enumerate(self.operands):
            if spec.count == "one":
                sizes.append(1)
                continue
            rest = any(later.count != "one" for later in self.operands[index + 1 :])
            take = extra if spec.count == "variadic" and not rest else min(extra, 1)
            sizes.append(take)
            extra -= take
        return sizes

    def verify_op(self, op: CatalogueOp) -> None:
        """Raises VerifyException that names what was expected and what was found."""
        op.segments()
        for spec in self.attributes:
            op.parameter(spec.name)
        if self.results >= 0 and len(op.results) != self.results:
            raise VerifyException(
                f"{self.name} has {self.results} results, found {len(op.results)}"
            )
        if self.verify is not None:
            self.verify(op)


@dataclass(frozen=True)
class TTIRDefinition(Definition):
    """An op of the input dialect. Exactly one of `decompose`, `lower`, `refusal` is set."""

    decompose: Lowering | None = None
    """Gives TTIR ops."""
    lower: Lowering | None = None
    """Gives TTNN ops."""
    refusal: str | None = None
    """Why no target supports the op; the reader of the message is the user."""
    moves: bool = False
    """The result holds elements of the first operand (of all, if that is a variadic one), and
    perhaps a constant or what becomes of them in another type."""
    draws: bool = False
    """The op draws random numbers, so that two equal ops are not one."""


@dataclass(frozen=True)
class ResultRule:
    """What the library returns for an op, before anybody converts it.

    `data_type`: "first" for that of the first operand, "attribute" if the call takes an output data
    type (attribute `dtype` of the op), "declared" if it follows the result type, or a fixed one.
    `layout`: None for that of the first operand.
    """

    data_type: DataType | Literal["first", "attribute", "declared"] = "first"
    layout: Layout | None = Layout.TILE
    memory: Memory = Memory.DEVICE
    like: tuple[str, ...] = ()
    """For "first": the operands of which the first that is present counts."""


@dataclass(frozen=True)
class TTNNDefinition(Definition):
    """A call of the ttnn library."""

    result_rules: tuple[ResultRule, ...] = (ResultRule(),)
    """One per result; the last one stands for all that follow."""
    cpp: CppEmission | None = None
    may_alias: bool = False
    """The result may share its buffer with the first operand. Calls that always do, because they
    change nothing, are not made at all."""
    pure: bool = True
    """Equal calls give equal results, so that they can be merged, hoisted or dropped."""

    def result_rule(self, index: int) -> ResultRule:
        """The rule of the result of that index."""
        return self.result_rules[min(index, len(self.result_rules) - 1)]


TTIR: dict[str, TTIRDefinition] = {}
"""All TTIR ops by short name."""
TTNN: dict[str, TTNNDefinition] = {}
"""All TTNN ops by short name."""

D = TypeVar("D", bound=Definition)


def register(definition: D) -> D:
    """Adds an op to the catalogue; a name is registered once."""
    table: dict[str, Any] = TTIR if isinstance(definition, TTIRDefinition) else TTNN
    if definition.short_name in table:
        raise ValueError(f"{definition.name} is in the catalogue twice")
    table[definition.short_name] = definition
    return definition
