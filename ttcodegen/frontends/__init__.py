"""Front ends: one room per dialect that models come in, and the door that all of them share.

`read_module` is how every program reads its input. It looks at the names of the operations, or at
the first bytes of a file that is no text, and lets the front end that knows them make the module of
TTIR. What none of them claims is TTIR (or a later stage) and goes to the parser alone. Tools that
compile go on with `source_module`, tools that run single passes with `module_for_passes`: both
bring modules into the form that passes rely on (`canonicalization`).

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

from ttcodegen.foundation.diagnostics import BYTECODE_MAGIC, CompileError, Diagnostics, Source

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ttcodegen.dialects.ttcore.device import MeshShape

Read = Callable[[Source, Diagnostics], "ModuleOp"]


@dataclass(frozen=True)
class Frontend:
    """A dialect, or several that come together, that modules of TTIR are made from."""

    name: str
    """Name of the frontend in documents."""
    dialects: frozenset[str]
    """The dialects that decide: a file with an operation of one of them is for this front end."""
    room: str
    """The module with the function `read`; imported when a file needs it."""
    bytecode: bool = False
    """True if it reads MLIR bytecode, too."""
    companions: frozenset[str] = frozenset()
    """Dialects that decide only in a file without an operation of the compiler's dialects."""

    def read(self, source: Source, diagnostics: Diagnostics) -> ModuleOp:
        """The module of TTIR that a source means; raises CompileError with all that is wrong."""
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
"""All front ends. Where a file has operations of several, the first in this order reads it."""


def read_module(source: Source, diagnostics: Diagnostics | None = None) -> ModuleOp:
    """The module of TTIR that a source holds or means, whichever dialect it is written in.

    Raises:
        CompileError: as `parsing.parse_module`; also with everything that a front end cannot
            translate.
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
    """The front end that a source is for; None if it is for the parser of TTIR.

    Raises:
        CompileError: if it is bytecode, and no front end reads that.
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
    for each in FRONTENDS:
        if _dialects_in(text, each.companions) and not _dialects_in(text, _OWN):
            return each
    return None


_OWN = frozenset({"d2m", "emitc", "ttcore", "ttir", "ttkernel", "ttmetal", "ttnn"})
"""The dialects that the parser of TTIR is for."""


def _dialects_in(text: str, dialects: frozenset[str]) -> set[str]:
    """Those of some dialects that a text has operations of."""
    if not any(f"{name}." in text for name in dialects):
        return set()
    return {match.group(1) for match in _operations(dialects).finditer(text)}


@cache
def _operations(dialects: frozenset[str]) -> re.Pattern[str]:
    """Pattern of the operations of dialects in a text.

    They start a line or a region, or follow result names; strings and attributes that mention one
    do not count.
    """
    names = "|".join(sorted(map(re.escape, dialects)))
    return re.compile(
        rf"(?:^|[{{}}])[ \t]*(?:%[^=\"\n]*=[ \t]*)?\"?({names})\.[a-z_]\w*+(?![ \t]*[=,]|}})",
        re.MULTILINE,
    )
