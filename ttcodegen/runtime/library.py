"""Execution of a built project's shared object on numpy arrays.

model = ttcodegen.load("out/")
probabilities = model.forward(images)
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ttcodegen.emission.structure import Structure, StructureError
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.project.manifest import MANIFEST, read_manifest
from ttcodegen.project.settings import Check, ProjectOptions, ProjectSettings
from ttcodegen.runtime.buckets import BucketCalls
from ttcodegen.runtime.built_library import find_library
from ttcodegen.runtime.c_api import (
    API_VERSION,
    CArray,
    DeviceTensor,
    ModuleError,
    array_argument,
    load_c_api,
)
from ttcodegen.runtime.generation import Generation
from ttcodegen.runtime.state import (
    WEIGHT_KINDS,
    ModuleState,
    TensorSignature,
    fitting,
    in_dtype,
    signature_of,
    structure_of,
)

__all__ = [
    "DeviceTensor",
    "LoadedFunction",
    "LoadedModule",
    "ModuleError",
    "TensorSignature",
    "load",
    "load_library",
]


class LoadedFunction:
    """Entry function of a loaded module, callable on arrays.

    Inputs are passed in the order of `inputs`, or as keywords by name or field. They are converted
    to the device's dtypes if that only rounds. Results have the source model's dtypes: one array,
    or a tuple unless there is exactly one.
    """

    def __init__(
        self, module: LoadedModule, index: int, row: Mapping[str, Any] | None = None
    ) -> None:
        self._module = module
        self.index = index
        self.name = str(module.library.call("function_name", index).decode("utf-8", "replace"))
        rows: Mapping[str, Sequence[Mapping[str, Any]]] | None = row
        self.inputs = self._signatures("input", rows)
        self.weights = self._signatures("weight", rows)
        self.outputs = self._signatures("output", rows)
        self.arguments = (*self.inputs, *self.weights)
        """Inputs and weights; in the source's order if the manifest has it."""
        if rows is not None:
            inputs, weights = iter(self.inputs), iter(self.weights)
            self.arguments = tuple(
                next(weights if argument["kind"] in WEIGHT_KINDS else inputs)
                for argument in rows["inputs"]
            )
        self._structure = structure_of(row)

    def _signatures(
        self, kind: str, rows: Mapping[str, Sequence[Mapping[str, Any]]] | None
    ) -> tuple[TensorSignature, ...]:
        """Signatures of a kind of tensors, matched by index, as an output may share an input's
        name."""
        tensors = self._module.library.describe(kind, self.index)
        if rows is None:
            return tuple(signature_of(tensor, None) for tensor in tensors)
        kinds = WEIGHT_KINDS if kind == "weight" else (kind,)
        own = [
            row
            for row in rows[f"{'out' if kind == 'output' else 'in'}puts"]
            if row["kind"] in kinds
        ]
        fields = [tensor.field.decode() for tensor in tensors]
        if fields != [row["cpp_name"] for row in own]:
            raise ModuleError(f"{MANIFEST} and the library disagree: build the project again")
        return tuple(signature_of(tensor, row) for tensor, row in zip(tensors, own, strict=True))

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Runs the function.

        A function of a model compiled from Python takes and returns the model's nested structures.
        Buffers that it mutates are the module's `state` unless passed as `buffers`. Raises:
        ModuleError: if the arrays do not fit the inputs, or the run fails.
        """
        if self._structure is not None and "buffers" not in named and self._takes_state():
            return self._run_on_state(arrays, named)
        outputs = self.run(self.flattened(arrays, named))
        return self.nested(
            [
                in_dtype(array, signature.dtype)
                for array, signature in zip(outputs, self.outputs, strict=True)
            ]
        )

    def nested(self, results: Sequence[np.ndarray]) -> Any:
        """Nests the ordered outputs in the model's structure."""
        if self._structure is not None:
            return self._structure[1].build(results)
        return results[0] if len(results) == 1 else tuple(results)

    def _takes_state(self) -> bool:
        return bool(self._module.state.inputs_of(self))

    def _run_on_state(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Runs the function on the module's state; returns the model's own result."""
        assert self._structure is not None
        state = self._module.state
        taken = state.inputs_of(self)
        positional, by_name = self._structure[0].parts
        entries = {k: p for k, p in zip(by_name.keys, by_name.parts, strict=True) if k != "buffers"}
        own = Structure("dict", keys=tuple(entries), parts=tuple(entries.values()))
        if len(arrays) < len(positional.parts) or set(named) - set(entries):
            rest = [each for i, each in enumerate(self.inputs) if i not in taken]
            ordered = self._ordered(arrays, named, rest)
            indices = (i for i in range(len(self.inputs)) if i not in taken)
            found = dict(zip(indices, ordered, strict=True))
        else:
            whole = Structure("tuple", parts=(positional, own))
            found = self._flatten(whole, (tuple(arrays), dict(named)))
        results = [
            None if array is None else in_dtype(array, signature.dtype)
            for array, signature in zip(state.run(self, found), self.outputs, strict=True)
        ]
        # The second element of the pair holds the mutated buffers.
        result, changed = self._structure[1].parts
        if all(results[part.index] is None for part in changed.parts):
            return result.build(results)
        return self._structure[1].build(results)

    def _flatten(self, structure: Structure, given: Any) -> dict[int, Any]:
        try:
            return dict(structure.tensors(given))
        except StructureError as error:
            raise ModuleError(f"'{self.name}': {error}") from None

    def flattened(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """Flattens nested arguments to the ordered inputs.

        Raises:
            ModuleError: if there are too few or too many, or they are nested differently.
        """
        if self._structure is None:
            return self._ordered(arrays, named)
        positional, by_name = self._structure[0].parts
        if len(arrays) < len(positional.parts) or set(named) - set(by_name.keys):
            # Tensors at the top level can be passed by name.
            return self._ordered(arrays, named)
        given = dict(named)
        state = next(
            (p for k, p in zip(by_name.keys, by_name.parts, strict=True) if k == "buffers"), None
        )
        if state is not None and isinstance(given.get("buffers"), Mapping):
            # Ignore buffers that do not change: they are constants here.
            buffers: Mapping[str, Any] = given["buffers"]
            given["buffers"] = {k: v for k, v in buffers.items() if k in state.keys}
        found = self._flatten(self._structure[0], (tuple(arrays), given))
        return [found[index] for index in range(len(self.inputs))]

    def run(self, arrays: Sequence[ArrayLike]) -> list[np.ndarray]:
        """Runs the function; outputs have the device's dtypes.

        Raises:
            ModuleError: if the arrays do not fit the inputs, or the run fails.
        """
        if len(arrays) != len(self.inputs):
            raise ModuleError(f"'{self.name}' takes {len(self.inputs)} inputs, found {len(arrays)}")
        inputs = [fitting(a, signature) for a, signature in zip(arrays, self.inputs, strict=True)]
        outputs = [np.empty(o.shape, o.computed_dtype) for o in self.outputs]
        self._module.run(self.index, inputs, outputs)
        return outputs

    def set_weight(self, index: int, values: ArrayLike) -> None:
        """Replaces the weight at an index of `weights`.

        Raises:
            ModuleError: if the values do not fit.
        """
        array = fitting(values, self.weights[index])
        argument = ctypes.byref(array_argument(array))
        self._module.locked("set_weight", self.index, index, argument)

    def to_device(self, values: ArrayLike, name: str | int = 0) -> DeviceTensor:
        """Places values as an input requires, by default the first.

        Raises:
            ModuleError: if the values do not fit it.
        """
        index = self._input_index(name)
        array = fitting(values, self.inputs[index])
        argument = ctypes.byref(array_argument(array))
        return self._module.made_tensor("to_device", self.index, index, argument)

    def to_layout(self, tensor: DeviceTensor, name: str | int = 0) -> DeviceTensor:
        """Converts a tensor of any module to the placement of an input.

        Shares its memory if it is already so placed; device tensors are converted on the device.

        Raises:
            ModuleError: if it has another shape, is on another device, or is of an incompatible
                library.
        """
        index = self._input_index(name)
        return self._module.made_tensor("to_layout", self.index, index, tensor.handle)

    def submit(
        self, *tensors: DeviceTensor | ArrayLike, **named: DeviceTensor | ArrayLike
    ) -> DeviceTensor | tuple[DeviceTensor, ...]:
        """Runs the function on placed tensors and leaves the outputs on the device.

        Arrays among the inputs are placed first.

        Raises:
            ModuleError: if an input does not fit or is placed differently, or the run fails.
        """
        inputs = [
            value if isinstance(value, DeviceTensor) else self.to_device(value, index)
            for index, value in enumerate(self._ordered(tensors, named))
        ]
        outputs = self.submit_all(inputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def submit_all(self, inputs: Sequence[DeviceTensor]) -> list[DeviceTensor]:
        """As `submit`, on all inputs in order; returns all outputs as a list."""
        return self._module.submit(self.index, inputs, len(self.outputs))

    def _input_index(self, name: str | int) -> int:
        for index, signature in enumerate(self.inputs):
            if name in (index, signature.field, signature.name):
                return index
        names = ", ".join(signature.field for signature in self.inputs) or "nothing"
        raise ModuleError(f"'{self.name}' has no input {name!r}; it takes {names}")

    def _ordered(
        self,
        arrays: Sequence[Any],
        named: Mapping[str, Any],
        inputs: Sequence[TensorSignature] | None = None,
    ) -> list[Any]:
        """Orders inputs that are passed by position or by name, once each."""
        inputs = self.inputs if inputs is None else inputs
        names = ", ".join(signature.field for signature in inputs) or "nothing"
        if len(arrays) > len(inputs):
            raise ModuleError(
                f"'{self.name}' takes {len(inputs)} inputs ({names}), found {len(arrays)}"
            )
        rest = dict(named)
        ordered = list(arrays)
        for signature in inputs[len(arrays) :]:
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
    """Module opened on a device: its functions are attributes, and items by name.

    A module with one function is callable. As a context manager it closes the device; calls of
    several threads are serialized.
    """

    def __init__(
        self,
        library: Path,
        name: str,
        manifest: Mapping[str, Any] | None,
        data: Path | None,
        device: int | LoadedModule,
    ) -> None:
        self._handle = ctypes.c_void_p()
        self._lock = threading.Lock()
        self.name = name
        self.library = load_c_api(library, self.name)
        folder = os.fsencode(data) if data is not None else None
        place = ctypes.byref(self._handle)
        if isinstance(device, LoadedModule):
            other = device.open_handle()
            self.library.checked("open_beside", API_VERSION, folder, other, place)
        else:
            self.library.checked("open", API_VERSION, folder, device, place)
        count = int(self.library.call("function_count"))
        self._functions: dict[str, LoadedFunction] = {}
        self._files: dict[tuple[str, str], str] = {}
        self._generation: Generation | None = None
        self._buckets: BucketCalls | None = None
        self.state = ModuleState({}, Path(), {})
        """Tensors that functions mutate and share, such as the model's buffers."""
        if manifest is None:
            for index in range(count):
                function = LoadedFunction(self, index)
                self._functions[function.name] = function
            return
        rows: list[dict[str, Any]] = manifest["functions"]
        if len(rows) != count:
            raise ModuleError(f"{MANIFEST} and the library disagree: build the project again")
        self._functions |= {
            str(row["cpp_name"]): LoadedFunction(self, index, row) for index, row in enumerate(rows)
        }
        self._files = {
            (str(row["name"]), str(argument["name"])): str(argument["file"])
            for row in rows
            for argument in row["inputs"]
            if "file" in argument
        }
        self.state = ModuleState(manifest, data or Path(), self._functions)
        content = manifest.get("generation")
        self._generation = None if content is None else Generation(content, self.state.call)
        content = manifest.get("buckets")
        named = {function.name: function for function in self.functions}
        self._buckets = None if content is None else BucketCalls(content, named)

    @property
    def functions(self) -> tuple[LoadedFunction, ...]:
        """All functions."""
        return tuple(self._functions.values())

    @property
    def generation(self) -> Generation:
        """Token generation of a decoder.

        Raises:
            ModuleError: if the module was not compiled for it.
        """
        if self._generation is None:
            raise ModuleError(f"'{self.name}' was not compiled to generate tokens")
        return self._generation

    @property
    def buckets(self) -> BucketCalls:
        """Function of a model with dynamic dimensions.

        Raises:
            ModuleError: if no dimension of the model is dynamic.
        """
        if self._buckets is None:
            raise ModuleError(f"'{self.name}' was not compiled for dynamic dimensions")
        return self._buckets

    def __getattr__(self, name: str) -> Any:
        functions: dict[str, LoadedFunction] = self.__dict__.get("_functions", {})
        if name in functions:
            return functions[name]
        buckets: BucketCalls | None = self.__dict__.get("_buckets")
        if buckets is not None and name == buckets.name:
            return buckets
        if name == "generate" and self.__dict__.get("_generation"):
            return self.generation
        if name == "generate_text" and self.__dict__.get("_generation"):
            return self.generation.generate_text
        raise AttributeError(f"the module has no function '{name}', only {', '.join(functions)}")

    def __getitem__(self, name: str) -> LoadedFunction:
        for function in self.functions:
            if function.name == name:
                return function
        return self._functions[name]

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Runs the only function, or the smallest bucket that fits.

        Raises:
            ModuleError: if there are several functions, or as the function does.
        """
        if self._buckets is not None:
            return self._buckets(*arrays, **named)
        if len(self._functions) != 1:
            names = ", ".join(self._functions)
            raise ModuleError(f"the module has several functions, name one of them: {names}")
        return self.functions[0](*arrays, **named)

    def set_weight(self, name: str, values: ArrayLike) -> None:
        """Replaces a weight, by its name or field, in each function that has it.

        Raises:
            ModuleError: if no function has it, or the values do not fit.
        """
        weights = [
            (function, index, weight, self._files.get((function.name, weight.name)))
            for function in self.functions
            for index, weight in enumerate(function.weights)
        ]
        named = [each for each in weights if name in (each[2].name, each[2].field)]
        if not named:
            known = sorted({weight.field for _, _, weight, _ in weights})
            raise ModuleError(f"there is no weight '{name}', only {', '.join(known) or 'none'}")
        # A tensor of the model may have different names in its functions.
        files = {file for *_, file in named} - {None}
        for each in weights:
            if each in named or each[3] in files:
                each[0].set_weight(each[1], values)

    def draw_weights(self, seed: int) -> None:
        """Draws random weights for those without file or value."""
        for function in self.functions:
            self.locked("draw_weights", function.index, seed)

    def run(
        self, function: int, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]
    ) -> None:
        """Runs a function on fitting arrays, which `LoadedFunction` prepares."""
        given = (CArray * len(inputs))(*(array_argument(array) for array in inputs))
        taken = (CArray * len(outputs))(*(array_argument(array) for array in outputs))
        self.locked("run", function, given, len(inputs), taken, len(outputs))

    def submit(
        self, function: int, inputs: Sequence[DeviceTensor], count: int
    ) -> list[DeviceTensor]:
        """Runs a function that has `count` outputs on device tensors."""
        given = (ctypes.c_void_p * len(inputs))(*(tensor.handle for tensor in inputs))
        taken = (ctypes.c_void_p * count)()
        self.locked("submit", function, given, len(inputs), taken, count)
        return [DeviceTensor(self.library, handle) for handle in taken if handle is not None]

    def made_tensor(self, name: str, *arguments: Any) -> DeviceTensor:
        """Calls a C API function that returns a tensor through its last argument."""
        handle = ctypes.c_void_p()
        self.locked(name, *arguments, ctypes.byref(handle))
        assert handle.value is not None
        return DeviceTensor(self.library, handle.value)

    def open_handle(self) -> ctypes.c_void_p:
        """Handle of the module in the C API.

        Raises:
            ModuleError: if it is closed.
        """
        if not self._handle:
            raise ModuleError(f"the module '{self.name}' is closed")
        return self._handle

    def locked(self, name: str, *arguments: Any) -> None:
        """Calls a C API function on the module under its lock.

        Raises:
            ModuleError: if the module is closed, or with the library's message.
        """
        with self._lock:
            self.library.checked(name, self.open_handle(), *arguments)

    def close(self) -> None:
        """Closes the device; the module is unusable afterwards."""
        with self._lock:
            if self._handle:
                self.state.reset()
                self.library.call("close", self._handle)
                self._handle = ctypes.c_void_p()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self.__dict__.get("_handle") and "library" in self.__dict__:
            self.close()


def load(
    path: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    device: int | LoadedModule = 0,
    seed: int | None = None,
    out: str | os.PathLike[str] | None = None,
    target: str = "ttnn",
    arch: str = "",
    system_desc: str | None = None,
    check: Check = False,
    force: bool = False,
    **settings: Unpack[ProjectSettings],
) -> LoadedModule:
    """Loads a project; builds its shared object unless it is current.

    Args:
        path: the project's folder.
        data: the folder with the weights, by default the project's.
        device: the device's number, or a loaded module whose device to share, so that the modules
            can exchange device tensors.
        seed: seed of random values of weights without file; without it they have to be set before a
            run.
        out: the folder of the project, if `path` is a model in MLIR, which is then compiled.
        target: ttnn or ttmetal, for a model that is compiled; likewise the following.
        arch: the card, by default wormhole_b0.
        system_desc: the system, as a .ttsys file or the name of a card.
        check: compare the project's outputs with the reference runs.
        force: write into an unrelated folder, or overwrite edits.
        settings: further options of the command line; see
            `ttcodegen.project.settings.ProjectSettings`.

    Raises:
        ModuleError: if there is no such project, or it cannot be compiled, built or opened.
    """
    options = ProjectOptions(
        target,
        arch,
        system_desc,
        check=check,
        force=force,
        seed=seed if check or settings.get("embed_goldens") else None,
        **settings,
    )
    out = _project_of(Path(path), out, options)
    manifest = read_manifest(out)
    if manifest is None:
        raise ModuleError(f"'{out}' is no project of ttcodegen: it has no {MANIFEST} of it")
    module = str(manifest.get("module"))
    library = find_library(out, module)
    folder = Path(data) if data is not None else out / "data"
    loaded = LoadedModule(library, module, manifest, folder, device)
    if seed is not None:
        loaded.draw_weights(seed)
    return loaded


def _project_of(path: Path, out: str | os.PathLike[str] | None, options: ProjectOptions) -> Path:
    """Folder of the loaded project; a model is compiled into it."""
    if path.is_dir() or not path.exists():
        if out is not None or options != ProjectOptions():
            raise ModuleError(f"'{path}' is no model: there is nothing to compile with options")
        return path
    if out is None:
        raise ModuleError(f"'{path}' is a model: give the folder of its project, out=...")
    from ttcodegen.project.settings import compile_file

    try:
        return compile_file(path, Path(out), options)
    except CompileError as error:
        raise ModuleError(error.render()) from None


def load_library(path: Path) -> LoadedModule:
    """Loads a shared object by itself.

    Uses its project's manifest, if present, for the order of arguments and the source's dtypes.

    Raises:
        ModuleError: if it is no project library, of another version, or cannot be opened.
    """
    name = path.name.removeprefix("lib").removesuffix(".so")
    for folder in (path.absolute().parent.parent, path.absolute().parent):
        manifest = read_manifest(folder)
        if manifest is not None and manifest.get("module") == name:
            return LoadedModule(path.absolute(), name, manifest, folder / "data", 0)
    return LoadedModule(path.absolute(), name, None, None, 0)
