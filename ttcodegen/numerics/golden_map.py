"""Golden values from elsewhere, by their own names of tensors, in a flatbuffer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.array_files import load_array
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.suggestions import did_you_mean
from ttcodegen.numerics.golden_values import with_goldens

_STORED = {"f": np.float32, "i": np.int32, "u": np.uint32, "b": np.bool_}


def embed_golden_map(flatbuffer: bytes, goldens: Mapping[str, np.ndarray]) -> bytes:
    """The file with golden values for the tensors that the keys name.

    A key is the name of an input or output, or `input_N` or `output_N` by its index, or the
    location of an op: the last op there whose result has the shape of the value is meant. It holds
    for all programs that have such a tensor.

    Raises:
        CompileError: if no program has what a key names, or only in another shape.
    """
    binary = read_ttnn(flatbuffer)
    values: dict[str, dict[int, np.ndarray]] = {program.name: {} for program in binary.programs}
    named = {program.name: _tensors_by_key(program) for program in binary.programs}
    for key, given in goldens.items():
        array = np.ascontiguousarray(given.astype(_STORED.get(given.dtype.kind, given.dtype)))
        shapes: set[tuple[int, ...]] = set()
        found = False
        for program in binary.programs:
            for tensor in reversed(named[program.name].get(key, [])):
                shapes.add(program.tensors[tensor].type.shape)
                if program.tensors[tensor].type.shape == array.shape:
                    values[program.name][tensor] = array
                    found = True
                    break
        if not found:
            raise CompileError(
                _misfit(key, array, shapes, {k for keys in named.values() for k in keys})
            )
    return with_goldens(binary, values)


def _tensors_by_key(program: file.Program) -> dict[str, list[int]]:
    """The tensors that a key may name, in the order in which they are made."""
    found: dict[str, list[int]] = {}
    for operation in program.operations:
        if operation.location is not None:
            found.setdefault(operation.location, []).extend(operation.results)
    for kind, entries in (("input", program.inputs), ("output", program.outputs)):
        for place, entry in enumerate(entries):
            found[f"{kind}_{place}"] = [entry.tensor]
            if entry.name:
                found[entry.name] = [entry.tensor]
    return found


def _misfit(key: str, array: np.ndarray, shapes: set[tuple[int, ...]], known: set[str]) -> str:
    if not shapes:
        return f"no program has an input, output or location '{key}'{did_you_mean(key, known)}"
    having = " or ".join(str(shape) for shape in sorted(shapes))
    return f"the golden value of '{key}' has the shape {array.shape}, what it is for {having}"


def read_golden_map(folder: Path) -> dict[str, np.ndarray]:
    """The golden values in a folder, by the paths of their .npy files in it.

    Raises:
        CompileError: if there are none, or one is damaged.
    """
    found: dict[str, np.ndarray] = {}
    for path in sorted(folder.rglob("*.npy")):
        array = load_array(path)
        if array.dtype.kind not in _STORED:
            raise CompileError(f"'{path}' holds no real numbers")
        found[str(path.relative_to(folder).with_suffix(""))] = array
    if not found:
        raise CompileError(f"there is no .npy file in '{folder}'")
    return found
