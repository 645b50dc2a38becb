"""Files of models that are no MLIR: what they are, and how the model gets here."""

from __future__ import annotations

from pathlib import PurePath

_TORCH = "compile the module in Python: ttcodegen.torch.compile(module, example, out=...)"
_WEIGHTS = f"it holds weights and no program; load them into their module and {_TORCH}"

_FORMATS = {
    ".pt": ("a file of PyTorch", _WEIGHTS),
    ".pth": ("a file of PyTorch", _WEIGHTS),
    ".ckpt": ("a checkpoint", _WEIGHTS),
    ".safetensors": ("a file of weights (safetensors)", _WEIGHTS),
    ".gguf": ("a file of weights (GGUF)", _WEIGHTS),
    ".pt2": (
        "a program of torch.export",
        "compile it in Python: ttcodegen.torch.compile(torch.export.load(file), example, out=...)",
    ),
    ".onnx": (
        "a model of ONNX, which is not read",
        f"{_TORCH}, or bring it to StableHLO or linalg as MLIR, with iree-import-onnx for instance",
    ),
    ".tflite": (
        "a model of TensorFlow Lite, which is not read",
        "bring it to TOSA as MLIR: flatbuffer_translate --tflite-flatbuffer-to-mlir, then "
        "tf-opt --tfl-to-tosa-pipeline",
    ),
    ".h5": ("a model of Keras, which is not read", "export it as StableHLO with jax"),
    ".keras": ("a model of Keras, which is not read", "export it as StableHLO with jax"),
    ".pb": ("a graph of TensorFlow, which is not read", "bring it to StableHLO or TOSA as MLIR"),
    ".py": (
        "a Python program",
        "compile a TT-Lang program with ttcodegen-lang, and a model in Python itself, with "
        "ttcodegen.torch.compile or ttcodegen.jax.compile",
    ),
}


def other_format(path: str) -> tuple[str, str] | None:
    """The format that the name of a file says, and what to do with it; None for all else, which
    is read as MLIR."""
    return _FORMATS.get(PurePath(path).suffix.lower())
