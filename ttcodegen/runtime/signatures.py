"""Signatures of the tensors that functions of a loaded module take and give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike

from ttcodegen.emission.description import Structure
from ttcodegen.project.manifest import MANIFEST
from ttcodegen.runtime.c_api import DTYPES, KINDS, LAYOUTS, MEMORIES, CTensor, ModuleError

WEIGHT_KINDS = ("parameter", "constant")


@dataclass(frozen=True)
class TensorSignature:
    """Signature of an input, weight or output of a function."""

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
    data_type: str
    """Device data type: `bfloat16`, `bfloat8_b`, ..."""
    layout: str
    """tile or row_major."""
    buffer_type: str
    """dram, l1 or system_memory (the host)."""


def signature_of(tensor: CTensor, row: Mapping[str, Any] | None) -> TensorSignature:
    """Signature of a tensor by the library, and its manifest if there is one."""
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
    """Structure of the inputs and outputs of a function, if its manifest has it."""
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
    """The values as a contiguous array that the library takes for a tensor."""
    what = f"'{signature.name}'"
    # numpy forgets the masks of arrays in a list.
    parts = cast("Sequence[ArrayLike]", values) if isinstance(values, list | tuple) else ()
    if any(map(np.ma.is_masked, (cast("object", values), *parts))):
        raise ModuleError(f"{what}: elements of the array are masked; fill them (.filled(value))")
    array = np.asarray(values)
    if array.shape != signature.shape:
        raise ModuleError(f"{what}: expected the shape {signature.shape}, found {array.shape}")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype not in DTYPES:
        raise ModuleError(f"{what}: elements of {array.dtype} cannot be used")
    # The library would say so too, but knows less of what was declared.
    floating = array.dtype.kind not in "biu"
    if floating and signature.computed_dtype.kind in "iu":
        raise ModuleError(f"{what}: expected {signature.dtype}, found {array.dtype}")
    return np.require(array, requirements=["C", "A"])


def in_dtype(array: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    return array != 0 if dtype.kind == "b" else array.astype(dtype, copy=False)
