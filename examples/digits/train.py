"""Trains a classifier of handwritten digits and writes it as a TTIR module with its weights.

    python examples/digits/train.py

writes digits.mlir, the test images and labels, and the accuracy on them. Needs scikit-learn, which
brings the data set (1,797 images of 8x8 pixels).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from ttir_text import FunctionText, tensor_type  # noqa: E402


def main() -> None:
    """Trains, measures and writes."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16.0).astype(np.float32)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=360, random_state=0, stratify=labels
    )
    model = MLPClassifier((64, 32), random_state=0, max_iter=400).fit(train_x, train_y)
    accuracy = float(model.score(test_x, test_y))
    (HERE / "digits.mlir").write_text(module(model, len(test_x)))
    np.save(HERE / "test_images.npy", test_x)
    np.save(HERE / "test_labels.npy", test_y.astype(np.int32))
    (HERE / "accuracy.json").write_text(json.dumps({"accuracy": accuracy}) + "\n")
    print(f"accuracy on {len(test_x)} test images: {accuracy:.4f}")


def module(model: MLPClassifier, batch: int) -> str:
    """The network as TTIR: the class scores and the digit for each image of a batch."""
    function = FunctionText("classify")
    value = function.argument("images", (batch, 64))
    layers = list(zip(model.coefs_, model.intercepts_, strict=True))
    for index, (weight, bias) in enumerate(layers):
        columns = weight.shape[1]
        result = tensor_type((batch, columns))
        weights = function.constant(f"layer{index}_weight", weight.astype(np.float32))
        biases = function.constant(f"layer{index}_bias", bias.astype(np.float32)[None])
        value = function.op("matmul", [value, weights], result, name=f"layer{index}_product")
        value = function.op("add", [value, biases], result, name=f"layer{index}_sum")
        if index + 1 < len(layers):
            value = function.op("relu", [value], result, name=f"layer{index}")
    classes = tensor_type((batch, 10))
    scores = function.op("softmax", [value], classes, "dimension = 1 : si32", name="scores")
    digits = function.op(
        "argmax",
        [scores],
        tensor_type((batch,), "i32"),
        "dim_arg = [1 : i32], keep_dim = false",
        name="digits",
    )
    return function.text({"scores": scores, "digits": digits})


if __name__ == "__main__":
    main()
