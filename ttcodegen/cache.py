"""Where ttcodegen keeps what it made once."""

from __future__ import annotations

import os
import zlib
from pathlib import Path


def cache_folder() -> Path:
    """The folder ttcodegen/ in $TTCODEGEN_CACHE, $XDG_CACHE_HOME or ~/.cache."""
    for variable in ("TTCODEGEN_CACHE", "XDG_CACHE_HOME"):
        if value := os.environ.get(variable):
            return Path(value).absolute() / "ttcodegen"
    return Path.home() / ".cache" / "ttcodegen"


def keep_file(path: Path, data: bytes) -> None:
    """Writes a file of the cache: who reads it meanwhile finds all of it, or what was there before.

    Raises:
        OSError: if it cannot be written.
    """
    # Most runs find what they need and write nothing.
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            file.write(data)
            file.flush()
            os.replace(file.name, path)
        except OSError:
            os.unlink(file.name)
            raise


def with_checksum(data: bytes) -> bytes:
    """What `checked` gives the data of, unless it was damaged."""
    return _checksum(data) + data


def checked(kept: bytes) -> bytes | None:
    """The data of a file of the cache; None if it is not what was written."""
    data = kept[4:]
    return data if _checksum(data) == kept[:4] else None


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "little")
