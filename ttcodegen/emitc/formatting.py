"""Formats C++ with clang-format, in the style that is shipped with the generated project.

clang-format spends its time on where to break lines, in proportion to the text. Long files are
therefore cut after function bodies and the pieces are formatted side by side; since a line break
never depends on another function, the result is the same. The processes run in the background, so a
caller can do other work between `start_formatting` and `Formatting.result`.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path

from ttcodegen.diagnostics import CompileError

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
        self._folder = tempfile.TemporaryDirectory(prefix="ttcodegen-format-")
        style_file = Path(self._folder.name, ".clang-format")
        style_file.write_text(style, encoding="utf-8")
        self._pool = ThreadPoolExecutor(max_workers=os.cpu_count() or 1)
        self._pieces: dict[str, list[Future[str] | str]] = {
            path: [
                self._pool.submit(_run, binary, str(style_file), path, piece)
                if format_it
                else piece
                for piece, format_it in _split(text)
            ]
            for path, text in files.items()
        }

    def result(self) -> dict[str, str]:
        """Waits for the formatted text of each file.

        Raises:
            CompileError: if clang-format fails.
        """
        try:
            return {
                path: "".join(p if isinstance(p, str) else p.result() for p in pieces)
                for path, pieces in self._pieces.items()
            }
        finally:
            self.close()

    def close(self) -> None:
        """Ends the formatting; what has not begun is dropped."""
        self._pool.shutdown(cancel_futures=True)
        self._folder.cleanup()


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


def _run(binary: str, style_file: str, path: str, text: str) -> str:
    command = [binary, f"--style=file:{style_file}", f"--assume-filename={path}"]
    try:
        done = subprocess.run(
            command, input=text.encode(), capture_output=True, check=False, timeout=600
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompileError(f"clang-format did not run on {path}: {error}", remedy=_REMEDY) from None
    if done.returncode != 0:
        output = done.stderr.decode("utf-8", "replace").strip()
        reason = output.replace(style_file, ".clang-format") or f"exit status {done.returncode}"
        raise CompileError(f"clang-format failed on {path}: {reason}", remedy=_REMEDY)
    return done.stdout.decode()
