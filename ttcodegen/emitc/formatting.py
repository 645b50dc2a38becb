"""Formats C++ with clang-format, in the style that is shipped with the generated project.

clang-format spends its time on where to break lines, in proportion to the text. Long files are
therefore cut after function bodies and the pieces are formatted side by side; since a line break
never depends on another function, the result is the same. What was made of a piece is kept for the
next time. The processes run in the background, so a caller can do other work between
`start_formatting` and `Formatting.result`.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ttcodegen.emitc.formatted_texts import FormattedTexts
from ttcodegen.emitc.pieces import PIECE_SIZE, REMEDY, Piece
from ttcodegen.foundation.diagnostics import CompileError

if TYPE_CHECKING:
    from ttcodegen.emitc.clang_format import FormattedPieces

_END_OF_FUNCTION = re.compile(r"^\}\n\n", re.MULTILINE)
_UNFORMATTED = re.compile(
    r"(\n*^// clang-format off\n.*?^// clang-format on\n\n*)", re.MULTILINE | re.DOTALL
)
"""Tables that are laid out already. clang-format would leave them as they are, but for a table of
thousands of rows it takes hundreds of megabytes to do so."""


@cache
def clang_format_binary() -> str:
    """The path of clang-format: of the Python package if installed, else found on PATH.

    The package's own entry point is a Python program that takes longer to start than to format.

    Raises:
        CompileError: if there is none.
    """
    spec = importlib.util.find_spec("clang_format")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        binary = Path(folder, "data", "bin", "clang-format")
        if os.access(binary, os.X_OK):
            return str(binary)
    import shutil

    on_path = shutil.which("clang-format")
    if on_path is None:
        raise CompileError("clang-format was not found", remedy=REMEDY)
    return on_path


class Formatting:
    """The formatting of some files, under way."""

    def __init__(self, files: Mapping[str, str], style: str) -> None:
        binary = clang_format_binary()
        self._kept = FormattedTexts(binary, style)
        self._pieces: dict[str, list[Piece | str]] = {
            path: [
                self._piece(path, text) if format_it else text for text, format_it in _split(whole)
            ]
            for path, whole in files.items()
        }
        pieces = [p for some in self._pieces.values() for p in some if isinstance(p, Piece)]
        self._formatted: FormattedPieces | None = None
        if pieces:
            from ttcodegen.emitc.clang_format import FormattedPieces

            self._formatted = FormattedPieces(binary, style, pieces)

    def _piece(self, path: str, text: str) -> Piece | str:
        """A text that is to be formatted, or what was made of it before."""
        # The name of the file determines the language, and which include comes first.
        key = self._kept.key(Path(path).name, text)
        known = self._kept.find(key)
        return Piece(path, text, key) if known is None else known

    def result(self) -> dict[str, str]:
        """Waits for the formatted text of each file.

        Raises:
            CompileError: if clang-format fails.
        """
        try:
            formatted = {} if self._formatted is None else self._formatted.texts()
        finally:
            self.close()
        for piece, text in formatted.items():
            self._kept.keep(piece.key, text)
        self._kept.close()
        return {
            path: "".join([p if isinstance(p, str) else formatted[p] for p in pieces])
            for path, pieces in self._pieces.items()
        }

    def close(self) -> None:
        """Ends the formatting, finished or not."""
        if self._formatted is not None:
            self._formatted.close()


def start_formatting(files: Mapping[str, str], style: str) -> Formatting:
    """Begins to format `files`, texts by path.

    Args:
        files: the paths only determine the language and appear in messages.
        style: the text of a .clang-format file.

    Raises:
        CompileError: if there is no clang-format.
    """
    return Formatting(files, style)


def format_files(files: Mapping[str, str], style: str, *, enabled: bool = True) -> dict[str, str]:
    """The formatted text of each of `files`; the texts as they are unless `enabled`.

    Raises:
        CompileError: if there is no clang-format, or it fails.
    """
    if not enabled or not files:
        return dict(files)
    return start_formatting(files, style).result()


def _split(text: str) -> Iterator[tuple[str, bool]]:
    """Pieces that make up the text, and whether each is to be formatted.

    A long text is cut after function bodies.
    """
    for index, part in enumerate(_UNFORMATTED.split(text)):
        if index % 2 or not part:
            yield part, False
            continue
        start = 0
        for end in _END_OF_FUNCTION.finditer(part):
            if end.end() - start >= PIECE_SIZE:
                yield part[start : end.end() - 1], True
                yield "\n", False
                start = end.end()
        yield part[start:], True
