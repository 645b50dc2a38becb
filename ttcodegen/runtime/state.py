"""State of a loaded module: device tensors that its functions share, and their signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike

from ttcodegen.emission.structure import Structure
from ttcodegen.foundation.array_files import load_array
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.project.manifest import MANIFEST
from ttcodegen.runtime.c_api import (
    DTYPES,
    KINDS,
    LAYOUTS,
    MEMORIES,
    CTensor,
    DeviceTensor,
    ModuleError,
)

WEIGHT_KINDS = ("parameter", "constant")


@dataclass(frozen=True)
class TensorSignature:
    """Signature of an input, weight or output of a function."""

    name: str
    """Name in the source model."""
    field: str
    """Name as an identifier, for keyword arguments."""
    kind: str
    """input, parameter, constant or output."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    """Dtype of the source model, in which outputs are returned."""
    computed_dtype: np.dtype[Any]
    """Dtype in which the device passes it."""
    data_type: str
    """Device data type: `bfloat16`, `bfloat8_b`, ..."""
    layout: str
    """tile or row_major."""
    buffer_type: str
    """dram, l1 or system_memory (the host)."""


def signature_of(tensor: CTensor, row: Mapping[str, Any] | None) -> TensorSignature:
    """Signature of a tensor by the library, and by its manifest if there is one."""
    computed = DTYPES[int(tensor.dtype)]
    return TensorSignature(
        tensor.name.decode("utf-8", "replace"),
        tensor.field.decode("utf-8", "replace"),
        KINDS[int(tensor.kind)],
        tuple(int(tensor.shape[i]) for i in range(tensor.rank)),
        computed if row is None else _dtype(str(row["source_dtype"])),
        computed,
        tensor.data_type.decode(),
        LAYOUTS[int(tensor.layout)],
        MEMORIES[int(tensor.memory)],
    )


def structure_of(row: Mapping[str, Any] | None) -> tuple[Structure, Structure] | None:
    """Structures of a function's inputs and outputs, if its manifest has them."""
    content = row.get("structure") if row is not None else None
    if content is None:
        return None
    try:
        return Structure.from_json(content["inputs"]), Structure.from_json(content["outputs"])
    except (KeyError, TypeError, ValueError):
        raise ModuleError(f"{MANIFEST} is damaged: compile the model again") from None


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def fitting(values: ArrayLike, signature: TensorSignature) -> np.ndarray:
    """Converts values to a contiguous array that the library accepts for a tensor."""
    what = f"'{signature.name}'"
    # numpy drops the masks of arrays in a list.
    parts = cast("Sequence[ArrayLike]", values) if isinstance(values, list | tuple) else ()
    if any(map(np.ma.is_masked, (cast("object", values), *parts))):
        raise ModuleError(f"{what}: elements of the array are masked; fill them (.filled(value))")
    array = np.asarray(values)
    if array.shape != signature.shape:
        raise ModuleError(f"{what}: expected the shape {signature.shape}, found {array.shape}")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype not in DTYPES:
        raise ModuleError(f"{what}: elements of {array.dtype} cannot be used")
    # Checked here for a better message than the library's.
    floating = array.dtype.kind not in "biu"
    if floating and signature.computed_dtype.kind in "iu":
        raise ModuleError(f"{what}: expected {signature.dtype}, found {array.dtype}")
    return np.require(array, requirements=["C", "A"])


def in_dtype(array: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    return array != 0 if dtype.kind == "b" else array.astype(dtype, copy=False)


class StateFunction(Protocol):
    """Loaded function, as its state uses it."""

    name: str
    inputs: tuple[TensorSignature, ...]
    outputs: tuple[TensorSignature, ...]

    def to_device(self, values: ArrayLike, name: str | int = 0) -> DeviceTensor:
        """Places values as an input requires."""
        ...

    def to_layout(self, tensor: DeviceTensor, name: str | int = 0) -> DeviceTensor:
        """Converts a tensor to an input's placement."""
        ...

    def submit_all(self, inputs: Sequence[DeviceTensor]) -> list[DeviceTensor]:
        """Runs the function on tensors and leaves the outputs on the device."""
        ...


@dataclass(frozen=True)
class _Row:
    """State tensor, as described by the manifest."""

    name: str
    file: str | None
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


class ModuleState:
    """Tensors that stay on the device between calls, such as the model's buffers.

    Each function reads some, and replaces those that it mutates. Initially, and after `reset`, they
    have the model's values at compile time.
    """

    def __init__(
        self, manifest: Mapping[str, Any], data: Path, functions: Mapping[str, StateFunction]
    ) -> None:
        try:
            self._rows = [
                _Row(row["name"], row.get("file"), row["inputs"], row["outputs"])
                for row in manifest.get("state", ())
            ]
        except (KeyError, TypeError, AttributeError):
            raise ModuleError(f"{MANIFEST} is damaged: compile the model again") from None
        self._data = data
        self._functions = {function.name: function for function in functions.values()}
        self._tensors: dict[str, DeviceTensor] = {}
        self._set: dict[str, np.ndarray] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all tensors."""
        return tuple(row.name for row in self._rows)

    def inputs_of(self, function: StateFunction) -> dict[int, str]:
        """State tensors that a function reads, by input index."""
        names = {row.inputs[function.name]: row.name for row in self._rows
                 if function.name in row.inputs}  # fmt: skip
        return {i: names[each.name] for i, each in enumerate(function.inputs) if each.name in names}

    def outputs_of(self, function: StateFunction) -> dict[int, str]:
        """State tensors that a function mutates, by output index."""
        names = {row.outputs[function.name]: row.name for row in self._rows
                 if function.name in row.outputs}  # fmt: skip
        found = ((i, names.get(each.name)) for i, each in enumerate(function.outputs))
        return {index: name for index, name in found if name is not None}

    def run(self, function: StateFunction, arrays: Mapping[int, Any]) -> list[np.ndarray | None]:
        """Runs a function on the state and the other inputs, by input index.

        Returns:
            The outputs; None for those that are part of the state.

        Raises:
            ModuleError: if the arrays do not fit, or the run fails.
        """
        tensors = self.submit(function, arrays)
        return [None if tensor is None else tensor.numpy() for tensor in tensors]

    def submit(
        self, function: StateFunction, given: Mapping[int, Any]
    ) -> list[DeviceTensor | None]:
        """As `run`, on arrays or device tensors; outputs stay on the device."""
        taken, changed = self.inputs_of(function), self.outputs_of(function)
        inputs: list[DeviceTensor] = []
        for index in range(len(function.inputs)):
            if index in taken:
                inputs.append(self._tensor(function, index, taken[index]))
            elif isinstance(given[index], DeviceTensor):
                inputs.append(function.to_layout(given[index], index))
            else:
                inputs.append(function.to_device(given[index], index))
        found: list[DeviceTensor | None] = []
        for index, tensor in enumerate(function.submit_all(inputs)):
            if index in changed:
                self._tensors[changed[index]] = tensor
            found.append(None if index in changed else tensor)
        return found

    def call(self, name: str, *given: Any) -> DeviceTensor:
        """Runs a function on the state and its other inputs, arrays or device tensors.

        Returns:
            The first output that is not part of the state, on the device.

        Raises:
            ModuleError: if the inputs do not fit, or the run fails.
        """
        function = self._functions[name]
        taken = self.inputs_of(function)
        own = (index for index in range(len(function.inputs)) if index not in taken)
        outputs = self.submit(function, dict(zip(own, given, strict=True)))
        return next(tensor for tensor in outputs if tensor is not None)

    def _tensor(self, function: StateFunction, index: int, name: str) -> DeviceTensor:
        if name in self._tensors:
            tensor = function.to_layout(self._tensors[name], index)
        else:
            tensor = function.to_device(self._initial(name, function, index), index)
        self._tensors[name] = tensor
        return tensor

    def _initial(self, name: str, function: StateFunction, index: int) -> np.ndarray:
        signature = function.inputs[index]
        if name in self._set:
            return self._set[name]
        file = next(row.file for row in self._rows if row.name == name)
        if file is None:
            return np.zeros(signature.shape, signature.computed_dtype)
        try:
            return load_array(self._data / Path(file).name)
        except CompileError as error:
            raise ModuleError(str(error)) from None

    def values(self) -> dict[str, np.ndarray]:
        """Elements of all state tensors, by name."""
        found: dict[str, np.ndarray] = {}
        for row in self._rows:
            function = self._functions[next(iter(row.inputs))]
            index = next(i for i, name in self.inputs_of(function).items() if name == row.name)
            found[row.name] = self._tensor(function, index, row.name).numpy()
        return found

    def set(self, values: Mapping[str, Any]) -> None:
        """Replaces state tensors by name.

        Raises:
            ModuleError: for an unknown name; the next call checks the shape.
        """
        for name, array in values.items():
            if name not in self.names:
                known = ", ".join(self.names) or "none"
                raise ModuleError(f"there is no tensor '{name}' in the state, only {known}")
            self._set[name] = np.asarray(array)
            self._tensors.pop(name, None)

    def reset(self, names: Sequence[str] | None = None) -> None:
        """Resets all state tensors, or the given ones, to the compiled values."""
        for name in self.names if names is None else names:
            self._set.pop(name, None)
            self._tensors.pop(name, None)
