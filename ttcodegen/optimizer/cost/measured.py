"""Times of calls that were measured on a card, as a table that the model of cost reads."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.optimizer.call import LibraryCall

_HEADING = "architecture\tcall\tmicroseconds"


def call_key(call: LibraryCall) -> str:
    """The key of a call in the table: its name, and a digest of its tensors and attributes."""
    given = sorted((k, repr(v)) for k, v in call.attributes.items() if v is not None)
    text = repr((call.name, call.operands, call.results, given))
    return f"{call.name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def read_measured(path: Path, architecture: str) -> dict[str, float]:
    """The seconds of calls on an architecture by their keys; none if there is no file.

    Raises:
        CompileError: if the file is no such table.
    """
    if not path.exists():
        return {}
    return {key: seconds for (arch, key), seconds in _rows(path).items() if arch == architecture}


def write_measured(path: Path, architecture: str, seconds: Mapping[str, float]) -> None:
    """Adds times to a table; of a call that is there already, the new time is kept.

    Raises:
        CompileError: if the file is no such table, or cannot be written.
    """
    rows = _rows(path) if path.exists() else {}
    rows |= {(architecture, key): value for key, value in seconds.items()}
    lines = [f"{arch}\t{key}\t{rows[arch, key] * 1e6:.3f}" for arch, key in sorted(rows)]
    try:
        path.write_text("\n".join([_HEADING, *lines, ""]), "utf-8")
    except OSError as error:
        raise CompileError(f"cannot write '{path}': {error.strerror or error}") from None


def _rows(path: Path) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    try:
        heading, *lines = path.read_text("utf-8").splitlines() or [""]
        if heading != _HEADING:
            raise ValueError(f"its first line is not '{_HEADING}'")
        for line in lines:
            arch, key, microseconds = line.split("\t")
            found[arch, key] = float(microseconds) / 1e6
    except (OSError, ValueError) as error:
        raise CompileError(f"'{path}' is no table of measured times: {error}") from None
    return found
