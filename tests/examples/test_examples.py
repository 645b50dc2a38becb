"""The examples compile, build and pass the check; what they compute is what they were made for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ttcodegen

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*/*.mlir") if path.stem == path.parent.name)
"""The examples that are one model."""

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", NAMES)
def test_the_check_passes(example: Callable[[str], Path], name: str) -> None:
    report = json.loads((example(name) / "check.json").read_text())
    assert report["passed"] is True
    assert report["outputs"]


@pytest.mark.parametrize("name", NAMES)
def test_the_project_has_what_the_manifest_lists(example: Callable[[str], Path], name: str) -> None:
    out = example(name)
    listed = [row["path"] for row in json.loads((out / "manifest.json").read_text())["files"]]
    assert {"CMakeLists.txt", "README.md", ".clang-format", "model.ttnn"} <= set(listed)
    assert [path for path in listed if not (out / path).is_file()] == []


def test_the_digit_classifier_is_as_accurate_as_it_was_in_training(
    example: Callable[[str], Path],
) -> None:
    folder = EXAMPLES / "digits"
    images = np.load(folder / "test_images.npy")
    labels = np.load(folder / "test_labels.npy")
    trained = json.loads((folder / "accuracy.json").read_text())["accuracy"]
    with ttcodegen.load(example("digits")) as model:
        scores, digits = model.classify(images)
    assert scores.shape == (len(labels), 10)
    # Rounding may decide where two digits are equally likely, in one image of hundreds.
    assert float(np.mean(digits == labels)) == pytest.approx(trained, abs=1 / len(labels))


def test_weights_can_be_replaced_by_name(example: Callable[[str], Path]) -> None:
    numbers = np.random.default_rng(0)
    image = numbers.random((1, 32, 32, 3), np.float32)
    with ttcodegen.load(example("cnn")) as model:
        for weight in model.classify.weights:
            model.set_weight(weight.name, numbers.random(weight.shape, np.float32) / 4)
        before = np.asarray(model.classify(image), np.float32)
        model.set_weight("classifier.weight", np.zeros((8 * 8 * 32, 10), np.float32))
        model.set_weight("classifier_bias", np.zeros(10, np.float32))
        after = np.asarray(model.classify(image), np.float32)
    assert np.ptp(before) > 0.01
    np.testing.assert_allclose(after, 0.1, atol=1e-3)
