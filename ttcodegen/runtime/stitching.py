"""Stitching: runs separately compiled programs in sequence on device tensors.

encoder, decoder = load_binary("encoder.ttnn"), load_binary("decoder.ttnn")
with open_device() as device:
    image = device.tensor(values, encoder.programs[0].inputs[0].layout)
    (hidden,) = encoder.programs[0].submit([image])
    hidden = to_layout(hidden, decoder.programs[0].inputs[0].layout)
    (scores,) = decoder.programs[0].submit([hidden])
    print(scores.numpy())

A program says where it takes its inputs and where it leaves its outputs. A tensor placed as the
next program takes it is passed on as it is; another one is converted, on the device if it is there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np

from ttcodegen.dialects.ttcore.shards import Memory
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.flatbuffer.program import Input, Output
from ttcodegen.flatbuffer.program import Program as ProgramRecord
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.layout.placements import stored_bytes
from ttcodegen.numerics.rounding import in_storage_dtype, rounded_for_device
from ttcodegen.runtime.executable import FlatbufferExecutable, open_flatbuffer


@dataclass(frozen=True)
class Transfer:
    """Transfer between host and device."""

    direction: Literal["to device", "to host"]
    size: int
    """Size in bytes, as stored on the device."""


class Device:
    """Owner of tensors between programs; a context manager that releases them."""

    def __init__(self) -> None:
        self.transfers: list[Transfer] = []
        """Transfers between host and device, in order."""
        self._open = True

    def tensor(self, values: np.ndarray, layout: TensorPlacement) -> DeviceTensor:
        """Creates a tensor of the given values and layout.

        Raises:
            CompileError: if the values have another shape.
        """
        array = np.asarray(values)
        if array.shape != layout.shape:
            raise CompileError(f"expected the shape {layout.shape}, found {array.shape}")
        tensor = DeviceTensor(self, layout, rounded_for_device(array, layout.data_type))
        if layout.memory is Memory.DEVICE:
            self.transfers.append(Transfer("to device", stored_bytes(layout)))
        return tensor

    def require_open(self) -> None:
        """Raises CompileError if the device was closed."""
        if not self._open:
            raise CompileError("the device is closed")

    def close(self) -> None:
        """Releases all tensors."""
        self._open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class DeviceTensor:
    """Handle of a tensor on the device."""

    def __init__(self, device: Device, layout: TensorPlacement, array: np.ndarray) -> None:
        self.device = device
        self.layout = layout
        """Shape, data type, page layout and memory."""
        self._array: np.ndarray | None = array

    @property
    def rounded(self) -> np.ndarray:
        """Elements in the compute dtype, rounded to the data type.

        Raises:
            CompileError: if the tensor was deallocated, or the device closed.
        """
        self.device.require_open()
        if self._array is None:
            raise CompileError("the tensor was deallocated")
        return self._array

    def overwrite(self, array: np.ndarray) -> None:
        """Replaces the elements by those that a program wrote."""
        self._array = array

    def numpy(self) -> np.ndarray:
        """Copies the elements to the host: bfloat16 for bf16, float32 for block floats.

        Raises:
            CompileError: if the tensor was deallocated, or the device closed.
        """
        array = in_storage_dtype(self.rounded, self.layout.data_type)
        if self.layout.memory is Memory.DEVICE:
            self.device.transfers.append(Transfer("to host", stored_bytes(self.layout)))
        # Copy, as the tensor may be overwritten later.
        return np.array(array)

    def deallocate(self) -> None:
        """Releases the tensor."""
        self._array = None

    def __repr__(self) -> str:
        return f"DeviceTensor({layout_text(self.layout)})"


@dataclass(frozen=True)
class ProgramTensor:
    """Input or output of a program."""

    name: str
    kind: str
    """input, parameter, constant or output."""
    layout: TensorPlacement
    """Layout that it requires, or will have."""


class StitchedProgram:
    """Program of a file, run on device tensors."""

    def __init__(self, executable: FlatbufferExecutable, index: int) -> None:
        self._executable = executable
        self._index = index
        record = executable.entries[index]
        self.name = record.name
        self.inputs = tuple(_program_tensor(record, entry) for entry in record.inputs)
        """Inputs and weights, in order."""
        self.outputs = tuple(_program_tensor(record, entry) for entry in record.outputs)

    def submit(
        self, tensors: Sequence[DeviceTensor], named: Mapping[str, DeviceTensor] | None = None
    ) -> list[DeviceTensor]:
        """Runs the program; outputs stay on the device.

        Inputs are unchanged unless the program overwrites them.

        Args:
            tensors: the first inputs, in order.
            named: the others, by name.

        Raises:
            CompileError: if inputs are missing, have another layout, or are on different devices,
                or the program cannot be run.
        """
        ordered = self._ordered(tensors, named or {})
        for tensor, declared in zip(ordered, self.inputs, strict=True):
            if tensor.layout != declared.layout:
                raise CompileError(
                    f"the input '{declared.name}' of '{self.name}' should be placed as "
                    f"{layout_text(declared.layout)}, found {layout_text(tensor.layout)}",
                    remedy="convert it with to_layout",
                )
        device = ordered[0].device if ordered else Device()
        if any(tensor.device is not device for tensor in ordered):
            raise CompileError(f"the inputs of '{self.name}' are on different devices")
        results, overwritten = self._executable.run_carried(
            self._index, [tensor.rounded for tensor in ordered]
        )
        for position, array in overwritten.items():
            ordered[position].overwrite(array)
        return [
            DeviceTensor(device, declared.layout, array)
            for declared, array in zip(self.outputs, results, strict=True)
        ]

    def _ordered(
        self, tensors: Sequence[DeviceTensor], named: Mapping[str, DeviceTensor]
    ) -> list[DeviceTensor]:
        rest = dict(named)
        ordered = list(tensors)
        for declared in self.inputs[len(tensors) :]:
            if declared.name not in rest:
                raise CompileError(f"'{self.name}' needs the input '{declared.name}'")
            ordered.append(rest.pop(declared.name))
        if rest or len(ordered) > len(self.inputs):
            names = ", ".join(declared.name for declared in self.inputs) or "nothing"
            raise CompileError(f"'{self.name}' has no further inputs; it takes {names}")
        return ordered


def _program_tensor(record: ProgramRecord, entry: Input | Output) -> ProgramTensor:
    kind = entry.kind if isinstance(entry, Input) else "output"
    return ProgramTensor(entry.name, kind, record.tensors[entry.tensor].type.placement)


class StitchedBinary:
    """Flatbuffer whose programs run on device tensors."""

    def __init__(self, executable: FlatbufferExecutable) -> None:
        self.programs = tuple(
            StitchedProgram(executable, index) for index in range(len(executable.entries))
        )

    def __getitem__(self, name: str) -> StitchedProgram:
        for program in self.programs:
            if program.name == name:
                return program
        names = ", ".join(program.name for program in self.programs)
        raise CompileError(f"there is no program '{name}', only {names}")


def open_device() -> Device:
    """Opens the device on which flatbuffers run in numpy."""
    return Device()


def load_binary(path: str | os.PathLike[str]) -> StitchedBinary:
    """Loads the programs of a `.ttnn` or `.ttm` file.

    Raises:
        CompileError: if it cannot be read, is damaged, or of another version.
    """
    return StitchedBinary(open_flatbuffer(Path(path)))


def to_layout(tensor: DeviceTensor, layout: TensorPlacement) -> DeviceTensor:
    """Converts a tensor to a layout; returns it unchanged if it has that layout.

    Raises:
        CompileError: if it has another shape.
    """
    if tensor.layout == layout:
        return tensor
    if tensor.layout.shape != layout.shape:
        raise CompileError(
            f"a tensor of shape {tensor.layout.shape} cannot be placed as {layout_text(layout)}"
        )
    array = tensor.rounded
    if tensor.layout.data_type is not layout.data_type:
        array = rounded_for_device(array, layout.data_type)
    if tensor.layout.memory is not layout.memory:
        to_device = layout.memory is Memory.DEVICE
        size = stored_bytes(layout if to_device else tensor.layout)
        tensor.device.transfers.append(Transfer("to device" if to_device else "to host", size))
    return DeviceTensor(tensor.device, layout, array)


def layout_text(layout: TensorPlacement) -> str:
    """Describes a layout."""
    shape = "x".join(str(size) for size in layout.shape) or "scalar"
    parts = [shape, layout.data_type.mlir, layout.layout.value, layout.buffer_type]
    return " ".join([*parts, *([layout.memory_layout] if layout.memory_layout else [])])
