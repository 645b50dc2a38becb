"""Runs a built project from Python: its shared object, on numpy arrays.

model = ttcodegen.load("out/")
probabilities = model.forward(images)
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike

from ttcodegen.diagnostics import CompileError
from ttcodegen.project.building import build_project, library_path
from ttcodegen.project.manifest import MANIFEST, read_manifest
from ttcodegen.project.toolchain import find_toolchain

_API_VERSION = 1
"""TTCODEGEN_API_VERSION of include/ttcodegen/capi.h."""

_KINDS = ("input", "parameter", "constant", "output")
_DTYPES: tuple[np.dtype[Any], ...] = (
    *(np.dtype(n) for n in ("bool", "int8", "int16", "int32", "int64")),
    *(np.dtype(n) for n in ("uint8", "uint16", "uint32", "uint64", "float16")),
    np.dtype(ml_dtypes.bfloat16),
    *(np.dtype(n) for n in ("float32", "float64")),
)
"""The dtypes by their numbers in the C API."""


class ModuleError(Exception):
    """A project cannot be loaded, or a call does not fit it or failed."""


@dataclass(frozen=True)
class TensorSignature:
    """What a function says of one of its inputs, weights or outputs."""

    name: str
    """As the source model names it."""
    field: str
    """As an identifier, by which it can be given as a keyword."""
    kind: str
    """input, parameter, constant or output."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    """That of the source model: in it outputs are returned."""
    computed_dtype: np.dtype[Any]
    """That in which the device holds it."""


class _Array(ctypes.Structure):
    _fields_ = [
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_uint32),
        ("shape", ctypes.POINTER(ctypes.c_uint64)),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
    ]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_uint32),
        ("shape", ctypes.POINTER(ctypes.c_uint64)),
    ]


def _array_argument(array: np.ndarray) -> _Array:
    """A C view of a contiguous array, valid as long as the array is."""
    shape = (ctypes.c_uint64 * array.ndim)(*array.shape)
    return _Array(_DTYPES.index(array.dtype), array.ndim, shape, array.ctypes.data, array.nbytes)


class _Library:
    """The C API of one module."""

    def __init__(self, path: Path, module: str) -> None:
        try:
            self._library = ctypes.CDLL(str(path))
        except OSError as error:
            raise ModuleError(f"cannot load '{path}': {error}") from None
        self._module = module
        model, size, array = ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(_Array)
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
                f"describe_{kind}": (ctypes.c_int, [size, size, ctypes.POINTER(_Tensor)])
                for kind in ("input", "weight", "output")
            },
            "set_weight": (ctypes.c_int, [model, size, size, array]),
            "draw_weights": (ctypes.c_int, [model, size, ctypes.c_uint64]),
            "run": (ctypes.c_int, [model, size, array, size, array, size]),
        }
        for name, (result, arguments) in signatures.items():
            try:
                function = getattr(self._library, f"{module}_{name}")
            except AttributeError:
                raise ModuleError(f"'{path}' is not the library of the module '{module}'") from None
            function.restype, function.argtypes = result, arguments

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

    def describe(self, kind: str, function: int) -> list[_Tensor]:
        """All inputs, weights or outputs of a function."""
        tensors: list[_Tensor] = []
        for index in range(self.call(f"{kind}_count", function)):
            tensor = _Tensor()
            self.checked(f"describe_{kind}", function, index, ctypes.byref(tensor))
            tensors.append(tensor)
        return tensors


class LoadedFunction:
    """An entry function of a loaded module: a callable on arrays.

    Inputs are given in the order of `inputs`, or as keywords by the names or fields there. They are
    converted to the dtypes of the device where that loses no more than rounding does; what is
    returned has the dtypes of the source model: one array, or a tuple if there is not exactly one.
    """

    def __init__(self, module: LoadedModule, index: int, row: Mapping[str, Any]) -> None:
        self._module = module
        self.index = index
        self.name = str(row["name"])
        rows: list[dict[str, Any]] = [*row["inputs"], *row["outputs"]]
        self.inputs = self._signatures("input", [r for r in rows if r["kind"] == "input"])
        weights = [r for r in rows if r["kind"] in ("parameter", "constant")]
        self.weights = self._signatures("weight", weights)
        self.outputs = self._signatures("output", [r for r in rows if r["kind"] == "output"])

    def _signatures(
        self, kind: str, rows: Sequence[Mapping[str, Any]]
    ) -> tuple[TensorSignature, ...]:
        tensors = self._module.library.describe(kind, self.index)
        if len(tensors) != len(rows):
            raise ModuleError(f"{MANIFEST} and the library disagree: build the project again")
        return tuple(
            TensorSignature(
                str(row["name"]),
                str(row["cpp_name"]),
                _KINDS[int(tensor.kind)],
                tuple(int(tensor.shape[i]) for i in range(tensor.rank)),
                _dtype(str(row["source_dtype"])),
                _DTYPES[int(tensor.dtype)],
            )
            for tensor, row in zip(tensors, rows, strict=True)
        )

    def __call__(self, *arrays: ArrayLike, **named: ArrayLike) -> Any:
        """Runs the function.

        Raises:
            ModuleError: if the arrays do not fit the inputs, or the run fails.
        """
        inputs = [
            _fitting(array, signature)
            for array, signature in zip(self._ordered(arrays, named), self.inputs, strict=True)
        ]
        outputs = [np.empty(o.shape, o.computed_dtype) for o in self.outputs]
        self._module.run(self.index, inputs, outputs)
        results = [
            _in_dtype(array, signature.dtype)
            for array, signature in zip(outputs, self.outputs, strict=True)
        ]
        return results[0] if len(results) == 1 else tuple(results)

    def _ordered(
        self, arrays: Sequence[ArrayLike], named: Mapping[str, ArrayLike]
    ) -> list[ArrayLike]:
        """The inputs in order; each is given once, by its place or by its name."""
        names = ", ".join(signature.field for signature in self.inputs) or "nothing"
        if len(arrays) > len(self.inputs):
            raise ModuleError(
                f"'{self.name}' takes {len(self.inputs)} inputs ({names}), found {len(arrays)}"
            )
        rest = dict(named)
        ordered = list(arrays)
        for signature in self.inputs[len(arrays) :]:
            key = signature.field if signature.field in rest else signature.name
            if key not in rest:
                raise ModuleError(
                    f"'{self.name}' needs the input '{signature.field}'; it takes {names}"
                )
            ordered.append(rest.pop(key))
        if rest:
            raise ModuleError(
                f"'{self.name}' has no further input '{next(iter(rest))}'; it takes {names}"
            )
        return ordered


class LoadedModule:
    """A module opened on a device: its functions are attributes, and items by their names.

    With one function the module itself can be called. It is a context manager that closes the
    device; calls from several threads wait for each other.
    """

    def __init__(
        self, library: Path, manifest: Mapping[str, Any], data: Path | None, device: int
    ) -> None:
        self._handle = ctypes.c_void_p()
        self._lock = threading.Lock()
        self.name = str(manifest["module"])
        self.library = _Library(library, self.name)
        folder = os.fsencode(data) if data is not None else None
        self.library.checked("open", _API_VERSION, folder, device, ctypes.byref(self._handle))
        rows: list[dict[str, Any]] = manifest["functions"]
        if len(rows) != self.library.call("function_count"):
            raise ModuleError(f"{MANIFEST} and the library disagree: build the project again")
        self._functions = {
            str(row["cpp_name"]): LoadedFunction(self, index, row) for index, row in enumerate(rows)
        }

    @property
    def functions(self) -> tuple[LoadedFunction, ...]:
        """All functions."""
        return tuple(self._functions.values())

    def __getattr__(self, name: str) -> LoadedFunction:
        functions: dict[str, LoadedFunction] = self.__dict__.get("_functions", {})
        if name in functions:
            return functions[name]
        raise AttributeError(f"the module has no function '{name}', only {', '.join(functions)}")

    def __getitem__(self, name: str) -> LoadedFunction:
        for function in self.functions:
            if function.name == name:
                return function
        return self._functions[name]

    def __call__(self, *arrays: ArrayLike, **named: ArrayLike) -> Any:
        """Runs the only function.

        Raises:
            ModuleError: if there are several, or as the function does.
        """
        if len(self._functions) != 1:
            names = ", ".join(self._functions)
            raise ModuleError(f"the module has several functions, name one of them: {names}")
        return self.functions[0](*arrays, **named)

    def set_weight(self, name: str, values: ArrayLike) -> None:
        """Replaces a weight, by its name or field, in each function that has it.

        Raises:
            ModuleError: if no function has it, or the values do not fit.
        """
        found = False
        for function in self.functions:
            for index, weight in enumerate(function.weights):
                if name in (weight.name, weight.field):
                    found = True
                    array = _fitting(values, weight)
                    argument = ctypes.byref(_array_argument(array))
                    self._locked("set_weight", function.index, index, argument)
        if not found:
            known = sorted({w.field for function in self.functions for w in function.weights})
            raise ModuleError(f"there is no weight '{name}', only {', '.join(known) or 'none'}")

    def draw_weights(self, seed: int) -> None:
        """Draws the weights that have no file and were not set."""
        for function in self.functions:
            self._locked("draw_weights", function.index, seed)

    def run(
        self, function: int, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]
    ) -> None:
        """Runs a function on arrays that fit; `LoadedFunction` makes them."""
        given = (_Array * len(inputs))(*(_array_argument(array) for array in inputs))
        taken = (_Array * len(outputs))(*(_array_argument(array) for array in outputs))
        self._locked("run", function, given, len(inputs), taken, len(outputs))

    def _locked(self, name: str, *arguments: Any) -> None:
        with self._lock:
            if not self._handle:
                raise ModuleError(f"the module '{self.name}' is closed")
            self.library.checked(name, self._handle, *arguments)

    def close(self) -> None:
        """Closes the device; the module cannot be used any more."""
        with self._lock:
            if self._handle:
                self.library.call("close", self._handle)
                self._handle = ctypes.c_void_p()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if self.__dict__.get("_handle") and "library" in self.__dict__:
            self.close()


def load(
    path: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    device: int = 0,
    seed: int | None = None,
) -> LoadedModule:
    """Loads a project that ttcodegen wrote; builds its shared object if that has not been done.

    Args:
        path: the project's folder.
        data: the folder with the weights; that of the project if not given.
        device: the number of the device.
        seed: draws the weights that have no file; otherwise they have to be set before a run.

    Raises:
        ModuleError: if there is no such project, or it cannot be built or opened.
    """
    out = Path(path)
    manifest = read_manifest(out)
    if manifest is None:
        raise ModuleError(f"'{out}' is no project of ttcodegen: it has no {MANIFEST} of it")
    module = str(manifest.get("module"))
    library = _find_library(out, module)
    folder = Path(data) if data is not None else out / "data"
    loaded = LoadedModule(library, manifest, folder, device)
    if seed is not None:
        loaded.draw_weights(seed)
    return loaded


def _find_library(out: Path, module: str) -> Path:
    # A build by hand, as the project's README describes it, counts as well.
    for folder in (library_path(out, module).parent, out / "build-cpu"):
        library = folder / f"lib{module}.so"
        if library.is_file():
            return library.absolute()
    try:
        built = build_project(out, module, find_toolchain(), "so").library
    except CompileError as error:
        raise ModuleError(error.render()) from None
    assert built is not None
    return built.absolute()


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def _fitting(values: ArrayLike, signature: TensorSignature) -> np.ndarray:
    """The values as a contiguous array that the library takes for a tensor."""
    array = np.asarray(values)
    what = f"'{signature.name}'"
    if array.shape != signature.shape:
        raise ModuleError(f"{what}: expected the shape {signature.shape}, found {array.shape}")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype not in _DTYPES:
        raise ModuleError(f"{what}: elements of {array.dtype} cannot be used")
    # The library would say so too, but knows less of what was declared.
    floating = array.dtype.kind not in "biu"
    if floating and signature.computed_dtype.kind in "iu":
        raise ModuleError(f"{what}: expected {signature.dtype}, found {array.dtype}")
    return np.require(array, requirements=["C", "A"])


def _in_dtype(array: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    return array != 0 if dtype.kind == "b" else array.astype(dtype, copy=False)
