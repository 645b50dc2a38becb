"""Rounding to device data types, and tensors of a lowered program."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

import ml_dtypes
import numpy as np

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.tile import FACE_SIDE
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.layout.collapse import align_up
from ttcodegen.ops.movement.layout import converted

# Shared conversions of inputs.
#
# All runs of a check convert the same bfloat16 weights to float32, which takes longer than most
# ops on them.

_MOST_BYTES = 8 << 30
"""Upper bound on bytes of cached copies; further arrays are converted on each read."""


class _Conversions:
    """Cache of float32 copies, filled on first use."""

    def __init__(self) -> None:
        self._wide: dict[int, np.ndarray | None] = {}
        self._locks: dict[int, Lock] = {}
        self._bytes = 0

    def add(self, arrays: Sequence[np.ndarray]) -> None:
        for array in arrays:
            fits = self._bytes + 4 * array.size <= _MOST_BYTES
            if array.dtype == ml_dtypes.bfloat16 and fits and id(array) not in self._locks:
                self._bytes += 4 * array.size
                self._wide[id(array)] = None
                self._locks[id(array)] = Lock()

    def remove(self, arrays: Sequence[np.ndarray]) -> None:
        for array in arrays:
            if self._locks.pop(id(array), None) is not None:
                self._bytes -= 4 * array.size
                del self._wide[id(array)]

    def widened(self, array: np.ndarray) -> np.ndarray:
        lock = self._locks.get(id(array))
        if lock is None:
            return array.astype(np.float32)
        with lock:
            wide = self._wide[id(array)]
            if wide is None:
                wide = array.astype(np.float32)
                wide.flags.writeable = False
                self._wide[id(array)] = wide
            return wide


_CONVERSIONS = _Conversions()


@contextmanager
def shared_conversions(arrays: Sequence[np.ndarray]) -> Generator[None]:
    """Caches the float32 copies of these arrays, which must not change meanwhile."""
    _CONVERSIONS.add(arrays)
    try:
        yield
    finally:
        _CONVERSIONS.remove(arrays)


def widened(array: np.ndarray) -> np.ndarray:
    """Returns a bfloat16 array as float32; read-only."""
    return _CONVERSIONS.widened(array)


# Rounding of arrays to the data types of their tensors.
#
# The compute dtype of an array is float32 for all floats but float64, and the dtype itself for
# integers and booleans. A rounded array has, in that dtype, only values that its tensor
# represents; the storage dtype is the numpy dtype of the tensor's data type.

MANTISSA_BITS = {DataType.BFLOAT8_B: 7, DataType.BFLOAT4_B: 3}
"""Mantissa bits, including the leading one, which is stored since the exponent is shared."""


_PART = 1 << 18
"""Elements per part, whose narrow copies fit into the cache."""

_SOURCE_COMPUTE_DTYPES = {"bfloat16": "float32", "float16": "float32"}


def in_compute_dtype(array: np.ndarray, dtype: str) -> np.ndarray:
    """Converts an array to the compute dtype of a source tensor; `dtype` is the tensor's numpy
    dtype.

    Floats are not rounded: the source defines values, not the precision of their computation.
    """
    if array.dtype.name == _SOURCE_COMPUTE_DTYPES.get(dtype, dtype):
        return array
    if array.dtype == ml_dtypes.bfloat16 and dtype == "bfloat16":
        return widened(array)
    return _once_per_element(lambda part: converted(part, dtype), array)


def rounded_for_device(
    array: np.ndarray, data_type: DataType, *, packed: bool = False
) -> np.ndarray:
    """Rounds an array for a device tensor, in its compute dtype.

    Floats are rounded to nearest even, floats to integers truncated and saturated, integers to
    integers wrapped. Block floats are rounded as by the host, or as by the packer of a core if
    `packed`.
    """
    if array.dtype == ml_dtypes.bfloat16 and data_type is DataType.BFLOAT16:
        return widened(array)
    return _once_per_element(lambda part: _rounded(part, data_type, packed), array)


def store_rounded(target: np.ndarray, array: np.ndarray, data_type: DataType) -> None:
    """Writes an array into one in the compute dtype of a device tensor, rounded as by the
    packer."""
    if data_type is DataType.BFLOAT16 and array.dtype == np.float32 and array.size <= _PART:
        target[...] = array.astype(ml_dtypes.bfloat16)
    else:
        target[...] = rounded_for_device(array, data_type, packed=True)


def in_storage_dtype(array: np.ndarray, data_type: DataType) -> np.ndarray:
    """Converts a rounded array to the numpy dtype of its data type (bfloat16 for bf16)."""
    dtype = np.dtype(data_type.numpy)
    return _once_per_element(lambda part: part.astype(dtype, copy=False), array)


def _rounded(array: np.ndarray, data_type: DataType, packed: bool) -> np.ndarray:
    if not data_type.is_float:
        return array if array.dtype.name == data_type.numpy else converted(array, data_type.numpy)
    # Some numpy semantics compute in float64; the device computes in float32.
    wide = array.astype(np.float32, copy=False)
    if data_type is DataType.BFLOAT16:
        return _bfloat16_rounded(wide)
    if (bits := MANTISSA_BITS.get(data_type)) is not None:
        return block_rounded(wide, bits, packed=packed)
    return wide


def _bfloat16_rounded(array: np.ndarray) -> np.ndarray:
    """Rounds float32 values to bf16, in parts: a narrow copy of a large array would cost more."""
    if array.size <= _PART or not array.flags.c_contiguous:
        return array.astype(ml_dtypes.bfloat16).astype(np.float32)
    result = np.empty_like(array)
    source, target = array.reshape(-1), result.reshape(-1)
    for start in range(0, source.size, _PART):
        part = slice(start, start + _PART)
        target[part] = source[part].astype(ml_dtypes.bfloat16)
    return result


def _once_per_element(
    function: Callable[[np.ndarray], np.ndarray], array: np.ndarray
) -> np.ndarray:
    """Applies `function` to the distinct elements of a broadcast array, and broadcasts the
    result."""
    dimensions = zip(array.strides, array.shape, strict=True)
    repeated = [stride == 0 and size > 1 for stride, size in dimensions]
    if not any(repeated) or array.size == 0:
        return function(array)
    distinct = array[tuple(slice(0, 1) if again else slice(None) for again in repeated)]
    return np.broadcast_to(function(distinct), array.shape)


def block_rounded(array: np.ndarray, mantissa_bits: int, *, packed: bool = False) -> np.ndarray:
    """Rounds float32 values to a block float.

    The 16 elements of a block of the last dimension share the largest of their exponents; each
    keeps its sign and `mantissa_bits` of its mantissa, leading one included, shifted to that
    exponent and rounded to nearest, ties to even. A mantissa that would round up into the next
    exponent saturates. Zeros have no sign, and subnormals are zeros.

    Source: tt-metal's packing of float32 tiles as Bfp8_b and Bfp4_b (blockfloat_common.cpp): bits
    lost in the shift to the shared exponent are not used in the rounding.

    The packer of a core (`packed`) takes seven bits of each element, ties away from zero, then
    rounds to seven bits under the shared exponent, of which narrower formats keep the highest
    (Packers/FormatConversion.md of tenstorrent/tt-isa-documentation).
    """
    if array.size == 0:
        return array
    width = array.shape[-1] if array.ndim else 1
    rows = np.ascontiguousarray(array, dtype=np.float32).reshape(-1, width)
    padded = align_up(width, FACE_SIDE)
    if padded != width:
        rows = np.pad(rows, ((0, 0), (0, padded - width)))
    blocks = rows.reshape(-1, FACE_SIDE).view(np.uint32)
    rounded = _round_blocks(_taken_by_packer(blocks) if packed else blocks, mantissa_bits, packed)
    return rounded.reshape(-1, padded)[:, :width].reshape(array.shape)


def _taken_by_packer(blocks: np.ndarray) -> np.ndarray:
    """Rounds the bits of floats to seven mantissa bits, leading one included."""
    magnitudes = blocks & np.uint32(0x7FFFFFFF)
    kept = (magnitudes + np.uint32(0x10000)) & np.uint32(0xFFFE0000)
    kept[magnitudes < 1 << 23] = 0
    return (blocks & np.uint32(0x80000000)) | kept


def _round_blocks(blocks: np.ndarray, mantissa_bits: int, packed: bool) -> np.ndarray:
    exponents = ((blocks >> 23) & 0xFF).astype(np.int32)
    shared = exponents.max(axis=1, keepdims=True)
    mantissas = (blocks & 0x007FFFFF) | 0x00800000
    mantissas[exponents == 0] = 0
    shift = np.minimum(shared - exponents, 31).astype(np.uint32)
    if packed:
        # Adds half of the last of seven bits under the shared exponent.
        shift = np.minimum(shift + np.uint32(17), np.uint32(31))
        mantissas += np.uint32(1) << (shift - np.uint32(1))
        mantissas >>= shift
        np.minimum(mantissas, 127, out=mantissas)
        mantissas >>= np.uint32(7 - mantissa_bits)
    else:
        mantissas >>= shift
        dropped = 24 - mantissa_bits
        lost = mantissas & ((1 << dropped) - 1)
        mantissas >>= dropped
        half = 1 << (dropped - 1)
        mantissas += (lost > half) | ((lost == half) & ((mantissas & 1) == 1))
        np.minimum(mantissas, (1 << mantissa_bits) - 1, out=mantissas)
    unit = shared - (127 + mantissa_bits - 1)
    with np.errstate(over="ignore"):
        values: np.ndarray = np.ldexp(mantissas.astype(np.float32), unit)
    # With the exponent of infinity, mantissas beyond the leading one are NaN.
    values[(shared == 0xFF) & (mantissas > 1 << (mantissa_bits - 1))] = np.nan
    negative = ((blocks >> 31) == 1) & (mantissas != 0)
    return np.where(negative, -values, values)


# Tensors of a lowered program.


@dataclass(frozen=True)
class DeviceTensor:
    """A tensor of a lowered program."""

    placement: TensorPlacement
    is_packed: bool = field(default=False, kw_only=True)
    """True if cores compute it: their packers then round its block floats, otherwise the host
    does."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.placement.shape

    @property
    def dtype(self) -> str:
        return self.placement.data_type.numpy

    def rounded(self, array: np.ndarray) -> np.ndarray:
        """Returns the array rounded to the data type of the tensor."""
        return rounded_for_device(array, self.placement.data_type, packed=self.is_packed)

    def keeps(self, moved: DeviceTensor) -> bool:
        """Returns whether moved elements need no rounding; in block floats, they share exponents
        anew."""
        data_type = self.placement.data_type
        return data_type is moved.placement.data_type and not data_type.is_block_float
