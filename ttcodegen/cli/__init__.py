"""Command lines.

- `arguments`: Options shared by all command lines, and suggestions for misspelled ones
- `completion`: Shell completion of the command lines in bash, zsh and fish
- `entry`: Start, failure and exit of the command line programs, and refusal of files that are no
  MLIR
- `explorer`: `ttcodegen-explorer`: shows models as graphs, compiles, runs and tunes them
- `lang`: `ttcodegen-lang`: runs programs of TT-Lang
- `lit`: `ttcodegen-lit`: runs the RUN lines of MLIR tests, like LLVM's lit
- `opt`: `ttcodegen-opt`: runs passes on a module and prints the result
- `rt`: `ttcodegen-rt`: reads, runs, measures and checks flatbuffers and built shared objects
- `translate`: `ttcodegen-translate`: modules to C++ and flatbuffers, and back
- `ttcodegen`: `ttcodegen`: compiles a TTIR module to a C++ project, builds it and checks it
- `tune`: `ttcodegen tune`: searches faster alternatives of a project's ops, and writes them as
  edits
"""

from __future__ import annotations

import sys
from types import TracebackType


def _interrupted(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Reports an interrupt while modules are imported in a line, as `entry` does later on."""
    if issubclass(kind, KeyboardInterrupt):
        print("ttcodegen: interrupted", file=sys.stderr)
    else:
        _PREVIOUS_HOOK(kind, error, traceback)


_PREVIOUS_HOOK = sys.excepthook
sys.excepthook = _interrupted
