"""The C API of a built module, called from Python."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

API_VERSION = 2
"""TTCODEGEN_API_VERSION of include/ttcodegen/capi.h."""

KINDS = ("input", "parameter", "constant", "output")
LAYOUTS = ("row_major", "tile")
MEMORIES = ("system_memory", "dram", "l1")
"""The meanings of the numbers of the C API."""

DTYPES: tuple[np.dtype[Any], ...] = (
    *(np.dtype(n) for n in ("bool", "int8", "int16", "int32", "int64")),
    *(np.dtype(n) for n in ("uint8", "uint16", "uint32", "uint64", "float16")),
    np.dtype(ml_dtypes.bfloat16),
    *(np.dtype(n) for n in ("float32", "float64")),
)
"""The dtypes by their numbers in the C API."""


class ModuleError(Exception):
    """A project cannot be loaded, or a call does not fit it or failed."""


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
"""The names that shared objects were loaded by, by device and inode of their files."""


def _name_to_load(path: Path) -> str:
    """A name of the file under which none was loaded before: the loader goes by names
    first, and would give what an earlier build of a project has left in this process."""
    status = path.stat()
    file = status.st_dev, status.st_ino
    if file not in _names:
        taken, builds = set(_names.values()), 0
        # Other names of one place, which $ORIGIN means as well.
        while (name := f"{path.parent}/{'./' * builds}{path.name}") in taken:
            builds += 1
        _names[file] = name
    return _names[file]


_libraries: dict[tuple[str, str], Library] = {}
"""The libraries that were loaded, by these names and by module: each time that one is loaded,
ctypes makes classes of its own, which stay."""


def load_c_api(path: Path, module: str) -> Library:
    """The C API of a module.

    Raises:
        ModuleError: if it cannot be loaded, is of another module or version.
    """
    try:
        key = _name_to_load(path), module
    except OSError as error:
        raise ModuleError(f"cannot load '{path}': {error.strerror}") from None
    if key not in _libraries:
        _libraries[key] = Library(path, module)
    return _libraries[key]


class Library:
    """The C API of one module."""

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
        """All inputs, weights or outputs of a function."""
        tensors: list[CTensor] = []
        for index in range(self.call(f"{kind}_count", function)):
            tensor = CTensor()
            self.checked(f"describe_{kind}", function, index, ctypes.byref(tensor))
            tensors.append(tensor)
        return tensors
