"""Device programs of 2024: `ttmetal.dispatch`, and TTIR buffers among tensors."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr, TensorType, UnregisteredOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ttcodegen.dialects.core.datatypes import without_encoding
from ttcodegen.dialects.operations.functions import change_types
from ttcodegen.dialects.ttcore.device import allocation_fault
from ttcodegen.foundation.diagnostics import CompileError, copy_source_offset
from ttcodegen.ops.dialects import ttir_op_classes

# TTIR of 2024 that had buffers and kernels among tensors: `ttir.alloc`, `ttir.dealloc` and
# `ttir.kernel`. Placement is decided later; a kernel that computes what an op does becomes that
# op.

KERNEL = "ttir.kernel"
TEXT = ("ttir.alloc", "ttir.dealloc", KERNEL)
"""Words without which a text has no such ops."""

MISSPELLED = {"mulitply": "multiply", "power": "pow", "divide": "div"}
"""Kernel names that differ from the ops' names."""


def take_over(module: ModuleOp) -> None:
    """Upgrades these ops on tensors.

    Raises:
        CompileError: at a kernel without an op, or memory that cannot be allocated.
    """
    for op in list(module.walk()):
        if not isinstance(op, UnregisteredOp) or op.op_name.data not in TEXT:
            continue
        match op.op_name.data:
            case "ttir.dealloc":
                op.detach()
                op.erase()
            case "ttir.alloc" if all(isinstance(r.type, TensorType) for r in op.results):
                if (fault := allocation_fault(op)) is not None:
                    raise CompileError(f"'ttir.alloc' {fault}", op)
                _replace(op, "ttir.empty", 0)
            case "ttir.kernel" if op.results and all(
                isinstance(r.type, TensorType) for r in op.results
            ):
                _replace(op, f"ttir.{kernel_op(op)}", len(op.operands) - len(op.results))
            case _:
                pass  # On buffers it stays what it is.


def kernel_op(op: Operation) -> str:
    """Name of the op that computes a kernel, without its dialect.

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
    """Replaces `op` by an op with its first `count` operands."""
    op_class = ttir_op_classes()[name.removeprefix("ttir.")]
    made = op_class.create(
        operands=op.operands[:count],
        result_types=[result.type for result in op.results],
        location=op.location,
    )
    copy_source_offset(op, made)
    Rewriter.replace_op(op, made)


# Device programs of 2024: kernels in the regions of `ttmetal.dispatch`, whose computation is one
# `ttkernel.builtin`. They say where buffers are, but not how tiles go through registers; what
# they compute is an op of TTIR, which becomes a device program of today, or ttnn calls.

DISPATCH = "ttmetal.dispatch"


@dataclass(frozen=True)
class LiftPrograms(ModulePass):
    """Lifts functions that dispatch programs of 2024 to equivalent TTIR, which any pipeline lowers.

    Raises CompileError where `lift_programs` does.
    """

    name = "ttmetal-lift-programs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lift_programs(op)


def lift_programs(module: ModuleOp) -> bool:
    """Lifts functions that dispatch such programs to TTIR; returns whether there were any.

    Raises:
        CompileError: at a program that is not exactly one builtin.
    """
    found = False
    for function in list(module.ops):
        if (
            isinstance(function, FuncOp)
            and function.body.blocks
            and any(op.name == DISPATCH for op in function.body.block.ops)
        ):
            _lift(function)
            found = True
    return found


def _lift(function: FuncOp) -> None:
    for op in list(function.body.block.ops):
        match op.name:
            case "ttmetal.host_write" | "ttmetal.host_read":
                Rewriter.replace_op(op, [], [op.operands[0]])
            case "ttmetal.dispatch":
                _lift_program(op)
            case "ttmetal.dealloc":
                op.detach()
                op.erase()
            case _:
                pass
    for op in list(function.body.block.ops):
        if op.name == "ttmetal.alloc" and not op.results[0].uses:
            op.detach()
            op.erase()
    change_types(function, without_encoding)


def _lift_program(dispatch: Operation) -> None:
    builtins = [op for op in dispatch.walk() if op.name == "ttkernel.builtin"]
    if len(builtins) != 1 or len(dispatch.results) != 1:
        raise CompileError(
            f"the program has {len(builtins)} builtin computations, it should have one", dispatch
        )
    kernel = builtins[0].properties.get("op")
    name = kernel.string_value() if isinstance(kernel, SymbolRefAttr) else ""
    op_class = ttir_op_classes().get(MISSPELLED.get(name, name))
    if op_class is None:
        raise CompileError(f"there is no builtin '{name}'", builtins[0])
    made = op_class.create(
        operands=dispatch.operands[: len(dispatch.operands) - 1],
        result_types=[dispatch.results[0].type],
        location=dispatch.location,
    )
    copy_source_offset(dispatch, made)
    Rewriter.replace_op(dispatch, made)
