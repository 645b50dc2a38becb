"""Reads a whole file."""

from __future__ import annotations

import gc
import re
import struct
from collections.abc import Generator
from contextlib import contextmanager

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import DiagnosticException, MultipleSpansParseError, ParseError

from ttcodegen.diagnostics import CompileError, Diagnostic, Diagnostics, Note, Source
from ttcodegen.dialects import load_dialects
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
    is told in `diagnostics`.

    Raises:
        CompileError: at the first place that is not MLIR as we understand it; for values, all that
            are undefined in a function.
    """
    if diagnostics is None:
        diagnostics = Diagnostics()
    with _collector_paused():
        module = flatten(_parse_operations(source, diagnostics), diagnostics)
        legacy.upgrade(module)
        if any(word in source.text for word in ENCODINGS):
            drop_layouts(module, diagnostics)
        if "!quant." in source.text:
            express_quantized(module)
    return module


def _parse_operations(source: Source, diagnostics: Diagnostics) -> list[Operation]:
    if not source.text.strip():
        raise CompileError("the input is empty", remedy="give a module of TTIR functions")
    parser = _open(source, diagnostics)
    try:
        operations = parser.parse_top_level()
    except UnknownCustomForm as error:
        raise _all_unknown_custom_forms(source, parser, error) from None
    except MultipleSpansParseError as error:
        notes = [Note(text or error.ref_text or "see here", s.start) for s, text in error.refs]
        raise CompileError(plain_message(error.msg), error.span.start, notes=notes) from None
    except ParseError as error:
        raise CompileError(plain_message(error.msg), error.span.start) from None
    except DiagnosticException as error:
        raise CompileError(plain_message(str(error)), parser.offset) from None
    except RecursionError:
        raise CompileError("the input is nested too deeply", parser.offset) from None
    except (ArithmeticError, AssertionError, LookupError, NotImplementedError, TypeError,
            ValueError, struct.error) as error:  # fmt: skip
        # xDSL checks some of what it reads with assertions and conversions only.
        raise CompileError("malformed input", parser.offset) from error
    if not operations:
        raise CompileError("the input holds no operations", remedy="give a module of functions")
    return operations


def _open(source: Source, diagnostics: Diagnostics) -> OperationParser:
    """A parser at the first token of the text."""
    try:
        return OperationParser(load_dialects(), source, diagnostics)
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
