"""The texts of a project as they were generated, kept beside what a person makes of them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

PRISTINE = ".ttcodegen/generated.json.gz"
"""A gzip file with a JSON object: the text of each file by its path in the project."""

_GZIP = 31
"""The window bits that make zlib write and read the format of gzip."""


def pristine_archive(files: Mapping[str, str | bytes]) -> bytes:
    """The bytes of the archive for the texts among `files`; the same for the same texts."""
    return packed({path: files[path] for path in sorted(files) if isinstance(files[path], str)})


def packed(content: object) -> bytes:
    """A gzip file with an object as JSON."""
    packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
    return packer.compress(json.dumps(content).encode()) + packer.flush()


def unpacked(path: Path) -> object:
    """The object in a gzip file; raises OSError, ValueError, zlib.error or RecursionError if there
    is none."""
    return json.loads(zlib.decompress(path.read_bytes(), _GZIP))


def read_pristine(out: Path) -> dict[str, str] | None:
    """The texts by path as they were generated last; None if the project does not have them."""
    try:
        content = unpacked(out.joinpath(PRISTINE))
    except (OSError, ValueError, zlib.error, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    texts = cast("dict[str, object]", content)
    return {path: text for path, text in texts.items() if isinstance(text, str)}
