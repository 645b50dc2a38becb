"""Two models that were compiled apart, and the arrays that they are run on."""

from __future__ import annotations

import fcntl
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ttcodegen.cli.ttcodegen import main

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "stitching"
BF16 = np.dtype(ml_dtypes.bfloat16)


@dataclass(frozen=True)
class Models:
    """The projects of the example, with weights in their data folders."""

    encoder: Path
    decoder: Path
    images: np.ndarray
    hidden: np.ndarray
    scores: np.ndarray
    """Scores of both models for the images, in float32."""


def _drawn(seed: int, *shape: int) -> np.ndarray:
    values = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    return (values / np.sqrt(shape[0])).astype(BF16).astype(np.float32)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Models:
    """The two models, compiled once for all tests; they do not change them."""
    own = tmp_path_factory.getbasetemp()
    folder = (own if worker_id == "master" else own.parent) / "stitching"
    folder.mkdir(exist_ok=True)
    weights = {
        "encoder": {"weight": _drawn(1, 64, 128), "bias": _drawn(2, 128)},
        "decoder": {"weight": _drawn(3, 128, 10)},
    }
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name, arrays in weights.items():
            if not (folder / name).exists():
                assert main([str(EXAMPLE / f"{name}.mlir"), "-o", str(folder / name)]) == 0
                for weight, array in arrays.items():
                    np.save(folder / name / "data" / f"{weight}.npy", array)
    images = _drawn(4, 32, 64)
    hidden = np.maximum(images @ weights["encoder"]["weight"] + weights["encoder"]["bias"], 0)
    powers = np.exp(hidden @ weights["decoder"]["weight"])
    scores = powers / powers.sum(axis=1, keepdims=True)
    return Models(folder / "encoder", folder / "decoder", images, hidden, scores)
