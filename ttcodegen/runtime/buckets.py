"""Calls of a loaded model with dynamic dimensions, on tensors of any size within their ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ttcodegen.emission.buckets import BucketError, Buckets
from ttcodegen.project.manifest import MANIFEST
from ttcodegen.runtime.c_api import ModuleError
from ttcodegen.runtime.state import TensorSignature, in_dtype


class BucketFunction(Protocol):
    """Function of a loaded module, as buckets use it."""

    inputs: tuple[TensorSignature, ...]
    outputs: tuple[TensorSignature, ...]

    def run(self, arrays: Sequence[ArrayLike]) -> list[np.ndarray]:
        """Runs the function; outputs have the device's dtypes."""
        ...

    def flattened(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """Flattens arguments in the model's structure to the ordered inputs."""
        ...

    def nested(self, results: Sequence[np.ndarray]) -> Any:
        """Nests the ordered outputs in the model's structure."""
        ...


class BucketCalls:
    """Function of a model with dynamic dimensions.

    It takes arguments of any size up to the largest bucket: inputs are padded to the smallest
    bucket that fits, and outputs are cropped.
    """

    def __init__(self, content: Mapping[str, Any], functions: Mapping[str, BucketFunction]) -> None:
        try:
            self.buckets = Buckets.from_json(content)
            self._functions = {n: functions[n] for n in self.buckets.functions.values()}
        except (KeyError, TypeError, ValueError):
            raise ModuleError(f"{MANIFEST} is damaged: compile the model again") from None
        largest = list(self._functions.values())[-1]
        self.name = self.buckets.name
        self.inputs = largest.inputs
        """Signatures of the largest bucket."""
        self.outputs = largest.outputs
        self._any = largest

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Runs the smallest bucket that fits.

        Raises:
            ModuleError: if arrays do not fit the inputs or are larger than all buckets, or the run
                fails.
        """
        return self._any.nested(self.run(self._any.flattened(arrays, named)))

    def run(self, arrays: Sequence[ArrayLike]) -> list[np.ndarray]:
        """Runs the smallest bucket that fits on ordered inputs; outputs have the model's dtypes.

        Raises:
            ModuleError: as a call does.
        """
        given = [np.asarray(array) for array in arrays]
        try:
            names = [each.name for each in self.inputs]
            sizes = self.buckets.sizes(names, [array.shape for array in given])
            bucket = self.buckets.bucket(sizes)
        except BucketError as error:
            raise ModuleError(f"'{self.name}': {error}") from None
        function = self._functions[self.buckets.function(bucket)]
        padded = [
            _padded(array, tuple(each.size(bucket) for each in extents), value)
            for array, extents, value in zip(
                given, self.buckets.inputs, self.buckets.padding, strict=True
            )
        ]
        outputs = zip(function.run(padded), self.buckets.outputs, function.outputs, strict=True)
        return [
            in_dtype(array[tuple(slice(e.size(sizes)) for e in extents)], signature.dtype)
            for array, extents, signature in outputs
        ]


def _padded(array: np.ndarray, shape: tuple[int, ...], value: float) -> np.ndarray:
    """Pads an array at the end of its dimensions."""
    if array.shape == shape:
        return array
    found = np.full(shape, value, array.dtype)
    found[tuple(map(slice, array.shape))] = array
    return found
