"""The base of every op whose definition stands in the catalogue."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import DenseArrayBase, TensorType
from xdsl.ir import Attribute, Operation, OpTraits, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.datatypes import shape_of
from ttcodegen.ops.definition import REQUIRED, Definition


class CatalogueOp(Operation):
    """An op of the `ttir` or `ttnn` dialect; what it means is in its `definition`."""

    traits = OpTraits(tuple)
    definition: ClassVar[Definition]
    source_offset: int = -1
    """Where the op starts in the text it was read from, -1 for an op that a pass made."""

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
        """How many operands belong to each operand of the definition, in order.

        Raises VerifyException when the operands do not fit the definition.
        """
        return self.definition.segments(len(self.operands), self._explicit_segments())

    def _explicit_segments(self) -> list[int] | None:
        sizes = self.properties.get("operandSegmentSizes") or self.attributes.get(
            "operandSegmentSizes"
        )
        return [int(n) for n in sizes.iter_values()] if isinstance(sizes, DenseArrayBase) else None

    def operand_groups(self) -> dict[str, list[SSAValue]]:
        """The operands by the names of the definition; an absent optional is an empty list."""
        groups: dict[str, list[SSAValue]] = {}
        start = 0
        operands = tuple(self.operands)
        for spec, size in zip(self.definition.operands, self.segments(), strict=True):
            groups[spec.name] = list(operands[start : start + size])
            start += size
        return groups

    def optional_operand(self, name: str) -> SSAValue | None:
        """The operand of that name, None if it is absent."""
        group = self.operand_groups()[name]
        return group[0] if group else None

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
        assert isinstance(type_, TensorType)
        return cast("TensorType[Attribute]", type_)

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The logical shape of the only or first result."""
        return self.result_type.get_shape()

    def verify_(self) -> None:
        """Checks operands, attributes, types and shapes against the definition."""
        self.definition.verify_op(self)
