"""Op model: L1 footprint and run time of a single op with given layouts.

Counterpart of tt-mlir's op model interface, `getOpConstraints` and `getOpRuntime`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import TensorType

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.optimizer.call import LibraryCall, call_of
from ttcodegen.optimizer.candidates import CandidateGenerator
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.optimizer.optimize import placed_calls
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import ARCHITECTURES, DEFAULT_ARCHITECTURE


@dataclass(frozen=True)
class OpConstraints:
    """L1 constraints of a call; bytes are per core."""

    circular_buffers: int
    """Bytes of the circular buffers of its largest program."""
    tensors: int
    """Bytes of operands and results."""
    output_bytes: int
    """Bytes of results alone."""
    output: TensorPlacement | None
    """Placement of the first result; None without results."""


def ops_of(text: str) -> list[CatalogueOp]:
    """Returns the ops of a TTNN module in program order.

    Raises:
        CompileError: if the text is no module.
    """
    from ttcodegen.parsing import parse_module

    module = parse_module(Source("module", text))
    return [op for op in module.walk() if isinstance(op, CatalogueOp)]


def op_constraints(
    op: CatalogueOp,
    inputs: Sequence[TensorPlacement] | None = None,
    output: TensorPlacement | None = None,
    arch: str = DEFAULT_ARCHITECTURE,
) -> OpConstraints:
    """Returns the L1 constraints of an op with operands and a result of these placements.

    Placements default to those of the types.

    Raises:
        CompileError: if ttnn has no such call, if it exceeds L1, if the op has no layouts, or if
            there is no such architecture.
    """
    model = _model(arch)
    call = _call(op, model, inputs, output)
    cost = model.cost(call)
    if cost.l1_bytes > model.speed.usable_l1:
        raise CompileError(
            f"{op.name} takes {cost.l1_bytes} bytes of each L1, of which there are "
            f"{model.speed.usable_l1}",
            op,
        )
    made = sum(model.bank_bytes(placement) for placement in call.results)
    output = call.results[0] if call.results else None
    return OpConstraints(cost.circular_buffers, cost.tensors, made, output)


def op_runtime(
    op: CatalogueOp,
    inputs: Sequence[TensorPlacement] | None = None,
    output: TensorPlacement | None = None,
    arch: str = DEFAULT_ARCHITECTURE,
) -> float:
    """Returns the estimated nanoseconds of an op, launch overhead included.

    Raises:
        CompileError: if ttnn has no such call, if the op has no layouts, or if there is no such
            architecture.
    """
    model = _model(arch)
    return model.seconds(_call(op, model, inputs, output)) * 1e9


def _model(arch: str) -> CostModel:
    if arch not in ARCHITECTURES:
        raise CompileError(
            f"there is no architecture '{arch}'", remedy=f"there are {', '.join(ARCHITECTURES)}"
        )
    return CostModel(default_system(arch).chip)


def _call(
    op: CatalogueOp,
    model: CostModel,
    inputs: Sequence[TensorPlacement] | None,
    output: TensorPlacement | None,
) -> LibraryCall:
    """Returns the call of an op; for given placements, the fastest candidate with them."""
    call = call_of(op)
    tensors = [value for value in (*op.operands, *op.results) if isinstance(value.type, TensorType)]
    if len(tensors) != len(call.operands) + len(call.results):
        raise CompileError(f"{op.name} has tensors without a layout of TTNN", op)
    if inputs is None and output is None:
        return call
    if inputs is not None:
        if len(inputs) != len(call.operands):
            raise CompileError(f"{op.name} has {len(call.operands)} operands", op)
        call = replace(call, operands=tuple(inputs))
    generator = CandidateGenerator(model, True, placed_calls())
    found: list[LibraryCall] = []
    for candidate in generator.of(call, [True] * len(call.operands)):
        stays = candidate.operands == call.operands
        if stays and (output is None or candidate.results[:1] == (output,)):
            found.append(candidate.applied_to(call))
    if not found:
        raise CompileError(f"the library makes no such {op.name}: {generator.rule(call)}", op)
    return min(found, key=model.seconds)
