"""`ttnn`: what programs of TT-Lang need of it, on numpy; torch tensors are taken where torch is
installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ttcodegen.dialects.datatypes import DataType
from ttcodegen.lang.functions import MATH_FUNCTIONS
from ttcodegen.lang.places import error
from ttcodegen.lang.tensors import Tensor, TensorShape, Tile
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE, default_system

Array = np.ndarray

bfloat16 = DataType.BFLOAT16
float32 = DataType.FLOAT32
bfloat8_b = DataType.BFLOAT8_B
bfloat4_b = DataType.BFLOAT4_B
int32 = DataType.INT32
uint32 = DataType.UINT32
uint16 = DataType.UINT16
uint8 = DataType.UINT8

TILE_LAYOUT = "tile"
ROW_MAJOR_LAYOUT = "row_major"
TILE_SIZE = 32

Shape = TensorShape


@dataclass(frozen=True)
class MemoryConfig:
    """Where a tensor lies; the simulator does not care."""

    buffer_type: str = "dram"
    memory_layout: str = "interleaved"


DRAM_MEMORY_CONFIG = MemoryConfig()
L1_MEMORY_CONFIG = MemoryConfig("l1")


@dataclass(frozen=True)
class CoreCoord:
    """A number of columns and rows."""

    x: int
    y: int


@dataclass(frozen=True)
class Device:
    """The device that is simulated."""

    device_id: int = 0

    def compute_with_storage_grid_size(self) -> CoreCoord:
        """Its cores."""
        rows, columns = default_system(DEFAULT_ARCHITECTURE).chip.grid
        return CoreCoord(columns, rows)


def open_device(device_id: int = 0, **_options: object) -> Device:
    """The device."""
    return Device(device_id)


def close_device(device: Device) -> None:
    """There is nothing to close."""


def synchronize_device(device: Device) -> None:
    """Operations are complete when they return."""


_DEFAULT_TYPES = {
    "float64": float32,
    "float32": float32,
    "float16": bfloat16,
    "bfloat16": bfloat16,
    "int64": int32,
    "int32": int32,
    "bool": uint8,
    "uint32": uint32,
    "uint16": uint16,
    "uint8": uint8,
}


def from_torch(
    tensor: Any,
    dtype: DataType | None = None,
    *,
    layout: str = ROW_MAJOR_LAYOUT,
    device: object = None,
    memory_config: object = None,
    **_options: object,
) -> Tensor:
    """A tensor with the elements of a torch tensor, or of a numpy array.

    Args:
        tensor: the elements.
        dtype: the data type; that of the elements if not given.
        layout: TILE_LAYOUT or ROW_MAJOR_LAYOUT.
        device: kept.
        memory_config: kept.
    """
    name, array = _elements(tensor)
    if dtype is None:
        if name not in _DEFAULT_TYPES:
            raise error(f"there is no data type for elements of the type {name}")
        dtype = _DEFAULT_TYPES[name]
    return _tensor(array, dtype, layout, device, memory_config)


def _elements(tensor: Any) -> tuple[str, Array]:
    """The name of the element type, and the elements in a type that numpy computes with."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(tensor, torch.Tensor):
        name = str(tensor.dtype).removeprefix("torch.")
        plain = tensor.detach().cpu()
        return name, (plain.float() if name == "bfloat16" else plain).numpy()
    array = np.asarray(tensor)
    name = array.dtype.name
    return name, array.astype(np.float32) if array.dtype.kind in "fV" else array


def _tensor(
    array: Array, dtype: DataType, layout: str, device: object, memory_config: object
) -> Tensor:
    if layout not in (TILE_LAYOUT, ROW_MAJOR_LAYOUT):
        raise error(f"there is no layout {layout!r}")
    if dtype.is_float and array.dtype.kind not in "f":
        array = array.astype(np.float32)
    return Tensor(array, dtype, layout, device, memory_config)


def to_torch(tensor: Tensor, **_options: object) -> Any:
    """The elements as a torch tensor if torch is imported, else as a numpy array."""
    array = tensor.stored()
    torch = sys.modules.get("torch")
    if torch is None:
        return array
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(tensor.elements().copy()).to(torch.bfloat16)
    return torch.from_numpy(array.copy())


_generator = np.random.default_rng(0)


def manual_seed(seed: int) -> None:
    """Makes `rand` begin anew."""
    global _generator
    _generator = np.random.default_rng(seed)


def _sizes(shape: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in shape)


def rand(
    shape: Any,
    dtype: DataType = bfloat16,
    *,
    layout: str = TILE_LAYOUT,
    device: object = None,
    memory_config: object = None,
) -> Tensor:
    """A tensor of numbers between 0 and 1."""
    array = _generator.random(_sizes(shape), np.float32)
    return _tensor(array, dtype, layout, device, memory_config)


def full(
    shape: Any,
    fill_value: float,
    dtype: DataType = bfloat16,
    *,
    layout: str = TILE_LAYOUT,
    device: object = None,
    memory_config: object = None,
) -> Tensor:
    """A tensor of one number."""
    array = np.full(_sizes(shape), fill_value, np.float32 if dtype.is_float else dtype.numpy)
    return _tensor(array, dtype, layout, device, memory_config)


def zeros(shape: Any, dtype: DataType = bfloat16, **options: Any) -> Tensor:
    """A tensor of zeros."""
    return full(shape, 0, dtype, **options)


def ones(shape: Any, dtype: DataType = bfloat16, **options: Any) -> Tensor:
    """A tensor of ones."""
    return full(shape, 1, dtype, **options)


def empty(shape: Any, dtype: DataType = bfloat16, **options: Any) -> Tensor:
    """A tensor whose elements are not given; they are zeros here."""
    return zeros(shape, dtype, **options)


def zeros_like(tensor: Tensor, **_options: object) -> Tensor:
    """A tensor of zeros of the shape, the data type and the layout of another."""
    return _like(tensor, np.zeros_like(tensor.elements()))


def _like(tensor: Tensor, array: Array) -> Tensor:
    return Tensor(array, tensor.data_type, tensor.layout, tensor.device(), tensor.memory_config())


def to_layout(tensor: Tensor, layout: str) -> Tensor:
    """The tensor in another layout."""
    return _tensor(
        tensor.elements(), tensor.data_type, layout, tensor.device(), tensor.memory_config()
    )


def typecast(tensor: Tensor, dtype: DataType) -> Tensor:
    """The tensor in another data type."""
    return _tensor(tensor.elements(), dtype, tensor.layout, tensor.device(), tensor.memory_config())


def _binary(function: Callable[[Array, Array], Array]) -> Callable[..., Tensor]:
    def call(a: Tensor, b: Tensor | float, **_options: object) -> Tensor:
        with np.errstate(all="ignore"):
            right = b.elements() if isinstance(b, Tensor) else b
            return _like(a, function(a.elements(), right))  # pyright: ignore[reportArgumentType]

    return call


def _unary(function: Callable[..., Array]) -> Callable[..., Tensor]:
    def call(a: Tensor, *numbers: float, **_options: object) -> Tensor:
        with np.errstate(all="ignore"):
            return _like(a, function(a.elements(), *numbers))

    return call


add = _binary(lambda a, b: a + b)
subtract = _binary(lambda a, b: a - b)
multiply = _binary(lambda a, b: a * b)
divide = _binary(lambda a, b: a / b)
maximum = _binary(lambda a, b: np.maximum(a, b))
minimum = _binary(lambda a, b: np.minimum(a, b))
matmul = _binary(lambda a, b: np.matmul(a, b))

_NAMES = {"recip": "reciprocal", "logp1": "log1p"}
globals().update(
    {
        _NAMES.get(name, name): _unary(function.meaning)
        for name, function in MATH_FUNCTIONS.items()
        # Its meaning is that of the specification of TT-Lang, not that of the library.
        if name not in ("signbit", "threshold")
    }
)

__all__ = [name for name in dir() if not name.startswith("_")]  # pyright: ignore
_ = Tile
