"""What a trace of the device cannot capture.

Between the begin and the end of a capture the host neither writes to the device nor reads from it
(tt-metal 0.70.1: tt_metal/distributed/fd_mesh_command_queue.cpp).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from xdsl.ir import Operation

from ttcodegen.conversions.interface import Entry
from ttcodegen.diagnostics import CompileError
from ttcodegen.dialects.device_module import ENQUEUE_READ_BUFFER, ENQUEUE_WRITE_BUFFER
from ttcodegen.dialects.placement import placement_of
from ttcodegen.parsing.structure import operation_name
from ttcodegen.transforms.rebuilding import body_of

_READS = "the host reads a tensor of the device there"
_WRITES = "the host writes a tensor to the device there"
_HOST_OPS: Mapping[str, str] = {
    "ttnn.from_device": _READS,
    "ttnn.aggregate_tensor": _READS,
    "ttnn.update_cache": "the host reads the position in the cache there",
    "ttnn.to_device": _WRITES,
    "ttnn.distribute_tensor": _WRITES,
    # The library makes these values on the host, in each call.
    "ttnn.full": _WRITES,
    "ttnn.ones": _WRITES,
    "ttnn.zeros": _WRITES,
    "ttnn.arange": _WRITES,
    "ttnn.constant": _WRITES,
    ENQUEUE_READ_BUFFER: _READS,
    ENQUEUE_WRITE_BUFFER: _WRITES,
}
"""Why an op cannot be part of a trace."""


def require_traceable(entries: Iterable[Entry]) -> None:
    """Checks that functions can be captured.

    Raises:
        CompileError: with all that stand in the way.
    """
    found = [error for entry in entries for error in _obstacles(entry)]
    if found:
        raise CompileError.from_diagnostics([d for error in found for d in error.diagnostics])


def _obstacles(entry: Entry) -> Iterator[CompileError]:
    for tensor in entry.arguments:
        if not tensor.is_weight and placement_of(tensor.value).buffer_type == "system_memory":
            yield _refusal(f"input '{tensor.name}' lies on the host", entry.function)
    for op in body_of(entry.function).ops:
        reason = _HOST_OPS.get(operation_name(op))
        if reason is not None:
            yield _refusal(f"'{operation_name(op)}' cannot be part of a trace: {reason}", op)


def _refusal(message: str, op: Operation) -> CompileError:
    return CompileError(message, op, remedy="compile the module without --trace")
