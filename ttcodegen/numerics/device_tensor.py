"""Tensors of a lowered program, as a run in numpy holds them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.numerics.rounding import rounded_for_device


@dataclass(frozen=True)
class DeviceTensor:
    """A tensor of a program."""

    placement: TensorPlacement
    is_packed: bool = field(default=False, kw_only=True)
    """True if cores compute it, so that their packers round its block floats; those of the host are
    rounded before they come to the device."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.placement.shape

    @property
    def dtype(self) -> str:
        return self.placement.data_type.numpy

    def rounded(self, array: np.ndarray) -> np.ndarray:
        """The array rounded to the data type of the tensor."""
        return rounded_for_device(array, self.placement.data_type, packed=self.is_packed)

    def keeps(self, moved: DeviceTensor) -> bool:
        """Moved elements of a block float share their exponents with others."""
        data_type = self.placement.data_type
        return data_type is moved.placement.data_type and not data_type.is_block_float
