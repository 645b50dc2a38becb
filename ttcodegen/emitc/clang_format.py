"""Runs clang-format. Apart from what decides whether it has to run, for most texts are formatted
already, and starting processes takes imports of its own."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ttcodegen.emitc.pieces import PIECE_SIZE, REMEDY, Piece
from ttcodegen.foundation.diagnostics import CompileError


class FormattedPieces:
    """Pieces that processes of clang-format work on side by side."""

    def __init__(self, binary: str, style: str, pieces: Sequence[Piece]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ttcodegen-format-")
        style_file = Path(self._folder.name, ".clang-format")
        style_file.write_text(style, encoding="utf-8")
        numbers = Counter[str]()
        self._files: dict[Piece, Path] = {}
        for piece in pieces:
            # The name of the file stays, for the style depends on it.
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
        """Ends the processes, finished or not, and removes their files."""
        for process in self._processes:
            process.end()
        self._folder.cleanup()


def _batches(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """What each process formats: as many as there are processors, unless there is little to do."""
    total = sum(len(piece.text) for piece in pieces)
    count = max(1, min(os.cpu_count() or 1, -(-total // PIECE_SIZE)))
    batches: list[list[Piece]] = [[] for _ in range(count)]
    for piece in sorted(pieces, key=lambda piece: len(piece.text), reverse=True):
        min(batches, key=lambda batch: sum(len(p.text) for p in batch)).append(piece)
    return [batch for batch in batches if batch]


class _Process:
    """A clang-format at work on some pieces."""

    def __init__(
        self, command: Sequence[str], pieces: Sequence[Piece], files: Sequence[Path]
    ) -> None:
        self._paths = ", ".join(dict.fromkeys(piece.path for piece in pieces))
        self._folder = str(files[0].parent.parent)
        # A file, not a pipe: a pipe would have to be read at the same time.
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
        """Raises CompileError if clang-format fails."""
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
        """Ends it, finished or not."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._messages.close()
