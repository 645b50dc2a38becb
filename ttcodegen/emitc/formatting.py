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
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ttcodegen.diagnostics import CompileError
from ttcodegen.emitc.formatted_texts import FormattedTexts

_PIECE_SIZE = 64_000
"""Characters that are formatted at once: about 0.1 s of work, against 0.01 s for a process."""

_END_OF_FUNCTION = re.compile(r"^\}\n\n", re.MULTILINE)
_UNFORMATTED = re.compile(
    r"(\n*^// clang-format off\n.*?^// clang-format on\n\n*)", re.MULTILINE | re.DOTALL
)
"""Tables that are laid out already. clang-format would leave them as they are, but for a table of
thousands of rows it takes hundreds of megabytes to do so."""

_REMEDY = "install the Python package clang-format, or switch formatting off (--no-format)"


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
    on_path = shutil.which("clang-format")
    if on_path is None:
        raise CompileError("clang-format was not found", remedy=_REMEDY)
    return on_path


class Formatting:
    """The formatting of some files, under way."""

    def __init__(self, files: Mapping[str, str], style: str) -> None:
        binary = clang_format_binary()
        self._kept = FormattedTexts(binary, style)
        self._folder = tempfile.TemporaryDirectory(prefix="ttcodegen-format-")
        self._numbers = Counter[str]()
        self._pieces: dict[str, list[_Piece | str]] = {
            path: [
                self._piece(path, text) if format_it else text for text, format_it in _split(whole)
            ]
            for path, whole in files.items()
        }
        pieces = [p for some in self._pieces.values() for p in some if isinstance(p, _Piece)]
        style_file = Path(self._folder.name, ".clang-format")
        style_file.write_text(style, encoding="utf-8")
        command = [binary, "-i", f"--style=file:{style_file}"]
        self._processes: list[_Process] = []
        try:
            for batch in _batches(pieces):
                self._processes.append(_Process(command, batch))
        except CompileError:
            self.close()
            raise

    def _piece(self, path: str, text: str) -> _Piece | str:
        """A text that is to be formatted, or what was made of it before."""
        # The name of the file stays: it tells the language, and which include comes first.
        name = Path(path).name
        key = self._kept.key(name, text)
        if (known := self._kept.find(key)) is not None:
            return known
        folder = Path(self._folder.name, str(self._numbers[name]))
        self._numbers[name] += 1
        folder.mkdir(exist_ok=True)
        file = folder / name
        file.write_bytes(text.encode())
        return _Piece(path, file, len(text), key)

    def result(self) -> dict[str, str]:
        """Waits for the formatted text of each file.

        Raises:
            CompileError: if clang-format fails.
        """
        try:
            for process in self._processes:
                process.wait()
            return {
                path: "".join([self._text(piece) for piece in pieces])
                for path, pieces in self._pieces.items()
            }
        finally:
            self.close()

    def _text(self, piece: _Piece | str) -> str:
        if isinstance(piece, str):
            return piece
        text = piece.text()
        self._kept.keep(piece.key, text)
        return text

    def close(self) -> None:
        """Ends the formatting, finished or not."""
        for process in self._processes:
            process.end()
        self._kept.close()
        self._folder.cleanup()


@dataclass(frozen=True)
class _Piece:
    """A text that is formatted in a file of its own."""

    path: str
    """The path of the whole file in the project."""
    file: Path
    size: int
    key: str
    """What its formatted text is kept by."""

    def text(self) -> str:
        return self.file.read_bytes().decode()


def _batches(pieces: Sequence[_Piece]) -> list[list[_Piece]]:
    """What each process formats: as many as there are processors, unless there is little to do."""
    total = sum(piece.size for piece in pieces)
    count = max(1, min(os.cpu_count() or 1, -(-total // _PIECE_SIZE)))
    batches: list[list[_Piece]] = [[] for _ in range(count)]
    for piece in sorted(pieces, key=lambda piece: piece.size, reverse=True):
        min(batches, key=lambda batch: sum(p.size for p in batch)).append(piece)
    return [batch for batch in batches if batch]


class _Process:
    """A clang-format at work on some pieces."""

    def __init__(self, command: Sequence[str], pieces: Sequence[_Piece]) -> None:
        self._paths = ", ".join(dict.fromkeys(piece.path for piece in pieces))
        self._folder = str(pieces[0].file.parent.parent)
        # A file, not a pipe: nobody reads while it is written.
        self._messages = tempfile.TemporaryFile()
        try:
            self._process = subprocess.Popen(
                [*command, *(str(piece.file) for piece in pieces)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._messages,
            )
        except OSError as error:
            self._messages.close()
            raise self._did_not_run(error) from None

    def wait(self) -> None:
        """Raises CompileError if clang-format fails."""
        try:
            status = self._process.wait(timeout=600)
        except subprocess.TimeoutExpired as error:
            raise self._did_not_run(error) from None
        if status != 0:
            self._messages.seek(0)
            output = self._messages.read().decode("utf-8", "replace").strip()
            reason = output.replace(f"{self._folder}/", "") or f"exit status {status}"
            raise CompileError(f"clang-format failed on {self._paths}: {reason}", remedy=_REMEDY)

    def _did_not_run(self, error: Exception) -> CompileError:
        return CompileError(f"clang-format did not run on {self._paths}: {error}", remedy=_REMEDY)

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._messages.close()


def start_formatting(files: Mapping[str, str], style: str) -> Formatting:
    """Begins to format `files`, texts by path.

    Args:
        files: the paths only serve to tell the language and appear in messages.
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
            if end.end() - start >= _PIECE_SIZE:
                yield part[start : end.end() - 1], True
                yield "\n", False
                start = end.end()
        yield part[start:], True
