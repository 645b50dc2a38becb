"""Host loops around calls of a function."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DenseArrayBase,
    FlatSymbolRefAttr,
    IntegerAttr,
    SymbolRefAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class WhileLoopOp(IRDLOperation):
    """A loop of calls of a function: `ttcore.while_loop(@body, going, [carried..., captured...])`.

    The function takes the carried and the captured tensors, and returns the carried tensors of the
    next iteration, preceded by its condition unless the trip count is given. `going` is the
    condition of the first iteration. Results are the carried tensors after the last one.
    """

    name = "ttcore.while_loop"
    callee = prop_def(FlatSymbolRefAttr)
    trip_count = opt_prop_def(IntegerAttr)
    going = opt_operand_def(TensorType)
    inputs = var_operand_def()
    outputs = var_result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        callee: str,
        going: SSAValue | None,
        carried: Sequence[SSAValue],
        captured: Sequence[SSAValue],
        trip_count: int | None = None,
        result_types: Sequence[Attribute] | None = None,
    ) -> None:
        types = [value.type for value in carried] if result_types is None else result_types
        count = None if trip_count is None else IntegerAttr(trip_count, i64)
        super().__init__(
            operands=[going, [*carried, *captured]],
            result_types=[types],
            properties={"callee": SymbolRefAttr(callee), "trip_count": count},
        )

    @property
    def trips(self) -> int | None:
        """Returns the trip count, or None if it is only known at run time."""
        return None if self.trip_count is None else self.trip_count.value.data

    @property
    def carried(self) -> Sequence[SSAValue]:
        """Returns the initial values of the carried tensors."""
        return self.inputs[: len(self.outputs)]

    @property
    def captured(self) -> Sequence[SSAValue]:
        """Returns the operands that are the same in all iterations."""
        return self.inputs[len(self.outputs) :]

    def capture(self, values: Sequence[SSAValue]) -> None:
        """Replaces the captured operands."""
        flags = [] if self.going is None else [self.going]
        self.operands = [*flags, *self.carried, *values]
        sizes = [len(flags), len(self.operands) - len(flags)]
        self.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, sizes)

    def verify_(self) -> None:
        if (self.going is None) == (self.trip_count is None):
            raise VerifyException(f"{self.name}: it needs a condition or a trip count, not both")
        if len(self.outputs) > len(self.inputs) or any(
            result.type != value.type
            for result, value in zip(self.outputs, self.inputs, strict=False)
        ):
            raise VerifyException(
                f"{self.name}: its first operands after the condition should have the types of its "
                "results"
            )
