"""Reads a whole file."""

from __future__ import annotations

import gc
import re
import struct
import sys
from collections.abc import Generator
from contextlib import contextmanager

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import DiagnosticException, MultipleSpansParseError, ParseError

from ttcodegen.compat import ttir_buffers, ttnn_modules, tuples
from ttcodegen.dialects.operations.verification import verify_definitions
from ttcodegen.foundation.diagnostics import CompileError, Diagnostic, Diagnostics, Note, Source
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.parsing import legacy
from ttcodegen.parsing.attributes import plain_message
from ttcodegen.parsing.encodings import ENCODINGS, drop_layouts
from ttcodegen.parsing.operations import OperationParser, UnknownCustomForm
from ttcodegen.parsing.quantized import express_quantized
from ttcodegen.parsing.structure import counted, flatten, remedy_for_operation, unsupported

# The start of a line that holds an operation, in generic form or in one of its own.
_OPERATION = re.compile(
    r"^[ \t]*(?:%[^=\"\n]*=[ \t]*)?"
    r"(?:\"([\w.$-]+)\"[ \t]*\(|([a-z_]\w*\.[a-z_][\w.]*)(?![ \t]*=))",
    re.MULTILINE,
)


def parse_module(source: Source, diagnostics: Diagnostics | None = None) -> ModuleOp:
    """The module that a text holds: functions only, in today's spelling.

    Operations that no dialect of ours has are kept; `check_supported` lists them. What is ignored
    is reported in `diagnostics`.

    Raises:
        CompileError: at the first location that is not MLIR as we understand it; for values, all
        that
            are undefined in a function.
    """
    if diagnostics is None:
        diagnostics = Diagnostics()
    with _collector_paused():
        operations = parse_operations(source, diagnostics)
        module = flatten(operations, diagnostics)
        other_years = ttnn_modules.is_of_other_years(source.text)
        if other_years:
            ttnn_modules.take_over(module, diagnostics)
        if any(word in source.text for word in ttir_buffers.TEXT):
            ttir_buffers.take_over(module)
        legacy.upgrade(module)
        if other_years:
            ttnn_modules.forget_destinations(module)
        if tuples.TEXT in source.text:
            tuples.unpack(module)
        if any(word in source.text for word in ENCODINGS):
            drop_layouts(module, diagnostics)
        if "!quant." in source.text:
            express_quantized(module)
    return module


def parse_operations(
    source: Source, diagnostics: Diagnostics, context: Context | None = None
) -> list[Operation]:
    """The operations at the top of a text, as they are written there.

    Args:
        source: the text.
        diagnostics: gets what is ignored.
        context: the dialects that the text may be in; those of the compiler if None.

    Raises:
        CompileError: as `parse_module`; also with all functions, calls and returns that lack what
            their kind has.
    """
    if not source.text.strip():
        raise CompileError("the input is empty", remedy="give a module of TTIR functions")
    parser = _open(source, diagnostics, context or load_dialects())
    try:
        operations = parser.parse_top_level()
    except UnknownCustomForm as error:
        raise _all_unknown_custom_forms(source, parser, error) from None
    except MultipleSpansParseError as error:
        notes = [Note(text or error.ref_text or "see here", s.start) for s, text in error.refs]
        raise CompileError(plain_message(error.msg), error.span.start, notes=notes) from None
    except ParseError as error:
        raise CompileError(plain_message(error.msg), error.span.start) from None
    except CompileError as error:
        raise _with_element_type_hint(error, source.text) from None
    except DiagnosticException as error:
        raise CompileError(plain_message(str(error)), parser.offset) from None
    except RecursionError:
        raise CompileError("the input is nested too deeply", parser.offset) from None
    except (ArithmeticError, AssertionError, LookupError, NotImplementedError, TypeError,
            ValueError, struct.error) as error:  # fmt: skip
        # xDSL checks some of what it reads with assertions and conversions only.
        raise _malformed(error, source, parser.offset) from error
    if not operations:
        raise CompileError("the input holds no operations", remedy="give a module of functions")
    if legacy.CONSTRAINTS in source.text:
        legacy.drop_constraints(operations)
    verify_definitions(operations)
    return operations


_ELEMENT_TYPES = {
    **dict.fromkeys(("fp16", "float16", "half"), "f16"),
    **dict.fromkeys(("fp32", "float32", "float", "single"), "f32"),
    **dict.fromkeys(("fp64", "float64", "double"), "f64"),
    **dict.fromkeys(("b16", "bfp16", "bfloat16", "bfloat", "brain16"), "bf16"),
    **dict.fromkeys(("bool", "boolean", "b1"), "i1"),
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": f"si{bits}" for bits in (8, 16, 32, 64)},
    **{f"{name}{bits}": f"ui{bits}" for name in ("uint", "u") for bits in (8, 16, 32, 64)},
}
"""Names that other systems have for element types."""


_TYPE_ERRORS = ("expected shape type", "type expected")
"""Messages of xDSL at what is no type."""


def _element_type_hint(text: str, offset: int) -> str:
    """A question after a message about a shape, if an element type of another system follows."""
    found = re.match(r"(?:x?[0-9?]+x)*x?([A-Za-z]\w*)", text[offset : offset + 100])
    meant = _ELEMENT_TYPES.get(found[1].lower()) if found is not None else None
    if found is None or meant is None:
        return ""
    return f": there is no element type {found[1]}; did you mean {meant}?"


def _with_element_type_hint(error: CompileError, text: str) -> CompileError:
    """The error, with a question where an element type of another system was read."""
    first = error.diagnostics[0]
    if first.message not in _TYPE_ERRORS or not isinstance(first.place, int):
        return error
    hint = _element_type_hint(text, first.place)
    return CompileError(first.message + hint, first.place, remedy=first.remedy)


def _malformed(error: Exception, source: Source, offset: int) -> CompileError:
    """What a failed conversion of xDSL's says of the text, which ends at `offset` for it."""
    if isinstance(error, UnicodeDecodeError):
        place = source.text.rfind('"', 0, source.text.rfind('"', 0, offset))
        return CompileError("a name is not UTF-8 text", offset if place < 0 else place)
    most = sys.get_int_max_str_digits()
    long = re.compile(rf"[0-9]{{{most + 1},}}").search(
        source.text, max(0, source.text.rfind("\n", 0, offset))
    )
    if "integer string conversion" in str(error) and long is not None:
        return CompileError("a number has too many digits", long.start())
    return CompileError(f"malformed input: {plain_message(str(error))}", offset)


def _open(source: Source, diagnostics: Diagnostics, context: Context) -> OperationParser:
    """A parser at the first token of the text."""
    try:
        return OperationParser(context, source, diagnostics)
    except ParseError as error:
        raise CompileError(plain_message(error.msg), error.span.start) from None


def _all_unknown_custom_forms(
    source: Source, parser: OperationParser, error: UnknownCustomForm
) -> CompileError:
    """One diagnostic per unknown operation: we cannot read past the first, but we can look."""
    offsets: dict[str, list[int]] = {error.op_name: []}
    for match in _OPERATION.finditer(source.text):
        generic, custom = match.groups()
        if not parser.knows(generic or custom, in_custom_form=custom is not None):
            # A generic name starts with its quote, as everywhere.
            place = match.start(2) if generic is None else match.start(1) - 1
            offsets.setdefault(generic or custom, []).append(place)
    found: list[Diagnostic] = []
    for name, places in offsets.items():
        remedy = remedy_for_operation(name) or error.diagnostics[0].remedy
        places = places or [error.offset]
        message = counted(unsupported(name), len(places))
        found.append(Diagnostic(message, places[0], remedy))
    return CompileError.from_diagnostics(found)


@contextmanager
def _collector_paused() -> Generator[None]:
    """Parsing makes long-lived objects only; collecting in between costs half of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
