"""Writes a small convolutional network as a TTIR module: python examples/cnn/make.py

Two convolutions with batch normalisation and pooling, then a linear layer; weights are arguments.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from ttir_text import FunctionText, tensor_type  # noqa: E402

BATCH, SIZE, CLASSES = 1, 32, 10


def main() -> None:
    """Writes cnn.mlir."""
    function = FunctionText("classify")
    value = function.argument("image", (BATCH, SIZE, SIZE, 3), element="bf16")
    size, channels = SIZE, 3
    for index, filters in enumerate((16, 32)):
        value = convolution(function, f"conv{index}", value, (size, channels, filters))
        value = pooling(function, value, (size, filters))
        size, channels = size // 2, filters
    flat = size * size * channels
    value = function.op(
        "reshape",
        [value],
        tensor_type((BATCH, flat), "bf16"),
        f"shape = [{BATCH} : i32, {flat} : i32]",
    )
    weight = function.argument("classifier.weight", (flat, CLASSES), "parameter", "bf16")
    bias = function.argument("classifier.bias", (CLASSES,), "parameter", "bf16")
    result = tensor_type((BATCH, CLASSES), "bf16")
    value = function.op("linear", [value, weight, bias], result)
    value = function.op("softmax", [value], result, "dimension = -1 : si32", name="scores")
    (HERE / "cnn.mlir").write_text(function.text({"scores": value}))


def convolution(function: FunctionText, name: str, value: str, sizes: tuple[int, int, int]) -> str:
    """A 3x3 convolution, batch normalisation and relu; sizes are those of image, input, output."""
    size, channels, filters = sizes
    result = tensor_type((BATCH, size, size, filters), "bf16")
    weight = function.argument(f"{name}.weight", (filters, channels, 3, 3), "parameter", "bf16")
    value = function.op(
        "conv2d",
        [value, weight],
        result,
        "stride = 1 : i32, padding = 1 : i32, dilation = 1 : i32, groups = 1 : i32",
        name=name,
    )
    statistics = [
        function.argument(f"{name}.norm.{part}", (filters,), "parameter", "bf16")
        for part in ("weight", "bias", "running_mean", "running_var")
    ]
    value = function.op(
        "batch_norm_inference",
        [value, *statistics],
        result,
        "dimension = 3 : i32, epsilon = 1.000000e-05 : f32",
    )
    return function.op("relu", [value], result)


def pooling(function: FunctionText, value: str, sizes: tuple[int, int]) -> str:
    """The maximum of each 2x2 window."""
    size, channels = sizes
    return function.op(
        "max_pool2d",
        [value],
        tensor_type((BATCH, size // 2, size // 2, channels), "bf16"),
        "kernel = 2 : i32, stride = 2 : i32, padding = 0 : i32, dilation = 1 : i32, "
        "ceil_mode = false",
    )


if __name__ == "__main__":
    main()
