"""Loading of transformers models from folders with a configuration and *.safetensors."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack, cast

from ttcodegen.emission.interface_description import default_module_name
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.framework import framework
from ttcodegen.project.settings import Check, ProjectSettings
from ttcodegen.torch import compile as compile_module

DTYPES = {"f32": "float32", "bf16": "bfloat16"}
"""Compute types of a model, by option."""


def load_pretrained(folder: str | os.PathLike[str], dtype: str, loader: str) -> Any:
    """Loads a model from its folder.

    Args:
        folder: a folder with config.json and *.safetensors, as `save_pretrained` writes it.
        dtype: f32 or bf16; that of the checkpoint if empty.
        loader: the class of transformers that makes the model.

    Raises:
        CompileError: if there is no such model there, a file is damaged, or a weight is missing or
            has another shape.
    """
    torch, transformers = framework("torch"), framework("transformers")
    place = Path(folder)
    if not place.is_dir():
        raise CompileError(f"'{place}' is no folder", remedy="give the folder of a model")
    if not (place / "config.json").is_file():
        raise CompileError(f"'{place}' holds no config.json")
    if not any(place.glob("*.safetensors")):
        raise CompileError(
            f"'{place}' holds no weights (*.safetensors)",
            remedy="model.save_pretrained(folder) writes them",
        )
    if dtype and dtype not in DTYPES:
        raise CompileError(f"there is no type '{dtype}'", remedy=f"it can be {' or '.join(DTYPES)}")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    try:
        model, info = getattr(transformers, loader).from_pretrained(
            place,
            dtype=getattr(torch, DTYPES[dtype]) if dtype else "auto",
            local_files_only=True,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    except Exception as error:  # What a damaged file makes of it has many types.
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise CompileError(f"the model in '{place}' cannot be loaded: {lines[0]}") from None
    _refuse_incomplete(place, info)
    return model.eval()


def load_encoder(folder: str | os.PathLike[str], dtype: str = "") -> Any:
    """Loads a text model from its folder, of the class that its configuration names.

    Raises:
        CompileError: as `load_pretrained`.
    """
    try:
        content: Any = json.loads(Path(folder, "config.json").read_text("utf-8"))
        name = str(content["architectures"][0])
    except (OSError, ValueError, LookupError, TypeError):
        name = ""  # `load_pretrained` reports the error.
    known = name and hasattr(framework("transformers"), name)
    return load_pretrained(folder, dtype, name if known else "AutoModel")


def compile_encoder(
    model: Any,
    *,
    out: str | os.PathLike[str],
    lengths: Sequence[int],
    batch: int = 1,
    name: str | None = None,
    check: Check = False,
    seed: int | None = None,
    **settings: Unpack[ProjectSettings],
) -> Path:
    """Compiles a model of text to a project that takes tokens and their mask, in any length.

    The project has a function for each of the lengths, and a call takes the shortest that fits;
    padding is hidden by the mask. The function is called with `input_ids` and `attention_mask`.

    Args:
        model: a model of transformers that takes both.
        out: the project's folder.
        lengths: lengths of buckets.
        batch: the number of sequences.
        name: name of the C++ module; by default that of the model's class.
        check: build it, and compare random tokens with the model, in sizes of buckets and between.
        seed: the seed of those tokens.
        settings: further options of `ttcodegen.torch.compile`.

    Raises:
        CompileError: if the model is not supported, or a length is impossible.
        CheckError: if the check finds a difference.
    """
    torch = framework("torch")
    if not lengths or min(lengths) < 1 or batch < 1:
        raise CompileError("lengths and the batch are 1 at least")
    config = model.config.get_text_config()
    most = getattr(config, "max_position_embeddings", None)
    if isinstance(most, int) and max(lengths) > most:
        raise CompileError(
            f"a length of {max(lengths)} is too long: the model has {most} positions"
        )
    generator = torch.Generator().manual_seed(seed or 0)
    tokens = torch.randint(0, int(config.vocab_size), (batch, max(lengths)), generator=generator)
    length = torch.export.Dim("length", min=1, max=max(lengths))
    return compile_module(
        model,
        (),
        {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)},
        out=out,
        name=name or default_module_name(type(model).__name__.lower()),
        check=check,
        seed=seed,
        dynamic_shapes={"input_ids": {1: length}, "attention_mask": {1: length}},
        lengths=lengths,
        **cast("Any", settings),
    )


def _refuse_incomplete(folder: Path, info: dict[str, Any]) -> None:
    """Raises CompileError for weights that a checkpoint lacks, or has in another shape."""
    missing = sorted(map(str, info.get("missing_keys", ())))
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise CompileError(f"the checkpoint in '{folder}' lacks the weight '{missing[0]}'{more}")
    for name, found, expected in sorted(info.get("mismatched_keys", ()), key=str):
        raise CompileError(
            f"the weight '{name}' of the checkpoint in '{folder}' has the shape {tuple(found)}; "
            f"the configuration says {tuple(expected)}"
        )
