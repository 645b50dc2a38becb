"""Writes what jax and torch make of the models into tests/frontends/modules:

python -m tests.frontends.export_models
"""

from __future__ import annotations

import re
from pathlib import Path

import jax.numpy as jnp
import torch

import ttcodegen.jax
import ttcodegen.torch
from tests.frontends import jax_models, torch_models

MODULES = Path(__file__).parent / "modules"
_LOCATED = {"block", "decoder"}
"""Models whose locations are kept; they are most of the text."""
_LOCATION = re.compile(r"(^#loc.*\n)|( loc\((?:[^()\"]|\"[^\"]*\"|\([^()]*\))*\))", re.MULTILINE)
_ROOT = re.escape(str(Path(__file__).parents[2]))
_FOLDER = re.compile(rf'(?<=loc\(")(?:[^"]*/site-packages|{_ROOT})/')
"""Machine-dependent prefixes of source file names in locations."""


def export_models() -> None:
    """Exports every model in bf16, as programs for cards are."""
    texts: dict[str, str] = {}
    for name in jax_models.MODELS:
        function, params, example = jax_models.model(name, jnp.bfloat16)
        texts[f"jax_{name}"] = ttcodegen.jax.export(function, *example, params=params)
    for name in torch_models.MODELS:
        module, example = torch_models.model(name, torch.bfloat16)
        texts[f"torch_{name}"] = ttcodegen.torch.export(module, example)
    for name, text in texts.items():
        if name.partition("_")[2] not in _LOCATED:
            text = _LOCATION.sub("", text)
        text = _FOLDER.sub("", text)
        kind = "stablehlo.mlir" if name.startswith("jax") else "ttir.mlir"
        MODULES.joinpath(f"{name}.bf16.{kind}").write_text(text)


if __name__ == "__main__":
    export_models()
