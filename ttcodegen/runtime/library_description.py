"""Descriptions of shared objects, read without loading them: loading a library runs its code.

The build of a project puts the project's manifest into a section of its shared object.
"""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.project.manifest import MANIFEST, as_manifest, read_manifest

_SECTION = b".ttcodegen.manifest"
"""As the CMakeLists.txt of a project names it."""
_HEADER = struct.Struct("<4s2B10xHHIQQQIHHHHHH")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_CLASS_64, _LITTLE_ENDIAN = 2, 1
_MOST_BYTES = 1 << 28
"""The largest manifest that is read."""


@dataclass(frozen=True)
class LibraryDescription:
    """A shared object as its manifest describes it."""

    manifest: Mapping[str, Any]
    embedded: Mapping[str, Any] | None
    """The manifest in the library itself, as its project had it when it was linked."""
    is_in_project: bool
    """True if it is in a build folder of the project of that module."""

    def functions(self) -> Sequence[Mapping[str, Any]]:
        """The rows of its functions."""
        rows: object = self.manifest.get("functions")
        return cast("list[Mapping[str, Any]]", rows) if isinstance(rows, list) else []


def describe_library(path: Path) -> LibraryDescription:
    """Describes a shared object by the manifest in it, else by that of the project around it.

    Raises:
        CompileError: if it is no shared object, or there is no manifest of it.
    """
    embedded = _embedded_manifest(path)
    name = path.name.removeprefix("lib").removesuffix(".so")
    folder = path.absolute().parent
    around = (read_manifest(place) for place in (folder.parent, folder))
    project = next((each for each in around if each and each.get("module") == name), None)
    manifest = embedded or project
    if manifest is None:
        raise CompileError(
            f"'{path}' does not say what it is: it holds no {MANIFEST}, and its project is not "
            "around it",
            remedy="it is loaded only to be run; read the project's flatbuffer",
        )
    return LibraryDescription(manifest, embedded, project is not None)


def _embedded_manifest(path: Path) -> Mapping[str, Any] | None:
    """The manifest in a shared object; None if it has none.

    Raises:
        CompileError: if the file cannot be read or is no shared object of this kind.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return as_manifest(_section(data))
    except OSError as error:
        raise CompileError(f"cannot read '{path}': {error.strerror}") from None
    except (ValueError, struct.error, RecursionError):
        raise CompileError(f"'{path}' is no shared object, or it is damaged") from None


def _section(data: mmap.mmap) -> object:
    """The JSON of the section, None if there is none; raises ValueError or struct.error if the
    file is no 64-bit little-endian ELF."""
    fields: tuple[Any, ...] = _HEADER.unpack_from(data)
    magic, class_, order = fields[:3]
    if (magic, class_, order) != (b"\x7fELF", _CLASS_64, _LITTLE_ENDIAN):
        raise ValueError("no ELF")
    place, size, count, names_index = fields[8], fields[13], fields[14], fields[15]
    if size != _SECTION_HEADER.size or names_index >= count:
        raise ValueError("damaged")
    headers: list[tuple[int, ...]] = [
        _section_header(data, place + index * size) for index in range(int(count))
    ]
    names = _content(data, headers[int(names_index)])
    for header in headers:
        name = names[header[0] : names.find(b"\0", header[0])]
        if name == _SECTION:
            return json.loads(_content(data, header))
    return None


def _section_header(data: mmap.mmap, place: int) -> tuple[int, ...]:
    return _SECTION_HEADER.unpack_from(data, place)


def _content(data: mmap.mmap, header: tuple[int, ...]) -> bytes:
    start, length = header[4], header[5]
    if start + length > len(data) or length > _MOST_BYTES:
        raise ValueError("damaged")
    return data[start : start + length]
