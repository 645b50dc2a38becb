"""Frontends: one package per input dialect, and the entry points that all tools share.

- `canonicalization`: Canonical form of an input module, and of the regions of `ttir.generic`
- `expressions`: Tensors with the operators of Python, for formulas that are written once for all
  front ends
- `fourier`: Fourier transforms, as matmuls with matrices of cosines and sines
- `linalg/`: linalg on tensors, as torch-mlir and other exporters lower to it, to TTIR
- `matrices/`: Linear algebra of small matrices on the builder, column by column, for all front ends
- `special_functions`: Functions without a TTIR op: special functions, integer division, complex
  pairs
- `stablehlo/`: StableHLO, as jax, torch_xla, torch-mlir and tt-xla write it: text or portable
  bytecode
- `torch/`: PyTorch to TTIR: graphs of `torch.export`, operation by operation, without
  decompositions
- `tosa/`: TOSA, as torch-mlir, TFLite's exporters and tt-mlir's tests print it, to TTIR
- `translation`: Translation of source dialects to TTIR, and classes of their operations
- `ttnn/`: TTNN as printed by other tools, normalized to the catalogue's form
- `zeta`: Hurwitz zeta function and polygamma functions

Every tool reads its input with `read_module`, which selects the frontend by the dialects of the
operations, or by the first bytes of bytecode. Input that no frontend claims is TTIR or a later
stage and is only parsed. Tools that compile use `source_module`, tools that run single passes
`module_for_passes`: both bring modules into the form that passes rely on (`canonicalization`).

A front end is a `Frontend` in `FRONTENDS` and a room of its own; no other room knows of it. Its
`read` function gets the source and a collector of warnings and gives a module of TTIR functions,
like that of `parsing.parse_module`: flat, in today's spelling, each operation with the location in
the source that it implements. What it cannot translate it refuses with one `CompileError` that
lists everything at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from ttcodegen.compat.ttnn_modules import STRING_OR_COMMENT
from ttcodegen.foundation.diagnostics import BYTECODE_MAGIC, CompileError, Diagnostics, Source

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ttcodegen.dialects.ttcore.device import MeshShape

Read = Callable[[Source, Diagnostics], "ModuleOp"]


@dataclass(frozen=True)
class Frontend:
    """Frontend for one or more source dialects that translate to TTIR."""

    name: str
    """Name of the frontend in documents."""
    dialects: frozenset[str]
    """Dialects that select this frontend when a file has one of their operations."""
    room: str
    """Dotted name of the module with the function `read`; imported on demand."""
    bytecode: bool = False
    """True if the frontend reads MLIR bytecode as well as text."""
    companions: frozenset[str] = frozenset()
    """Dialects that select the frontend only in files without operations of the compiler's
    dialects."""

    def read(self, source: Source, diagnostics: Diagnostics) -> ModuleOp:
        """Translates a source to TTIR; raises one CompileError that lists all problems."""
        read: Read = import_module(self.room).read
        return read(source, diagnostics)


FRONTENDS: tuple[Frontend, ...] = (
    Frontend(
        "StableHLO",
        frozenset({"stablehlo", "mhlo", "chlo", "sdy"}),
        "ttcodegen.frontends.stablehlo",
        bytecode=True,
    ),
    Frontend("TOSA", frozenset({"tosa"}), "ttcodegen.frontends.tosa"),
    Frontend(
        "linalg",
        frozenset({"linalg"}),
        "ttcodegen.frontends.linalg",
        companions=frozenset({"tensor"}),
    ),
)
"""All frontends, in order of precedence for files that mix dialects."""


def read_module(source: Source, diagnostics: Diagnostics | None = None) -> ModuleOp:
    """Parses a source and translates it to TTIR if a frontend claims its dialect.

    Raises:
        CompileError: as `parsing.parse_module`, or if a frontend cannot translate an operation.
    """
    if diagnostics is None:
        diagnostics = Diagnostics()
    frontend = frontend_of(source)
    if frontend is not None:
        return frontend.read(source, diagnostics)
    from ttcodegen.parsing import parse_module

    return parse_module(source, diagnostics)


def source_module(
    source: Source, diagnostics: Diagnostics | None = None, mesh: MeshShape = (1, 1)
) -> ModuleOp:
    """Reads a source into a module in the compiler's canonical form.

    As `read_module`, and library calls printed by another tool are spelled as in the catalogue, the
    module names the mesh that its collectives need, device programs of 2024 become what they
    compute, those of today are completed, and regions of `ttir.generic` become functions.

    Args:
        source: the text or bytecode.
        diagnostics: takes warnings.
        mesh: rows and columns of chips for a module that names no mesh of several.

    Raises:
        CompileError: as `read_module`.
    """
    if diagnostics is None:
        diagnostics = Diagnostics()
    module = read_module(source, diagnostics)
    from ttcodegen.dialects.ttcore.device import ONE_CHIP, names_several_chips, set_mesh
    from ttcodegen.frontends.canonicalization import canonicalize_input

    if mesh != ONE_CHIP and not names_several_chips(module):
        set_mesh(module, mesh)
    canonicalize_input(module, diagnostics)
    return module


def module_for_passes(source: Source, diagnostics: Diagnostics | None = None) -> ModuleOp:
    """The module that a tool runs single passes or a translation on: as it is written where it is
    spelled as passes rely on, else as `source_module` spells it.

    Raises:
        CompileError: as `read_module`.
    """
    from ttcodegen.frontends.canonicalization import canonicalize_for_passes

    if diagnostics is None:
        diagnostics = Diagnostics()
    module = read_module(source, diagnostics)
    canonicalize_for_passes(module, diagnostics)
    return module


def frontend_of(source: Source) -> Frontend | None:
    """Selects the frontend for a source; None for TTIR and later stages, which are only parsed.

    Raises:
        CompileError: for bytecode, if no frontend reads it.
    """
    if source.data.startswith(BYTECODE_MAGIC):
        for frontend in FRONTENDS:
            if frontend.bytecode:
                return frontend
        raise CompileError("MLIR bytecode is not read", remedy="give the module as text")
    text = source.text
    deciding = frozenset(name for each in FRONTENDS for name in each.dialects)
    found = _dialects_in(text, deciding)
    if found:
        return next(each for each in FRONTENDS if not found.isdisjoint(each.dialects))
    if _dialects_in(text, _OWN):
        return None
    # Functions that pass numbers on have no operation; complex ones only StableHLO has.
    if "xcomplex<" in text or "<complex<" in text:
        return next(each for each in FRONTENDS if "stablehlo" in each.dialects)
    return next((each for each in FRONTENDS if _dialects_in(text, each.companions)), None)


_OWN = frozenset({"d2m", "emitc", "ttcore", "ttir", "ttkernel", "ttmetal", "ttnn"})
"""Dialects of the compiler itself, which the parser reads without a frontend."""


def _dialects_in(text: str, dialects: frozenset[str]) -> set[str]:
    """Returns the given dialects that have at least one operation in a text."""
    found: set[str] = set()
    if any(f"{name}." in text for name in dialects):
        for match in _operations(dialects).finditer(text):
            if match[1] not in found and _is_code(text, match.start(1)):
                found.add(match[1])
    return found


def _is_code(text: str, offset: int) -> bool:
    """Returns whether a dialect name is code, not part of a comment or string.

    A quoted operation name of the generic form counts as code.
    """
    line = text.rfind("\n", 0, offset) + 1
    for token in STRING_OR_COMMENT.finditer(text, line):
        if token.start() >= offset:
            break
        if offset < token.end():
            return token.start() == offset - 1 and text[offset - 1] == '"' and " " not in token[0]
    return True


@cache
def _operations(dialects: frozenset[str]) -> re.Pattern[str]:
    """Compiles the pattern of an operation of one of the dialects.

    Operations start a line or a region, or follow result names; strings and attributes that mention
    one do not match.
    """
    names = "|".join(sorted(map(re.escape, dialects)))
    return re.compile(
        rf"(?:^|[{{}}])[ \t]*(?:%[^=\"\n]*=[ \t]*)?\"?({names})\.[a-z_]\w*+(?![ \t]*[=,]|}})",
        re.MULTILINE,
    )
