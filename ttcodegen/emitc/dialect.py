"""The EmitC dialect of ttcodegen.

Names, operands, properties and the generic syntax are those of the upstream dialect
(https://mlir.llvm.org/docs/Dialects/EmitC/, LLVM 24), so that its parser reads what we print. What
upstream has no op for is marked by attributes outside the dialect, which other tools carry along:

- `ttcodegen.name` (string, also in `arg_attrs`), `ttcodegen.names` (array, several results): the
  name of the C++ variable. SSA name hints are the fallback; they lose endings such as `_0`.
- `ttcodegen.pure` on a call: its value depends on its operands alone, it may move to its use.
- `ttcodegen.method` on a call: the first operand is the object whose member function is called.
- `ttcodegen.initializers` on a call: the callee is a type that is initialised with braces; the
  array holds a designator for each argument, empty for one by position.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.emitc import (
    EmitC_ArrayType,
    EmitC_LValueType,
    EmitC_OpaqueAttr,
    EmitC_OpaqueType,
    EmitC_PointerType,
    EmitC_PtrDiffT,
    EmitC_SignedSizeT,
    EmitC_SizeT,
)
from xdsl.ir import Dialect
from xdsl.utils.exceptions import VerifyException

from ttcodegen.emitc.expressions import EXPRESSION_OPS
from ttcodegen.emitc.statements import STATEMENT_OPS
from ttcodegen.foundation.diagnostics import CompileError

EmitC = Dialect(
    "emitc",
    [*EXPRESSION_OPS, *STATEMENT_OPS],
    [
        EmitC_ArrayType,
        EmitC_LValueType,
        EmitC_OpaqueAttr,
        EmitC_OpaqueType,
        EmitC_PointerType,
        EmitC_PtrDiffT,
        EmitC_SignedSizeT,
        EmitC_SizeT,
    ],
)
"""Registered in place of the dialect of that name in xDSL, which has three of the ops."""


def verify(module: ModuleOp) -> None:
    """Verifies `module`.

    Raises:
        CompileError: if an op is not what the dialect demands.
    """
    try:
        module.verify()
    except VerifyException as error:
        reason = str(error).strip() or "the module does not verify"
        raise CompileError(
            f"the EmitC module is malformed: {reason}",
            remedy="this is a defect of the pass that made the module",
        ) from error
