"""An op and its definition: what every op of the catalogue has, whatever its dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from xdsl.dialects.builtin import DenseArrayBase, TensorType, UnregisteredOp
from xdsl.ir import Attribute, Operation, OpTraits, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import DataType, shape_of
from ttcodegen.dialects.core.fast_methods import replace_methods
from ttcodegen.dialects.operations.attribute_kinds import AttributeKind, elements_of
from ttcodegen.dialects.operations.compute_config import Arithmetic
from ttcodegen.dialects.ttcore.shards import Layout, Memory

if TYPE_CHECKING:
    import numpy as np

    from ttcodegen.dialects.ttcore.shards import Shards


replace_methods()


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
    prepared: Callable[[CatalogueOp], bool] | None = None
    """True if an op has what the library has prepared itself, in tiles on the device; None if there
    is no such form of the operand."""
    data_types: tuple[DataType, ...] | None = None
    """The data types that the library takes, the preferred one first; None takes all."""
    shards: Callable[[CatalogueOp], Shards] | None = None
    """Sharding of the tensor's rows that the library needs; None if it needs none."""
    domain: tuple[float, float] | None = None
    """The range of drawn inputs in which the op is well conditioned."""
    input_kind: Literal[
        "activation", "weight", "index", "mask", "attention_mask", "variance", "expert_mapping"
    ] = "activation"
    """Kind of random values for an argument that feeds this operand: a mask holds 0 and 1, an
    attention mask, which is added to scores, 0 and large negative numbers; a mapping (..., experts,
    devices) a one for the device of each expert."""
    fan_in: Callable[[CatalogueOp], int] | None = None
    """For a weight: how many products with its elements one element of the result sums up."""
    places: Callable[[CatalogueOp], int] | None = None
    """For an index: how many places there are that it may name, counted from 0."""


@dataclass(frozen=True, eq=False)
class AttributeSpec:
    """One attribute of an op. `default` is a Python value; REQUIRED if there is none.

    One that several ops share is one object, and known by that.
    """

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
    their tensor; integers and booleans in their own dtype. The interpreter rounds the result.
    """

    name: str
    operands: Mapping[str, Sequence[np.ndarray]]
    attributes: Mapping[str, Any]
    results: Sequence[ResultInfo]
    operand_dtypes: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    arithmetic: Arithmetic | None = None
    """Arithmetic of the op on the device; None for as exact as the dtypes allow."""

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

ChipsMeaning = Callable[[Sequence[Call]], "Sequence[np.ndarray | Sequence[np.ndarray]]"]
"""Gives the result of each chip, or all of them, from the calls of all chips of the mesh, in the
order in which they are counted: row by row. Chips that hold the same may share an array."""

Verifier = Callable[["CatalogueOp"], None]


@dataclass(frozen=True)
class Definition:
    """Base of TTIR and TTNN op definitions."""

    name: str
    operands: tuple[OperandSpec, ...] = ()
    attributes: tuple[AttributeSpec, ...] = ()
    results: int = 1
    """Number of results; -1 for any number."""
    verify: Verifier | None = None
    numpy: NumpyMeaning | None = None
    chips: ChipsMeaning | None = None
    """Semantics on a mesh of several devices, if it is a collective: other ops compute per device.
    The attribute `mesh_shape` says of how many."""
    in_place: str | None = None
    """The operand that the op overwrites."""
    rearranges: bool = False
    """The result is the operand, arranged in another way."""
    nouns: tuple[str, ...] = ()
    """Nouns for results without a name; empty for the name of the op."""
    participle: str = ""
    """Participle for a value beside the operand it was derived from: `scaled`."""

    @cached_property
    def dialect(self) -> str:
        return self.name.partition(".")[0]

    @cached_property
    def short_name(self) -> str:
        return self.name.partition(".")[2]

    @cached_property
    def _attributes_by_name(self) -> Mapping[str, AttributeSpec]:
        return {spec.name: spec for spec in self.attributes}

    @cached_property
    def _flexible(self) -> Sequence[OperandSpec]:
        """The operands that may occur more or less often than once."""
        return [spec for spec in self.operands if spec.count != "one"]

    @property
    def needs_segments(self) -> bool:
        """True if the number of operands does not determine what each of them is."""
        return len(self._flexible) > 1

    def attribute(self, name: str) -> AttributeSpec:
        """Raises KeyError when the op has no attribute of that name."""
        spec = self._attributes_by_name.get(name)
        if spec is None:
            raise KeyError(f"{self.name} has no attribute {name}")
        return spec

    def segments(self, count: int, explicit: Sequence[int] | None = None) -> list[int]:
        """Divides `count` operands among the operands of the definition.

        Sizes that belong to an older definition, with other operands, say nothing.
        """
        if explicit is not None and sum(explicit) != count:
            listed = ", ".join(map(str, explicit))
            raise VerifyException(
                f"{self.name}: operandSegmentSizes are {listed}, but there are {count} operands"
            )
        if explicit is not None and len(explicit) == len(self.operands):
            for spec, size in zip(self.operands, explicit, strict=True):
                if not _SIZES[spec.count](size):
                    raise VerifyException(
                        f"{self.name}: operandSegmentSizes gives {size} operands for the "
                        f"{'operands' if spec.count == 'variadic' else 'operand'} '{spec.name}'"
                    )
            return list(explicit)
        flexible = self._flexible
        extra = count - (len(self.operands) - len(flexible))
        if extra == 0 and not flexible:
            return [1] * count
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

    def places(
        self, count: int, explicit: tuple[int, ...] | None = None
    ) -> Mapping[str, tuple[int, int]]:
        """Offsets of each operand among `count`, and their numbers, by name.

        Called for each operand that a pass looks at; there are few answers.
        """
        found = self._known_places.get((count, explicit))
        if found is None:
            sizes = self.segments(count, explicit)
            starts = accumulate(sizes, initial=0)
            found = {
                spec.name: (start, size)
                for spec, start, size in zip(self.operands, starts, sizes, strict=False)
            }
            self._known_places[count, explicit] = found
        return found

    @cached_property
    def _known_places(
        self,
    ) -> dict[tuple[int, tuple[int, ...] | None], Mapping[str, tuple[int, int]]]:
        return {}

    def verify_op(self, op: CatalogueOp) -> None:
        """Raises VerifyException that names what was expected and what was found."""
        op.segments()
        for value in (*op.operands, *op.results):
            type_ = value.type
            if not isinstance(type_, TensorType):
                raise VerifyException(f"{self.name} works on tensors, found {type_}")
            if not type_.has_static_shape():
                raise VerifyException(f"{self.name} works on tensors of known sizes, found {type_}")
        for spec in self.attributes:
            op.parameter(spec.name)
        if self.results >= 0 and len(op.results) != self.results:
            raise VerifyException(
                f"{self.name} has {self.results} results, found {len(op.results)}"
            )
        if op.regions or op.successors:
            raise VerifyException(f"{self.name} has no regions and no successors")
        if self.verify is not None:
            self.verify(op)


_SIZES: Mapping[str, Callable[[int], bool]] = {
    "one": lambda size: size == 1,
    "optional": lambda size: 0 <= size <= 1,
    "variadic": lambda size: size >= 0,
}
"""Possible numbers of values of an operand, by its count."""
_SEGMENT_SIZES = "operandSegmentSizes"


def operation_name(op: Operation) -> str:
    """The full name of an operation, also of one that is not registered."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


class CatalogueOp(Operation):
    """An op of the `ttir` or `ttnn` dialect; what it means is in its `definition`."""

    traits = OpTraits(tuple)
    definition: ClassVar[Definition]
    source_offset: int = -1
    """Source offset of the op, -1 for an op that a pass made."""

    def parameter(self, name: str) -> Any:
        """The Python value of an attribute, its default if absent; raises VerifyException if the
        attribute is required and absent, or not of the kind that the definition names."""
        spec = self.definition.attribute(name)
        attribute = self.properties.get(name)
        if attribute is None:
            attribute = self.attributes.get(name)
        if attribute is None:
            if spec.default is REQUIRED:
                raise VerifyException(f"{self.name} needs the attribute '{name}'")
            return spec.default
        try:
            return spec.kind.decode(attribute)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise VerifyException(
                f"{self.name}: attribute '{name}' should be {spec.kind.expected}, found {attribute}"
            ) from error

    def parameters(self) -> dict[str, Any]:
        """All attributes that the definition names, as Python values."""
        return {spec.name: self.parameter(spec.name) for spec in self.definition.attributes}

    def segments(self) -> list[int]:
        """Number of values per operand of the definition, in order.

        Raises VerifyException when the operands do not fit the definition.
        """
        return [size for _, size in self._places().values()]

    def _places(self) -> Mapping[str, tuple[int, int]]:
        """Offset of each operand of the definition, and its number of values."""
        sizes = self.properties.get(_SEGMENT_SIZES) or self.attributes.get(_SEGMENT_SIZES)
        count = len(self._operands)
        match sizes:
            case DenseArrayBase():
                return self.definition.places(count, tuple([int(n) for n in elements_of(sizes)]))
            case _:
                return self.definition.places(count)

    def operand_groups(self) -> dict[str, list[SSAValue]]:
        """The operands by the names of the definition; an absent optional is an empty list."""
        operands = list(self._operands)
        return {
            name: operands[start : start + size] for name, (start, size) in self._places().items()
        }

    def optional_operand(self, name: str) -> SSAValue | None:
        """The operand of that name, None if it is absent."""
        place = self._places().get(name)
        if place is None:
            raise KeyError(f"{self.name} has no operand {name}")
        start, size = place
        return self._operands[start] if size else None

    def operand(self, name: str) -> SSAValue:
        """The operand of that name; raises VerifyException if it is absent."""
        value = self.optional_operand(name)
        if value is None:
            raise VerifyException(f"{self.name} needs the operand '{name}'")
        return value

    def shape(self, name: str) -> tuple[int, ...]:
        """The logical shape of the operand of that name."""
        return shape_of(self.operand(name).type)

    @property
    def result_type(self) -> TensorType[Attribute]:
        """The tensor type of the only or first result."""
        type_ = self.results[0].type
        assert isinstance(type_, TensorType)  # The verifier sees to it.
        return cast("TensorType[Attribute]", type_)

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The logical shape of the only or first result."""
        return shape_of(self.results[0].type)

    def verify_(self) -> None:
        """Checks operands, attributes, types and shapes against the definition."""
        self.definition.verify_op(self)
