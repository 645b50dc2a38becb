"""linalg on tensors, as torch-mlir and other exporters lower to it, to TTIR.

- `bodies`: Loops and bodies of linalg.generic as tensors and tensor ops
- `forms`: Assembly formats of linalg and tensor operations
- `generics`: Translation of linalg.generic: elementwise bodies, reductions and contractions
- `rules`: Translation of named linalg operations and of the tensor dialect to TTIR

Named operations, and `linalg.generic` whose body computes elements, at one position or step by
step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ttcodegen.frontends.translation import (
    GLOBALS,
    Form,
    Rule,
    drop_unused_globals,
    source_context,
    source_operation,
    translate,
)
from ttcodegen.parsing import parse_operations
from ttcodegen.parsing.structure import flatten

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ttcodegen.foundation.diagnostics import Diagnostics, Source


def read(source: Source, diagnostics: Diagnostics) -> ModuleOp:
    """Translates a text with linalg operations to TTIR.

    Raises:
        CompileError: if the text cannot be parsed, or listing all operations without a translation.
    """
    from ttcodegen.frontends.linalg import forms, rules

    names = (*rules.LINALG, *forms.UNSUPPORTED)
    named: dict[str, Form | None] = dict.fromkeys(names, forms.linalg_form)
    context = source_context(
        {
            "cf": forms.ASSERT,
            "linalg": named | forms.BODY,
            "ml_program": GLOBALS,
            "tensor": forms.TENSOR,
        }
    )
    for name in forms.ELEMENTS:
        context.load_op(source_operation(name, forms.element_form))
    module = flatten(parse_operations(source, diagnostics, context), diagnostics)
    drop_unused_globals(module)
    _convert_constants(module)
    translate(module, _table())
    _erase_scalars(module)
    return module


def _table() -> dict[str, Rule]:
    from ttcodegen.frontends.linalg import rules

    table = {f"linalg.{name}": rule for name, rule in rules.LINALG.items()}
    return table | {f"tensor.{name}": rule for name, rule in rules.TENSOR.items()}


def _convert_constants(module: ModuleOp) -> None:
    """Converts constants of tensors to TTIR; scalar constants stay for the bodies that
    read them."""
    from xdsl.dialects.arith import ConstantOp
    from xdsl.dialects.builtin import TensorType

    from ttcodegen.frontends.translation import Translator
    from ttcodegen.transforms.rewriting import erase

    for op in [each for each in module.walk() if isinstance(each, ConstantOp)]:
        block = op.parent
        if block is None or not isinstance(op.result.type, TensorType):
            continue
        build = Translator(lambda made, block=block, op=op: block.insert_op_before(made, op))
        build.origin = op
        made = build.elements(op.value)
        made.name_hint = op.result.name_hint
        op.result.replace_all_uses_with(made)
        erase(op)


def _erase_scalars(module: ModuleOp) -> None:
    from xdsl.dialects.arith import ConstantOp

    from ttcodegen.transforms.rewriting import erase

    for op in [each for each in module.walk() if isinstance(each, ConstantOp)]:
        if op.result.first_use is None:
            erase(op)
