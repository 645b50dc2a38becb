"""TTIR of 2024 that had buffers and kernels among tensors: `ttir.alloc`, `ttir.dealloc` and
`ttir.kernel`. Placement is decided later; a kernel that computes what an op does becomes that
op."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr, TensorType, UnregisteredOp
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from ttcodegen.foundation.diagnostics import CompileError, copy_source_offset
from ttcodegen.ops.dialects import ttir_op_classes

KERNEL = "ttir.kernel"
TEXT = ("ttir.alloc", "ttir.dealloc", KERNEL)
"""Text that has none of these words has nothing of the kind."""

MISSPELLED = {"mulitply": "multiply", "power": "pow", "divide": "div"}
"""Names of kernels that differ from those of the ops."""


def take_over(module: ModuleOp) -> None:
    """Turns these ops on tensors into today's.

    Raises:
        CompileError: at a kernel that no op computes.
    """
    for op in list(module.walk()):
        if not isinstance(op, UnregisteredOp) or op.op_name.data not in TEXT:
            continue
        match op.op_name.data:
            case "ttir.dealloc":
                op.detach()
                op.erase()
            case "ttir.alloc" if all(isinstance(r.type, TensorType) for r in op.results):
                _replace(op, "ttir.empty", 0)
            case "ttir.kernel" if op.results and all(
                isinstance(r.type, TensorType) for r in op.results
            ):
                _replace(op, f"ttir.{kernel_op(op)}", len(op.operands) - len(op.results))
            case _:
                pass  # On buffers it stays what it is.


def kernel_op(op: Operation) -> str:
    """The name of the op that computes what a kernel does, without that of the dialect.

    Raises:
        CompileError: at the kernel, if there is none.
    """
    kernel = op.properties.get("op", op.attributes.get("op"))
    name = kernel.string_value() if isinstance(kernel, SymbolRefAttr) else ""
    name = MISSPELLED.get(name, name)
    if name not in ttir_op_classes() or len(op.results) > 1:
        raise CompileError(
            f"no op computes what the kernel '{name}' does",
            op,
            remedy="kernels are those of elementwise ops: @add, @multiply, @exp and so on",
        )
    return name


def _replace(op: Operation, name: str, count: int) -> None:
    """Puts an op of that name, with the first `count` operands, in place of `op`."""
    op_class = ttir_op_classes()[name.removeprefix("ttir.")]
    made = op_class.create(
        operands=op.operands[:count],
        result_types=[result.type for result in op.results],
        location=op.location,
    )
    copy_source_offset(op, made)
    Rewriter.replace_op(op, made)
