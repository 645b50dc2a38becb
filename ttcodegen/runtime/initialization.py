"""Values for the arguments of programs of which nothing but the types is known."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping

import numpy as np

from ttcodegen.naming.statistics import VARIANCES, is_variance
from ttcodegen.runtime.executable import ProgramInfo, TensorInfo

Values = Callable[[TensorInfo, np.random.Generator], np.ndarray]

DEFAULT = "scaled"


def _scaled(tensor: TensorInfo, generator: np.random.Generator) -> np.ndarray:
    """Floats in [-1, 1), those of weights divided by the root of their width, so that sums stay in
    range; variances around 1; integers 0 and 1, which name an index in anything; booleans."""
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
"""What `--init` takes. Random integers are 0 or 1 in all of them."""


def initial_values(program: ProgramInfo, kind: str, seed: int) -> list[np.ndarray]:
    """Values for the arguments of a program, in their order, in the dtypes of the device.

    They depend on the kind, the seed, and the names of program and argument.
    """
    return [_values(program, tensor, kind, seed) for tensor in program.arguments]


def _values(program: ProgramInfo, tensor: TensorInfo, kind: str, seed: int) -> np.ndarray:
    text = "\0".join([str(seed), program.name, tensor.name])
    generator = np.random.default_rng(list(hashlib.sha256(text.encode()).digest()))
    values = KINDS[kind](tensor, generator)
    if tensor.source_dtype == "bool":
        values = values != 0
    return _held(values, tensor)


def _held(values: np.ndarray, tensor: TensorInfo) -> np.ndarray:
    """The values as the device can hold them: wrapped to integers, rounded to bfloat16."""
    with np.errstate(over="ignore"):
        return values.astype(tensor.dtype, order="C")
