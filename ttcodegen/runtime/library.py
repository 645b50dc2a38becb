"""Runs a built project from Python: its shared object, on numpy arrays.

model = ttcodegen.load("out/")
probabilities = model.forward(images)
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ttcodegen.emission.description import Structure, StructureError
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.project.building import (
    build_project,
    is_current,
    library_path,
    source_hashes,
    wait_for_builds,
)
from ttcodegen.project.manifest import MANIFEST, manifest_hashes, read_manifest
from ttcodegen.project.settings import Check, ProjectOptions, ProjectSettings
from ttcodegen.project.toolchain import find_toolchain
from ttcodegen.runtime.c_api import (
    API_VERSION,
    CArray,
    DeviceTensor,
    ModuleError,
    array_argument,
    describe_library,
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
    """An entry function of a loaded module: a callable on arrays.

    Inputs are given in the order of `inputs`, or as keywords by the names or fields there. They are
    converted to the dtypes of the device where that loses no more than rounding does; what is
    returned has the dtypes of the source model: one array, or a tuple if there is not exactly one.
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
        """Inputs and weights; in the order of the source if the manifest has it."""
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
        """The tensors of a kind. Their indices among those of their kind say which they are: an
        output may be called as an input is."""
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

        A function of a model that was compiled from Python takes its arguments as the model does,
        in tuples, lists and dictionaries, and gives its results so. Buffers that it changes are
        those of the module's `state` unless they are given as `buffers`.

        Raises:
            ModuleError: if the arrays do not fit the inputs, or the run fails.
        """
        if self._structure is not None and "buffers" not in named and self._takes_state():
            return self._run_on_state(arrays, named)
        outputs = self.run(self._flattened(arrays, named))
        results = [
            in_dtype(array, signature.dtype)
            for array, signature in zip(outputs, self.outputs, strict=True)
        ]
        if self._structure is not None:
            return self._structure[1].build(results)
        return results[0] if len(results) == 1 else tuple(results)

    def _takes_state(self) -> bool:
        return bool(self._module.state.inputs_of(self))

    def _run_on_state(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Runs the function on the buffers that the module keeps; gives the model's own result."""
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
            found = self._taken_apart(whole, (tuple(arrays), dict(named)))
        results = [
            None if array is None else in_dtype(array, signature.dtype)
            for array, signature in zip(state.run(self, found), self.outputs, strict=True)
        ]
        # The second part of a pair is all that changed.
        result, changed = self._structure[1].parts
        if all(results[part.index] is None for part in changed.parts):
            return result.build(results)
        return self._structure[1].build(results)

    def _taken_apart(self, structure: Structure, given: Any) -> dict[int, Any]:
        try:
            return dict(structure.tensors(given))
        except StructureError as error:
            raise ModuleError(f"'{self.name}': {error}") from None

    def _flattened(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """The inputs in order, taken out of what they hang together in."""
        if self._structure is None:
            return self._ordered(arrays, named)
        positional, by_name = self._structure[0].parts
        if len(arrays) < len(positional.parts) or set(named) - set(by_name.keys):
            # Tensors that are arguments themselves can be given by their names.
            return self._ordered(arrays, named)
        given = dict(named)
        state = next(
            (p for k, p in zip(by_name.keys, by_name.parts, strict=True) if k == "buffers"), None
        )
        if state is not None and isinstance(given.get("buffers"), Mapping):
            # All buffers of a module may be given; those that do not change are constants here.
            buffers: Mapping[str, Any] = given["buffers"]
            given["buffers"] = {k: v for k, v in buffers.items() if k in state.keys}
        found = self._taken_apart(self._structure[0], (tuple(arrays), given))
        return [found[index] for index in range(len(self.inputs))]

    def run(self, arrays: Sequence[ArrayLike]) -> list[np.ndarray]:
        """The outputs as the device computes them, in its dtypes.

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
        """Replaces the weight of that index in `weights`.

        Raises:
            ModuleError: if the values do not fit.
        """
        array = fitting(values, self.weights[index])
        argument = ctypes.byref(array_argument(array))
        self._module.locked("set_weight", self.index, index, argument)

    def to_device(self, values: ArrayLike, name: str | int = 0) -> DeviceTensor:
        """Values as the function takes them for an input, the first or the one of that name.

        Raises:
            ModuleError: if the values do not fit it.
        """
        index = self._input_index(name)
        array = fitting(values, self.inputs[index])
        argument = ctypes.byref(array_argument(array))
        return self._module.made_tensor("to_device", self.index, index, argument)

    def to_layout(self, tensor: DeviceTensor, name: str | int = 0) -> DeviceTensor:
        """A tensor of any module as the function takes it for an input: the same memory if it is
        placed so already, else converted, on the device if it is there.

        Raises:
            ModuleError: if it has another shape, is on another device, or comes from a library
                that was built otherwise.
        """
        index = self._input_index(name)
        return self._module.made_tensor("to_layout", self.index, index, tensor.handle)

    def submit(
        self, *tensors: DeviceTensor | ArrayLike, **named: DeviceTensor | ArrayLike
    ) -> DeviceTensor | tuple[DeviceTensor, ...]:
        """Runs the function on tensors placed as `inputs` say and leaves the outputs where they
        are; arrays among the inputs are brought to the device first.

        Raises:
            ModuleError: if an input does not fit or is placed otherwise, or the run fails.
        """
        inputs = [
            value if isinstance(value, DeviceTensor) else self.to_device(value, index)
            for index, value in enumerate(self._ordered(tensors, named))
        ]
        outputs = self.submit_all(inputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def submit_all(self, inputs: Sequence[DeviceTensor]) -> list[DeviceTensor]:
        """As `submit`, on all inputs in order; gives all outputs."""
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
        """The inputs in order; each is given once, by its position or by its name."""
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
    """A module opened on a device: its functions are attributes, and items by their names.

    With one function the module itself can be called. It is a context manager that closes the
    device; calls from several threads wait for each other.
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
        self.state = ModuleState({}, Path(), {})
        """Tensors that functions change and share, as the model's buffers."""
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

    @property
    def functions(self) -> tuple[LoadedFunction, ...]:
        """All functions."""
        return tuple(self._functions.values())

    @property
    def generation(self) -> Generation:
        """Prompts and steps of a decoder that was compiled to generate tokens.

        Raises:
            ModuleError: if it is none.
        """
        if self._generation is None:
            raise ModuleError(f"'{self.name}' was not compiled to generate tokens")
        return self._generation

    def __getattr__(self, name: str) -> Any:
        functions: dict[str, LoadedFunction] = self.__dict__.get("_functions", {})
        if name in functions:
            return functions[name]
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
        weights = [
            (function, index, weight, self._files.get((function.name, weight.name)))
            for function in self.functions
            for index, weight in enumerate(function.weights)
        ]
        named = [each for each in weights if name in (each[2].name, each[2].field)]
        if not named:
            known = sorted({weight.field for _, _, weight, _ in weights})
            raise ModuleError(f"there is no weight '{name}', only {', '.join(known) or 'none'}")
        # What is one tensor of the model may have another name in another function.
        files = {file for *_, file in named} - {None}
        for each in weights:
            if each in named or each[3] in files:
                each[0].set_weight(each[1], values)

    def draw_weights(self, seed: int) -> None:
        """Draws the weights that have no file and were not set."""
        for function in self.functions:
            self.locked("draw_weights", function.index, seed)

    def run(
        self, function: int, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]
    ) -> None:
        """Runs a function on arrays that fit; `LoadedFunction` makes them."""
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
        """The tensor that a function of the C API gives through its last argument."""
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
        """Calls a function of the C API on the model, one thread at a time.

        Raises:
            ModuleError: if the module is closed, or with the library's message.
        """
        with self._lock:
            self.library.checked(name, self.open_handle(), *arguments)

    def close(self) -> None:
        """Closes the device; the module cannot be used any more."""
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
    """Loads a project that ttcodegen wrote; builds its shared object unless it was built of the
    sources as they are now.

    Args:
        path: the project's folder.
        data: the folder with the weights; that of the project if not given.
        device: the number of the device, or a module that was loaded before, to be on the device
            that it is on: then what one of them leaves there the other one can take.
        seed: draws the weights that have no file; otherwise they have to be set before a run.
        out: the folder of the project, if `path` is a model in MLIR: it is compiled first.
        target: ttnn or ttmetal, for a model that is compiled; so are the following.
        arch: the card, wormhole_b0 if not given.
        system_desc: the system, as a .ttsys file or the name of a card.
        check: compare what the project computes with the other meanings.
        force: write into a folder of others, or overwrite edits.
        settings: further options of the command line; see
            `ttcodegen.project.settings.ProjectSettings`.

    Raises:
        ModuleError: if there is no such project, or it cannot be compiled, built or opened.
    """
    options = ProjectOptions(
        target, arch, system_desc, check=check, force=force, seed=seed or 0, **settings
    )
    out = _project_of(Path(path), out, options)
    manifest = read_manifest(out)
    if manifest is None:
        raise ModuleError(f"'{out}' is no project of ttcodegen: it has no {MANIFEST} of it")
    module = str(manifest.get("module"))
    library = _find_library(out, module)
    folder = Path(data) if data is not None else out / "data"
    loaded = LoadedModule(library, module, manifest, folder, device)
    if seed is not None:
        loaded.draw_weights(seed)
    return loaded


def _project_of(path: Path, out: str | os.PathLike[str] | None, options: ProjectOptions) -> Path:
    """The folder of the project that is loaded; a model is compiled into it."""
    if path.is_dir() or not path.exists():
        if out is not None or replace(options, seed=0) != ProjectOptions():
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
    """Loads a shared object by itself. What the manifest of its project has beyond the C API is
    used if it is there: the order of arguments, and the dtypes of the source.

    Raises:
        ModuleError: if it is no library of a project, of another version, or cannot be opened.
    """
    name = path.name.removeprefix("lib").removesuffix(".so")
    for folder in (path.absolute().parent.parent, path.absolute().parent):
        manifest = read_manifest(folder)
        if manifest is not None and manifest.get("module") == name:
            return LoadedModule(path.absolute(), name, manifest, folder / "data", 0)
    return LoadedModule(path.absolute(), name, None, None, 0)


def _find_library(out: Path, module: str) -> Path:
    """The shared object of a project, built again if it was built of other sources."""
    sources = source_hashes(out)
    for folder in (library_path(out, module).parent, out / "build-cpu"):
        wait_for_builds(folder)
        library = folder / f"lib{module}.so"
        if is_current(folder, library, sources) or _holds_sources(out, library, sources):
            return library.absolute()
    try:
        built = build_project(out, module, find_toolchain(), "so").library
    except CompileError as error:
        raise ModuleError(error.render()) from None
    assert built is not None
    return built.absolute()


def _holds_sources(out: Path, library: Path, sources: Mapping[str, str]) -> bool:
    """True if a library that was built by hand was built of these sources: it is newer, and the
    manifest in it has their hashes, unless they were edited."""
    if not library.is_file():
        return False
    built = library.stat().st_mtime_ns
    if any(out.joinpath(path).stat().st_mtime_ns > built for path in sources):
        return False
    try:
        manifest = describe_library(library).embedded
    except CompileError:
        return False
    hashes = manifest_hashes(manifest or {})
    return all(hashes.get(path) == hash_ for path, hash_ in sources.items())
