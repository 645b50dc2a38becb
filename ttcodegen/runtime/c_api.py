"""Python binding of a built module's C API, device tensors and library descriptions."""

from __future__ import annotations

import ctypes
import json
import mmap
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.project.manifest import MANIFEST, as_manifest, read_manifest

# The C API of a built module, called from Python.

API_VERSION = 2
"""TTCODEGEN_API_VERSION of include/ttcodegen/capi.h."""

KINDS = ("input", "parameter", "constant", "output")
LAYOUTS = ("row_major", "tile")
MEMORIES = ("system_memory", "dram", "l1")
"""Memories by their number in the C API."""

DTYPES: tuple[np.dtype[Any], ...] = (
    *(np.dtype(n) for n in ("bool", "int8", "int16", "int32", "int64")),
    *(np.dtype(n) for n in ("uint8", "uint16", "uint32", "uint64", "float16")),
    np.dtype(ml_dtypes.bfloat16),
    *(np.dtype(n) for n in ("float32", "float64")),
)
"""Dtypes by their number in the C API."""


class ModuleError(Exception):
    """Failure of loading a project, or of a call."""


class CArray(ctypes.Structure):
    """ttcodegen_array"""

    _fields_ = [
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_uint32),
        ("shape", ctypes.POINTER(ctypes.c_uint64)),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
    ]


class CTensor(ctypes.Structure):
    """ttcodegen_tensor"""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_uint32),
        ("shape", ctypes.POINTER(ctypes.c_uint64)),
        ("field", ctypes.c_char_p),
        ("data_type", ctypes.c_char_p),
        ("layout", ctypes.c_int32),
        ("memory", ctypes.c_int32),
    ]


def array_argument(array: np.ndarray) -> CArray:
    """A C view of a contiguous array, valid as long as the array is."""
    shape = (ctypes.c_uint64 * array.ndim)(*array.shape)
    return CArray(DTYPES.index(array.dtype), array.ndim, shape, array.ctypes.data, array.nbytes)


_names: dict[tuple[int, int], str] = {}
"""Paths by which shared objects were loaded, by device and inode."""


def _name_to_load(path: Path) -> str:
    """Path of the file that was not loaded before.

    The loader caches by path, and would return an earlier build of the project.
    """
    status = path.stat()
    file = status.st_dev, status.st_ino
    if file not in _names:
        taken, builds = set(_names.values()), 0
        # Alternative spellings of one path, which keep $ORIGIN valid.
        while (name := f"{path.parent}/{'./' * builds}{path.name}") in taken:
            builds += 1
        _names[file] = name
    return _names[file]


_libraries: dict[tuple[str, str], Library] = {}
"""Loaded libraries by path and module, as ctypes creates new classes for each load."""


def load_c_api(path: Path, module: str) -> Library:
    """Loads the C API of a module.

    Raises:
        ModuleError: if it cannot be loaded, or is of another module or version.
    """
    try:
        key = _name_to_load(path), module
    except OSError as error:
        raise ModuleError(f"cannot load '{path}': {error.strerror}") from None
    if key not in _libraries:
        _libraries[key] = Library(path, module)
    return _libraries[key]


class Library:
    """C API of one module."""

    def __init__(self, path: Path, module: str) -> None:
        try:
            self._library = ctypes.CDLL(_name_to_load(path))
        except OSError as error:
            raise ModuleError(f"cannot load '{path}': {error}") from None
        self._module = module
        model, size, array = ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(CArray)
        tensor, tensors = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
        signatures: Mapping[str, tuple[Any, Sequence[Any]]] = {
            "api_version": (ctypes.c_uint32, []),
            "open": (
                ctypes.c_int,
                [ctypes.c_uint32, ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(model)],
            ),
            "close": (None, [model]),
            "last_error": (ctypes.c_char_p, []),
            "function_count": (size, []),
            "function_name": (ctypes.c_char_p, [size]),
            **{f"{kind}_count": (size, [size]) for kind in ("input", "weight", "output")},
            **{
                f"describe_{kind}": (ctypes.c_int, [size, size, ctypes.POINTER(CTensor)])
                for kind in ("input", "weight", "output")
            },
            "set_weight": (ctypes.c_int, [model, size, size, array]),
            "draw_weights": (ctypes.c_int, [model, size, ctypes.c_uint64]),
            "run": (ctypes.c_int, [model, size, array, size, array, size]),
            "open_beside": (
                ctypes.c_int,
                [ctypes.c_uint32, ctypes.c_char_p, model, ctypes.POINTER(model)],
            ),
            "to_device": (ctypes.c_int, [model, size, size, array, tensors]),
            "to_layout": (ctypes.c_int, [model, size, size, tensor, tensors]),
            "submit": (ctypes.c_int, [model, size, tensors, size, tensors, size]),
            "describe_tensor": (ctypes.c_int, [tensor, ctypes.POINTER(CTensor)]),
            "to_host": (ctypes.c_int, [tensor, array]),
            "release": (None, [tensor]),
        }
        self._check_version(path)
        for name, (result, arguments) in signatures.items():
            function = getattr(self._library, f"{module}_{name}")
            function.restype, function.argtypes = result, arguments

    def _check_version(self, path: Path) -> None:
        try:
            function = getattr(self._library, f"{self._module}_api_version")
        except AttributeError:
            message = f"'{path}' is not the library of the module '{self._module}'"
            raise ModuleError(message) from None
        function.restype = ctypes.c_uint32
        if (found := int(function())) != API_VERSION:
            raise ModuleError(
                f"'{path}' has version {found} of the C API, read is version {API_VERSION}: "
                "write and build its project again with this version of ttcodegen"
            )

    def call(self, name: str, *arguments: Any) -> Any:
        """Calls a function that returns a value."""
        return getattr(self._library, f"{self._module}_{name}")(*arguments)

    def checked(self, name: str, *arguments: Any) -> None:
        """Calls a function that returns a status.

        Raises:
            ModuleError: with the library's message, if it failed.
        """
        if self.call(name, *arguments) != 0:
            raise ModuleError(self.call("last_error").decode("utf-8", "replace"))

    def describe(self, kind: str, function: int) -> list[CTensor]:
        """Describes all inputs, weights or outputs of a function."""
        tensors: list[CTensor] = []
        for index in range(self.call(f"{kind}_count", function)):
            tensor = CTensor()
            self.checked(f"describe_{kind}", function, index, ctypes.byref(tensor))
            tensors.append(tensor)
        return tensors


# Tensors that a loaded module left on the device, as handles for the next one.


class DeviceTensor:
    """Tensor on the device.

    It keeps the device open after modules are closed, and is freed with its last reference.
    """

    def __init__(self, library: Library, handle: int) -> None:
        self._library = library
        self._handle: int | None = handle
        description = CTensor()
        library.checked("describe_tensor", handle, ctypes.byref(description))
        self.shape = tuple(int(description.shape[i]) for i in range(description.rank))
        self.dtype: np.dtype[Any] = DTYPES[int(description.dtype)]
        """Dtype of the elements that `numpy` returns."""
        self.data_type = str(description.data_type.decode())
        self.layout = LAYOUTS[int(description.layout)]
        self.buffer_type = MEMORIES[int(description.memory)]

    @property
    def handle(self) -> int:
        """Handle of the tensor in the C API.

        Raises:
            ModuleError: if it was released.
        """
        if self._handle is None:
            raise ModuleError("the tensor was released")
        return self._handle

    def numpy(self) -> np.ndarray:
        """Copies the elements to the host.

        Raises:
            ModuleError: if the tensor was released or deallocated.
        """
        array = np.empty(self.shape, self.dtype)
        self._library.checked("to_host", self.handle, ctypes.byref(array_argument(array)))
        return array

    def release(self) -> None:
        """Frees the tensor, unless another handle shares its memory."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._library.call("release", handle)

    def __del__(self) -> None:
        if self.__dict__.get("_handle") is not None:
            self.release()

    def __repr__(self) -> str:
        shape = "x".join(str(size) for size in self.shape) or "scalar"
        return f"DeviceTensor({shape}, {self.data_type}, {self.layout}, {self.buffer_type})"


# Descriptions of shared objects, read without loading them: loading a library runs its code.
#
# The build of a project puts the project's manifest into a section of its shared object.

_SECTION = b".ttcodegen.manifest"
"""Section name in a project's CMakeLists.txt."""
_HEADER = struct.Struct("<4s2B10xHHIQQQIHHHHHH")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_CLASS_64, _LITTLE_ENDIAN = 2, 1
_MAX_MANIFEST_BYTES = 1 << 28
"""Maximum size of a manifest."""


@dataclass(frozen=True)
class LibraryDescription:
    """Shared object as described by its manifest."""

    manifest: Mapping[str, Any]
    embedded: Mapping[str, Any] | None
    """Manifest embedded when the library was linked."""
    is_in_project: bool
    """True if it is in a build folder of its project."""

    def functions(self) -> Sequence[Mapping[str, Any]]:
        """Rows of its functions."""
        rows: object = self.manifest.get("functions")
        return cast("list[Mapping[str, Any]]", rows) if isinstance(rows, list) else []


def describe_library(path: Path) -> LibraryDescription:
    """Describes a shared object by its embedded manifest, or else by its project's.

    Raises:
        CompileError: if it is no shared object, or there is no manifest.
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
    """Manifest embedded in a shared object; None if it has none.

    Raises:
        CompileError: if the file cannot be read or is no shared object.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return as_manifest(_section(data))
    except OSError as error:
        raise CompileError(f"cannot read '{path}': {error.strerror}") from None
    except (ValueError, struct.error, RecursionError):
        raise CompileError(f"'{path}' is no shared object, or it is damaged") from None


def _section(data: mmap.mmap) -> object:
    """Parses the JSON of the manifest section, None without one.

    Raises ValueError or struct.error if the file is no 64-bit little-endian ELF.
    """
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
    if start + length > len(data) or length > _MAX_MANIFEST_BYTES:
        raise ValueError("damaged")
    return data[start : start + length]
