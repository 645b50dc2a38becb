"""Formats C++ with clang-format in pieces, and caches the formatted text."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ttcodegen.foundation.cache import (
    checked,
    kept_file,
    own_cache_folder,
    with_checksum,
)
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.whole_files import write_whole

# Cache of formatted text: clang-format takes longer than printing for a large model, most of which
# is unchanged the next time.

_MOST_BYTES = 64 << 20
"""Maximum size of the cache; beyond it the texts unused for longest are dropped."""


class FormattedTexts:
    """Cache of the texts that clang-format formatted in a style.

    The key covers everything that the result depends on: the binary, the style, the file name,
    which determines the language and the main include, and the text. If the folder is not
    accessible or not owned by the user, nothing is cached."""

    def __init__(self, binary: str, style: str) -> None:
        self._folder: Path | None = None
        self._grown = False
        self._context = hashlib.sha256(style.encode())
        try:
            status = os.stat(binary)
            cache = own_cache_folder()
        except OSError:
            # There is no such binary, or no cache to be had.
            return
        self._folder = None if cache is None else cache / "formatted"
        self._context.update(f"\0{binary}\0{status.st_size}\0{status.st_mtime_ns}".encode())

    def key(self, name: str, text: str) -> str:
        """Cache key of the formatted text of a file."""
        content = self._context.copy()
        content.update(f"\0{name}\0{text}".encode())
        return content.hexdigest()

    def find(self, key: str) -> str | None:
        """Returns the formatted text; None if it is not cached."""
        if self._folder is None:
            return None
        path = self._folder / key
        try:
            kept = kept_file(path)
            data = None if kept is None else checked(kept)
            if data is None:
                return None
            os.utime(path)
        except OSError:
            return None
        return data.decode()

    def keep(self, key: str, text: str) -> None:
        """Stores a formatted text."""
        if self._folder is None:
            return
        try:
            write_whole(self._folder / key, with_checksum(text.encode()), private=True)
        except OSError:
            self._folder = None
            return
        self._grown = True

    def close(self) -> None:
        """Evicts old texts if any were added."""
        if self._folder is None or not self._grown:
            return
        try:
            with os.scandir(self._folder) as entries:
                found = [(entry.stat(), entry.path) for entry in entries]
            size = sum(status.st_size for status, _ in found)
            if size <= _MOST_BYTES:
                return
            for status, path in sorted(found, key=lambda each: each[0].st_mtime_ns):
                os.unlink(path)
                size -= status.st_size
                if size <= _MOST_BYTES // 2:
                    return
        except OSError:
            pass


# Pieces of text.

PIECE_SIZE = 64_000
"""Minimum characters of a piece: about 0.1 s of work, compared with 0.01 s per process."""

REMEDY = "install the Python package clang-format, or switch formatting off (--no-format)"
"""Remedy for a missing or failing clang-format."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Text that is formatted as a file of its own."""

    path: str
    """Path of the whole file in the project."""
    text: str
    key: str
    """Cache key of its formatted text."""


# Formats C++ with clang-format, in the style that is shipped with the generated project.
#
# The time of clang-format is proportional to the length of the text. Long files are therefore cut
# after function bodies and the pieces are formatted in parallel; since a line break never depends
# on another function, the result is the same. Formatted pieces are cached. The processes run in
# the background, so a caller can do other work between `start_formatting` and `Formatting.result`.

_END_OF_FUNCTION = re.compile(r"^\}\n\n", re.MULTILINE)
_UNFORMATTED = re.compile(
    r"(\n*^// clang-format off\n.*?^// clang-format on\n\n*)", re.MULTILINE | re.DOTALL
)
"""Tables with their own layout.

clang-format keeps them, but needs hundreds of megabytes for a table of thousands of rows."""


@cache
def clang_format_binary() -> str:
    """Returns the path of clang-format: from the Python package if installed, otherwise from PATH.

    The package's entry point is a Python program that starts slower than it formats.

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
    """Formatting of files in the background."""

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
            self._formatted = FormattedPieces(binary, style, pieces)

    def _piece(self, path: str, text: str) -> Piece | str:
        """Returns a text to be formatted, or its cached result."""
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
        """Stops the formatting, finished or not."""
        if self._formatted is not None:
            self._formatted.close()


def start_formatting(files: Mapping[str, str], style: str) -> Formatting:
    """Starts the formatting of `files`, texts by path.

    Args:
        files: the paths only determine the language and appear in messages.
        style: the text of a .clang-format file.

    Raises:
        CompileError: if there is no clang-format.
    """
    return Formatting(files, style)


def format_files(files: Mapping[str, str], style: str, *, enabled: bool = True) -> dict[str, str]:
    """Returns the formatted text of each of `files`, or the original texts unless `enabled`.

    Raises:
        CompileError: if there is no clang-format, or it fails.
    """
    if not enabled or not files:
        return dict(files)
    return start_formatting(files, style).result()


def _split(text: str) -> Iterator[tuple[str, bool]]:
    """Yields pieces of a text, and whether each is to be formatted.

    A long text is cut after function bodies."""
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


# Processes of clang-format.


class FormattedPieces:
    """Pieces that several clang-format processes format in parallel."""

    def __init__(self, binary: str, style: str, pieces: Sequence[Piece]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ttcodegen-format-")
        style_file = Path(self._folder.name, ".clang-format")
        style_file.write_text(style, encoding="utf-8")
        numbers = Counter[str]()
        self._files: dict[Piece, Path] = {}
        for piece in pieces:
            # The file keeps its name, because the style depends on it.
            name = Path(piece.path).name
            folder = Path(self._folder.name, str(numbers[name]))
            numbers[name] += 1
            folder.mkdir(exist_ok=True)
            self._files[piece] = folder / name
            self._files[piece].write_bytes(piece.text.encode())
        command = [binary, "-i", f"--style=file:{style_file}"]
        self._processes: list[_Process] = []
        try:
            for batch in _batches(pieces):
                files = [self._files[piece] for piece in batch]
                self._processes.append(_Process(command, batch, files))
        except CompileError:
            self.close()
            raise

    def texts(self) -> dict[Piece, str]:
        """Waits for the formatted text of each piece.

        Raises:
            CompileError: if clang-format fails.
        """
        for process in self._processes:
            process.wait()
        return {piece: file.read_bytes().decode() for piece, file in self._files.items()}

    def close(self) -> None:
        """Stops the processes, finished or not, and removes their files."""
        for process in self._processes:
            process.end()
        self._folder.cleanup()


def _batches(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Divides pieces into one batch per processor, or fewer if there is little to do."""
    total = sum(len(piece.text) for piece in pieces)
    count = max(1, min(os.cpu_count() or 1, -(-total // PIECE_SIZE)))
    batches: list[list[Piece]] = [[] for _ in range(count)]
    for piece in sorted(pieces, key=lambda piece: len(piece.text), reverse=True):
        min(batches, key=lambda batch: sum(len(p.text) for p in batch)).append(piece)
    return [batch for batch in batches if batch]


class _Process:
    """A clang-format process on some pieces."""

    def __init__(
        self, command: Sequence[str], pieces: Sequence[Piece], files: Sequence[Path]
    ) -> None:
        self._paths = ", ".join(dict.fromkeys(piece.path for piece in pieces))
        self._folder = str(files[0].parent.parent)
        # A file, because a pipe would have to be drained concurrently.
        self._messages = tempfile.TemporaryFile()
        try:
            self._process = subprocess.Popen(
                [*command, *map(str, files)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._messages,
            )
        except OSError as error:
            self._messages.close()
            raise self._did_not_run(error) from None

    def wait(self) -> None:
        """Waits for the process; raises CompileError if it fails."""
        try:
            status = self._process.wait(timeout=600)
        except subprocess.TimeoutExpired as error:
            raise self._did_not_run(error) from None
        if status != 0:
            self._messages.seek(0)
            output = self._messages.read().decode("utf-8", "replace").strip()
            reason = output.replace(f"{self._folder}/", "") or f"exit status {status}"
            raise CompileError(f"clang-format failed on {self._paths}: {reason}", remedy=REMEDY)

    def _did_not_run(self, error: Exception) -> CompileError:
        return CompileError(f"clang-format did not run on {self._paths}: {error}", remedy=REMEDY)

    def end(self) -> None:
        """Ends the process, finished or not."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._messages.close()
