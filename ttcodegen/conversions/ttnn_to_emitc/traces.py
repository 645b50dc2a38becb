"""What a trace of the device cannot capture.

Between the begin and the end of a capture the host neither writes to the device nor reads from it
(tt-metal 0.70.1: tt_metal/distributed/fd_mesh_command_queue.cpp).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.conversions.host_functions.interface import Entry
from ttcodegen.conversions.mesh.device_exchange import chip_exchanges
from ttcodegen.dialects.ttcore.dialect import LoadCachedOp
from ttcodegen.dialects.ttnn.placement import has_placement, placement_of
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.ops.core.definition import has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.device_constants import device_constants
from ttcodegen.parsing.structure import operation_name
from ttcodegen.transforms.rebuilding import body_of

_REMEDY = "compile the module without --trace"


def require_traceable(entries: Sequence[Entry], cpu_functions: Iterable[FuncOp] = ()) -> None:
    """Checks that functions can be captured.

    Args:
        entries: the functions.
        cpu_functions: those that the host calls between programs of the device; what chips exchange
            in place of such a call is captured.

    Raises:
        CompileError: with all reasons.
    """
    exchanges = chip_exchanges([entry.function for entry in entries], cpu_functions)
    captured = {op for exchange in exchanges for op in exchange.ops}
    # What the prepare function does is no part of a trace.
    captured.update(op for entry in entries for op in device_constants(entry.function).ops)
    found = [error for entry in entries for error in _unsupported_calls(entry, captured)]
    if found:
        raise CompileError.from_diagnostics([d for error in found for d in error.diagnostics])


def _unsupported_calls(entry: Entry, captured: Container[Operation]) -> Iterator[CompileError]:
    for tensor in entry.arguments:
        if not tensor.is_weight and _is_on_host(tensor.value):
            message = f"a trace cannot read the input '{tensor.name}', which is on the host"
            yield CompileError(message, entry.function, remedy=_REMEDY)
    for op in body_of(entry.function).ops:
        if op not in captured and (reason := _reason(op)):
            message = f"'{operation_name(op)}' cannot be part of a trace: {reason}"
            yield CompileError(message, op, remedy=_REMEDY)


def _reason(op: Operation) -> str:
    """Why an op cannot be captured; empty if it can."""
    if isinstance(op, LoadCachedOp):
        # What it gives was made before the first call; only its placement matters to its users.
        return ""
    if any(map(_is_on_host, op.results)):
        return "its result goes to the host"
    if any(map(_is_on_host, op.operands)):
        return "an operand of it is on the host"
    if has_trait(op, Trait.USES_HOST):
        return "the host participates in each call of it"
    return ""


def _is_on_host(value: SSAValue) -> bool:
    """True if a tensor is one of the host: in its memory, or without a layout of the device."""
    if not isinstance(value.type, TensorType):
        return False
    return not has_placement(value) or placement_of(value).buffer_type == "system_memory"
