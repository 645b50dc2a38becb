"""Op definitions of the catalogue, and ops of these definitions."""

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
    """Sentinel for an attribute without a default."""

    REQUIRED = 0


REQUIRED = Required.REQUIRED


@dataclass(frozen=True)
class OperandSpec:
    """An operand of an op: name, count, and requirements of a TTNN op."""

    name: str
    count: Literal["one", "optional", "variadic"] = "one"
    layout: Layout | None = Layout.TILE
    """Required page layout; None for any."""
    memory: Memory | None = Memory.DEVICE
    """Required memory; None for any."""
    prepared: Callable[[CatalogueOp], bool] | None = None
    """Returns whether an op has the operand in a form prepared by the library, in tiles on the
    device.

    None if there is no such form.
    """
    data_types: tuple[DataType, ...] | None = None
    """Supported data types, the preferred one first; None for all."""
    shards: Callable[[CatalogueOp], Shards] | None = None
    """Returns the required sharding of the tensor's rows; None if none is required."""
    domain: tuple[float, float] | None = None
    """Range of drawn inputs in which the op is well conditioned."""
    input_kind: Literal[
        "activation", "weight", "index", "mask", "attention_mask", "variance", "expert_mapping"
    ] = "activation"
    """Kind of drawn values for arguments that feed the operand.

    A mask holds 0 and 1; an attention mask, which is added to scores, 0 and large negative numbers;
    a mapping (..., experts, devices) a one for the device of each expert.
    """
    is_own: bool = False
    """True for a trailing operand that the op of tt-mlir lacks: if absent, segment sizes omit
    it."""
    fan_in: Callable[[CatalogueOp], int] | None = None
    """Returns the number of products with a weight that one result element sums."""
    places: Callable[[CatalogueOp], int] | None = None
    """Returns the number of valid values of an index, from 0."""


@dataclass(frozen=True, eq=False)
class AttributeSpec:
    """An attribute of an op. `default` is a Python value, or REQUIRED if there is none.

    Specs shared by several ops are one object, compared by identity.
    """

    name: str
    kind: AttributeKind[Any]
    default: Any = REQUIRED


def attribute(name: str, kind: AttributeKind[Any], default: Any = REQUIRED) -> AttributeSpec:
    """Shorthand for the tables of the catalogue."""
    return AttributeSpec(name, kind, default)


def operand(name: str, **demands: Any) -> OperandSpec:
    """Returns the spec of an operand that occurs once."""
    return OperandSpec(name, **demands)


def optional(name: str, **demands: Any) -> OperandSpec:
    """Returns the spec of an operand that may be absent."""
    return OperandSpec(name, "optional", **demands)


def variadic(name: str, **demands: Any) -> OperandSpec:
    """Returns the spec of an operand that occurs any number of times."""
    return OperandSpec(name, "variadic", **demands)


@dataclass(frozen=True)
class ResultInfo:
    """Shape and numpy dtype name that numpy semantics have to produce."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Call:
    """Evaluation of an op in numpy.

    Floats are float32 (float64 if the source has it), already rounded to the dtype of their tensor;
    integers and booleans have their own dtype. The interpreter rounds the result.
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
        """Returns an operand by name."""
        return self.operands[name][0]

    def optional(self, name: str) -> np.ndarray | None:
        """Returns an operand by name, or None if absent."""
        group = self.operands[name]
        return group[0] if group else None

    @property
    def inputs(self) -> list[np.ndarray]:
        """Returns all operands in order."""
        return [array for group in self.operands.values() for array in group]


NumpyMeaning = Callable[[Call], "np.ndarray | Sequence[np.ndarray]"]
"""Returns the only result, or all results; an empty sequence for ops that only write in place."""

ChipsMeaning = Callable[[Sequence[Call]], "Sequence[np.ndarray | Sequence[np.ndarray]]"]
"""Returns the result, or results, of each device from the calls of all devices of a mesh.

Devices are in row-major order. Equal results may share an array.
"""

Verifier = Callable[["CatalogueOp"], None]


@dataclass(frozen=True)
class Definition:
    """Base class of TTIR and TTNN op definitions."""

    name: str
    operands: tuple[OperandSpec, ...] = ()
    attributes: tuple[AttributeSpec, ...] = ()
    results: int = 1
    """Number of results; -1 for any number."""
    verify: Verifier | None = None
    numpy: NumpyMeaning | None = None
    chips: ChipsMeaning | None = None
    """Semantics of a collective on all devices of a mesh; None for ops that compute per device.

    The attribute `mesh_shape` has the size of the mesh.
    """
    in_place: str | None = None
    """Operand that the op overwrites."""
    rearranges: bool = False
    """True if the result is a rearrangement of the operand."""
    nouns: tuple[str, ...] = ()
    """Nouns for results without a name; empty for the name of the op."""
    participle: str = ""
    """Participle for names of values derived from a named operand: `scaled`."""

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
        """Optional and variadic operands."""
        return [spec for spec in self.operands if spec.count != "one"]

    @cached_property
    def _destinations(self) -> Sequence[str]:
        return [spec.name for spec in self.operands if spec.name in ("output", "outputs")]

    @property
    def needs_segments(self) -> bool:
        """Returns whether segment sizes are needed to assign operands."""
        return len(self._flexible) > 1

    def attribute(self, name: str) -> AttributeSpec:
        """Returns an attribute by name; raises KeyError if there is none."""
        spec = self._attributes_by_name.get(name)
        if spec is None:
            raise KeyError(f"{self.name} has no attribute {name}")
        return spec

    def segments(self, count: int, explicit: Sequence[int] | None = None) -> list[int]:
        """Divides `count` operands among the operand specs.

        Explicit sizes of an older definition, with other operands, are ignored. Raises
        VerifyException if the operands do not fit.
        """
        if explicit is not None and sum(explicit) != count:
            listed = ", ".join(map(str, explicit))
            raise VerifyException(
                f"{self.name}: operandSegmentSizes are {listed}, but there are {count} operands"
            )
        if explicit is not None and self.has_segments(explicit):
            explicit = [*explicit, *[0] * (len(self.operands) - len(explicit))]
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

    def written_segments(self, sizes: Sequence[int]) -> Sequence[int]:
        """Returns the sizes to print, without absent trailing operands that tt-mlir lacks."""
        count = len(sizes)
        while count and not sizes[count - 1] and self.operands[count - 1].is_own:
            count -= 1
        return sizes[:count]

    def has_segments(self, sizes: Sequence[int]) -> bool:
        """Returns whether there is a size for each operand, except absent trailing ones that
        tt-mlir lacks."""
        return len(sizes) == len(self.operands) or (
            len(sizes) < len(self.operands) and self.operands[len(sizes)].is_own
        )

    def places(
        self, count: int, explicit: tuple[int, ...] | None = None
    ) -> Mapping[str, tuple[int, int]]:
        """Returns offset and number of values of each operand by name, among `count` values.

        Cached: called for each operand that a pass reads, with few different arguments.
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
        """Raises VerifyException with what was expected and what was found."""
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
        if self._destinations:
            self._verify_destinations(op)
        if self.verify is not None:
            self.verify(op)

    def _verify_destinations(self, op: CatalogueOp) -> None:
        """Verifies that destination operands have the shapes of the results."""
        groups = op.operand_groups()
        given = [value for name in self._destinations for value in groups[name]]
        for value, result in zip(given, op.results, strict=False):
            expected, found = (shape_of(each.type) for each in (result, value))
            if expected != found:
                raise VerifyException(
                    f"{self.name}: expected a destination of the shape of the result, {expected}, "
                    f"found {found}"
                )


_SIZES: Mapping[str, Callable[[int], bool]] = {
    "one": lambda size: size == 1,
    "optional": lambda size: 0 <= size <= 1,
    "variadic": lambda size: size >= 0,
}
"""Possible numbers of values of an operand, by its count."""
_SEGMENT_SIZES = "operandSegmentSizes"


def operation_name(op: Operation) -> str:
    """Returns the full name of an operation, also of an unregistered one."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


class CatalogueOp(Operation):
    """An op of the `ttir` or `ttnn` dialect; its semantics are in its `definition`."""

    traits = OpTraits(tuple)
    definition: ClassVar[Definition]
    source_offset: int = -1
    """Offset of the op in the source text; -1 for ops created by passes."""

    def parameter(self, name: str) -> Any:
        """Returns the Python value of an attribute, or its default.

        Raises VerifyException if the attribute is required and absent, or of another kind.
        """
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
        """Returns all attributes of the definition as Python values."""
        return {spec.name: self.parameter(spec.name) for spec in self.definition.attributes}

    def segments(self) -> list[int]:
        """Returns the number of values per operand of the definition, in order.

        Raises VerifyException if the operands do not fit the definition.
        """
        return [size for _, size in self._places().values()]

    def _places(self) -> Mapping[str, tuple[int, int]]:
        """Returns offset and number of values of each operand of the definition."""
        sizes = self.properties.get(_SEGMENT_SIZES) or self.attributes.get(_SEGMENT_SIZES)
        count = len(self._operands)
        match sizes:
            case DenseArrayBase():
                return self.definition.places(count, tuple([int(n) for n in elements_of(sizes)]))
            case _:
                return self.definition.places(count)

    def operand_groups(self) -> dict[str, list[SSAValue]]:
        """Returns the operands by the names of the definition; an absent optional is an empty
        list."""
        operands = list(self._operands)
        return {
            name: operands[start : start + size] for name, (start, size) in self._places().items()
        }

    def optional_operand(self, name: str) -> SSAValue | None:
        """Returns an operand by name, or None if it is absent."""
        place = self._places().get(name)
        if place is None:
            raise KeyError(f"{self.name} has no operand {name}")
        start, size = place
        return self._operands[start] if size else None

    def operand(self, name: str) -> SSAValue:
        """Returns an operand by name; raises VerifyException if it is absent."""
        value = self.optional_operand(name)
        if value is None:
            raise VerifyException(f"{self.name} needs the operand '{name}'")
        return value

    def shape(self, name: str) -> tuple[int, ...]:
        """Returns the logical shape of an operand by name."""
        return shape_of(self.operand(name).type)

    @property
    def result_type(self) -> TensorType[Attribute]:
        """Returns the tensor type of the first result."""
        type_ = self.results[0].type
        assert isinstance(type_, TensorType)  # Ensured by the verifier.
        return cast("TensorType[Attribute]", type_)

    @property
    def result_shape(self) -> tuple[int, ...]:
        """Returns the logical shape of the first result."""
        return shape_of(self.results[0].type)

    def verify_(self) -> None:
        """Verifies operands, attributes, types and shapes against the definition."""
        self.definition.verify_op(self)
