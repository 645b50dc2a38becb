"""TOSA, as torch-mlir, TFLite's exporters and tt-mlir's tests print it, to TTIR.

Spellings of several years are read: attributes where later versions have operands of constants
(shapes, paddings, shifts, zero points), `value` for `values`, and generic forms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ttcodegen.frontends.tosa.rules import RULES
from ttcodegen.frontends.translation import (
    GLOBALS,
    drop_unused_globals,
    functional_form,
    source_context,
    translate,
)
from ttcodegen.parsing import parse_operations
from ttcodegen.parsing.structure import flatten

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ttcodegen.foundation.diagnostics import Diagnostics, Source


def read(source: Source, diagnostics: Diagnostics) -> ModuleOp:
    """Translates a text with TOSA operations to TTIR.

    Raises:
        CompileError: if the text cannot be parsed, or listing all operations without a translation.
    """
    names = [name.partition(".")[2] for name in RULES]
    context = source_context({"tosa": dict.fromkeys(names, functional_form), "ml_program": GLOBALS})
    module = flatten(parse_operations(source, diagnostics, context), diagnostics)
    drop_unused_globals(module)
    translate(module, RULES)
    return module
