"""The order of the dimensions of a convolution's input, kernel and output, as StableHLO has it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ConvolutionLayout:
    """The order of the dimensions of input, kernel and output."""

    input_batch: int
    input_feature: int
    input_spatial_dimensions: tuple[int, ...]
    kernel_output_feature: int
    kernel_input_feature: int
    kernel_spatial_dimensions: tuple[int, ...]
    output_batch: int
    output_feature: int
    output_spatial_dimensions: tuple[int, ...]

    @property
    def input_order(self) -> list[int]:
        """Batch, positions, channels."""
        return [self.input_batch, *self.input_spatial_dimensions, self.input_feature]

    @property
    def kernel_order(self) -> list[int]:
        """Output channels, input channels, positions."""
        return [
            self.kernel_output_feature,
            self.kernel_input_feature,
            *self.kernel_spatial_dimensions,
        ]

    @property
    def output_order(self) -> list[int]:
        """Batch, positions, channels."""
        return [self.output_batch, *self.output_spatial_dimensions, self.output_feature]
