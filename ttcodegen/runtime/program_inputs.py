"""Inputs of a program: golden values, arrays of files, or generated values."""

from __future__ import annotations

import hashlib
import math
import os
import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ttcodegen.cost import memory_use
from ttcodegen.foundation.array_files import existing_file, load_array
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.arguments import VARIANCES, is_variance
from ttcodegen.project.manifest import read_manifest, stays_inside
from ttcodegen.runtime.executable import Executable, FlatbufferExecutable, ProgramInfo, TensorInfo

# Values for the arguments of programs of which nothing but the types is known.

Values = Callable[[TensorInfo, np.random.Generator], np.ndarray]

DEFAULT = "scaled"


def _scaled(tensor: TensorInfo, generator: np.random.Generator) -> np.ndarray:
    """Random values that keep sums in range.

    Floats in [-1, 1), weights divided by the root of their width, variances around 1; integers 0
    and 1, which are valid indices of anything; booleans.
    """
    if not tensor.is_float:
        return generator.integers(0, 2, tensor.shape)
    if is_variance(tensor.name):
        return generator.uniform(*VARIANCES, tensor.shape)
    bound = 1.0
    if tensor.is_weight and len(tensor.shape) > 1:
        bound = 1 / math.sqrt(max(1, *tensor.shape[-2:]))
    return generator.uniform(-bound, bound, tensor.shape)


def _randn(tensor: TensorInfo, generator: np.random.Generator) -> np.ndarray:
    if not tensor.is_float:
        return generator.integers(0, 2, tensor.shape)
    return generator.standard_normal(tensor.shape, dtype=np.float32)


def _rand(tensor: TensorInfo, generator: np.random.Generator) -> np.ndarray:
    if not tensor.is_float:
        return generator.integers(0, 2, tensor.shape)
    return generator.random(tensor.shape, dtype=np.float32)


def _arange(tensor: TensorInfo, generator: np.random.Generator) -> np.ndarray:
    return np.arange(math.prod(tensor.shape)).reshape(tensor.shape)


KINDS: Mapping[str, Values] = {
    "arange": _arange,
    "ones": lambda tensor, _: np.ones(tensor.shape),
    "rand": _rand,
    "randn": _randn,
    DEFAULT: _scaled,
    "zeros": lambda tensor, _: np.zeros(tensor.shape),
}
"""Generators of `--init`; random integers are 0 or 1 in all of them."""


def initial_values(program: ProgramInfo, kind: str, seed: int) -> list[np.ndarray]:
    """Values of a program's arguments in order, in the device's dtypes.

    They depend on the kind, the seed, and the names of program and argument.
    """
    return [_values(program, tensor, kind, seed) for tensor in program.arguments]


def _values(program: ProgramInfo, tensor: TensorInfo, kind: str, seed: int) -> np.ndarray:
    text = "\0".join([str(seed), program.name, tensor.name])
    generator = np.random.default_rng(list(hashlib.sha256(text.encode()).digest()))
    values = KINDS[kind](tensor, generator)
    if tensor.source_dtype == "bool":
        values = values != 0
    return _to_dtype(values, tensor)


def _to_dtype(values: np.ndarray, tensor: TensorInfo) -> np.ndarray:
    """Converts values to the tensor's dtype: integers wrap, bfloat16 rounds."""
    with np.errstate(over="ignore"):
        return values.astype(tensor.dtype, order="C")


# The values that a program is run on: golden ones, from files, or made up.


@dataclass(frozen=True)
class ProgramInputs:
    """Arguments of a run."""

    arrays: list[np.ndarray]
    """Arrays in the program's order and the device's dtypes."""
    origin: str
    """golden (inputs of the file's golden values), files, or the kind of generated values."""


def choose_inputs(
    executable: Executable,
    program: int,
    *,
    init: str | None,
    seed: int | None,
    folder: Path | None,
) -> ProgramInputs:
    """Chooses the values of a program's arguments.

    By default the inputs of the file's golden values; else those of `folder`, then the project's
    weights, and generated values for the rest.

    Raises:
        CompileError: if a file cannot be read or does not fit, or the declared shapes exceed the
            memory.
    """
    refuse_too_large(executable, program)
    info = executable.programs[program]
    goldens = golden_inputs(executable, program)
    if goldens is not None and init is None and seed is None and folder is None:
        return ProgramInputs(goldens, "golden")
    kind = init or DEFAULT
    try:
        arrays = initial_values(info, kind, seed or 0)
    except MemoryError:
        raise CompileError(f"the inputs of '{info.name}' need more memory than there is") from None
    files = {} if init is not None else _weight_files(executable, info.name)
    origin = kind
    named = [_named_file(folder, tensor) for tensor in info.arguments]
    if folder is not None and named and not any(named):
        raise CompileError(
            f"'{folder}' has no values for '{info.name}'",
            remedy=f"they are in NAME.npy: {', '.join(tensor.name for tensor in info.arguments)}",
        )
    for index, tensor in enumerate(info.arguments):
        path = named[index] or files.get(tensor.name)
        if path is not None:
            arrays[index] = read_values(path, tensor)
            origin = "files"
    return ProgramInputs(arrays, origin)


def golden_inputs(executable: Executable, program: int) -> list[np.ndarray] | None:
    """Inputs of a program's golden values, None if the file has none."""
    goldens = executable.goldens(program)
    if not goldens or not isinstance(executable, FlatbufferExecutable):
        return None
    entries = executable.entries[program].inputs
    if any(entry.tensor not in goldens for entry in entries):
        return None
    arguments = executable.programs[program].arguments
    return [
        goldens[entry.tensor].astype(tensor.dtype, order="C")
        for entry, tensor in zip(entries, arguments, strict=True)
    ]


def refuse_too_large(executable: Executable, program: int) -> None:
    """Raises CompileError if a program's tensors exceed this process's memory.

    A file can declare any shape.
    """
    info = executable.programs[program]
    sizes = [prod(t.shape) * max(t.dtype.itemsize, 4) for t in (*info.arguments, *info.outputs)]
    needed = sum(sizes)
    if isinstance(executable, FlatbufferExecutable):
        peak = memory_use(executable.entries[program]).peak
        needed = max(needed, sum(peak.values()))
    if needed > (available := _memory_bytes()):
        raise CompileError(
            f"'{info.name}' needs {needed / 2**30:.1f} GiB for its tensors, there are "
            f"{available / 2**30:.1f} GiB"
        )


def _memory_bytes() -> int:
    """Machine memory, or this process's limit (ulimit -v, -d)."""
    page = os.sysconf("SC_PAGE_SIZE")
    available = page * os.sysconf("SC_PHYS_PAGES")
    with Path("/proc/self/statm").open() as file:
        pages = file.read().split()
    limits = (resource.RLIMIT_AS, int(pages[0])), (resource.RLIMIT_DATA, int(pages[5]))
    for limit, used in limits:
        allowed = resource.getrlimit(limit)[0]
        if allowed != resource.RLIM_INFINITY:
            available = min(available, max(0, allowed - page * used))
    return available


def _named_file(folder: Path | None, tensor: TensorInfo) -> Path | None:
    path = folder / f"{tensor.name.replace('/', '_')}.npy" if folder is not None else None
    return existing_file(path) if path is not None else None


def _weight_files(executable: Executable, function: str) -> dict[str, Path]:
    """Weight files of the project that a file belongs to, by name."""
    folder = executable.path.absolute().parent
    for project in (folder, folder.parent):
        manifest = read_manifest(project)
        if manifest is not None:
            return _declared_files(project, manifest, function)
    return {}


def _declared_files(project: Path, manifest: Mapping[str, Any], function: str) -> dict[str, Path]:
    rows: list[dict[str, Any]] = manifest.get("functions", [])
    found: dict[str, Path] = {}
    for row in rows:
        if row.get("name") == function:
            for tensor in row.get("inputs", []):
                file = tensor.get("file")
                if not isinstance(file, str):
                    continue
                if not stays_inside(file):
                    raise CompileError(f"the weight '{file}' is not in the project '{project}'")
                path = existing_file(project / file)
                if path is not None:
                    found[str(tensor["name"])] = path
    return found


def read_values(path: Path, tensor: TensorInfo) -> np.ndarray:
    """Reads a tensor's values from a .npy file, in the device's dtype.

    Raises:
        CompileError: if it cannot be read or does not fit.
    """
    array = load_array(path)
    if array.dtype.kind not in "biuf":
        raise CompileError(f"'{path}' holds no numbers")
    if array.shape != tensor.shape:
        raise CompileError(
            f"'{path}': expected the shape {tensor.shape} of '{tensor.name}', found {array.shape}"
        )
    return array.astype(tensor.dtype, order="C")
