"""Models as jax and torch export them: what becomes of them, against what one would write by hand.

The modules are made by `python -m tests.frontends.export_models`; neither framework is needed here.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ttcodegen.cli.ttcodegen import main
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.frontends import read_module
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import passes_of
from ttcodegen.transforms.ttir.queries import is_weight

MODULES = Path(__file__).parent / "modules"
MODELS = sorted(path.name for path in MODULES.glob("*.bf16.*.mlir"))
CHECKED = [
    name
    for name in MODELS
    if name.startswith(("jax_block", "jax_decoder", "jax_llama", "torch_decoder"))
]
FREE = {"deallocate", "to_layout", "get_device", "load_cached"}
"""Calls of TTNN that are no device programs of the model's own."""


def after(name: str, pipeline: str) -> FuncOp:
    """The model's function after a pipeline."""
    module = read_module(Source(name, MODULES.joinpath(name).read_text()))
    PassRunner(load_dialects(), verify=True).run(module, passes_of(pipeline))
    return function_of(module)


def function_of(module: ModuleOp) -> FuncOp:
    """The function that the user calls."""
    public = [op for op in module.body.walk() if isinstance(op, FuncOp)
              and (op.sym_visibility is None or op.sym_visibility.data != "private")]  # fmt: skip
    return public[-1]


@pytest.mark.parametrize("name", MODELS)
def test_locations_name_no_folder_of_a_machine(name: str) -> None:
    assert 'loc("/' not in MODULES.joinpath(name).read_text()


def ttir_ops(name: str) -> Counter[str]:
    """The ops that are left to run for each input; what weights alone decide is computed before."""
    ops = [op for op in after(name, "ttir-pipeline").body.block.ops if isinstance(op, CatalogueOp)]
    return Counter(
        op.definition.short_name
        for op in ops
        if not (op.results and all(is_weight(result) for result in op.results))
    )


def device_programs(name: str) -> int:
    """Number of ttnn calls that run for each input."""
    ops = after(name, "ttir-to-ttnn-common-pipeline").body.block.ops
    names = [op.definition.short_name for op in ops if isinstance(op, CatalogueOp)]
    return sum(each not in FREE for each in names)


def test_a_block_of_flax_is_what_one_would_write() -> None:
    by_hand, found = "block_by_hand.ttir.mlir", "jax_block.bf16.stablehlo.mlir"
    assert ttir_ops(found) == ttir_ops(by_hand)
    assert device_programs(found) == device_programs(by_hand)


PATTERNS = {
    "jax_mlp.bf16.stablehlo.mlir": {"linear": 2, "relu": 1},
    "jax_cnn.bf16.stablehlo.mlir": {"conv2d": 2, "relu": 2, "max_pool2d": 1, "add": 0},
    "jax_resnet18.bf16.stablehlo.mlir": {"conv2d": 20, "add": 8, "multiply": 0, "relu": 17},
    "jax_decoder.bf16.stablehlo.mlir": {
        "scaled_dot_product_attention": 2, "layer_norm": 5, "linear": 8, "gelu": 2, "softmax": 0,
        # XLA finds the first NaN if there is one, which takes an argmax of its own.
        "scatter": 0, "argmax": 2, "embedding": 1,
    },
    "jax_llama.bf16.stablehlo.mlir": {
        "scaled_dot_product_attention": 2, "rms_norm": 5, "silu": 2, "softmax": 0,
        "repeat_interleave": 0, "concatenate_heads": 2,
    },
    "torch_block.bf16.ttir.mlir": {"linear": 4, "layer_norm": 2, "gelu": 1},
    # The image is brought to channels last, and back for what torch averages and flattens.
    "torch_resnet18.bf16.ttir.mlir": {"conv2d": 20, "add": 8, "relu": 17, "permute": 3},
    "torch_mobilenet.bf16.ttir.mlir": {"batch_norm_inference": 0, "add": 1, "permute": 3},
    "torch_vit.bf16.ttir.mlir": {"layer_norm": 5, "gelu": 2},
}  # fmt: skip
"""Number of each op after the patterns of the frontends."""


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_are_found(name: str) -> None:
    found = ttir_ops(name)
    assert {op: found[op] for op in PATTERNS[name]} == PATTERNS[name]


@pytest.mark.parametrize("name", MODELS)
def test_every_model_compiles(name: str, tmp_path: Path) -> None:
    assert main([str(MODULES / name), "-o", str(tmp_path / "out")]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKED)
def test_models_pass_the_check(name: str, tmp_path: Path) -> None:
    assert main([str(MODULES / name), "-o", str(tmp_path / "out"), "--check"]) == 0
