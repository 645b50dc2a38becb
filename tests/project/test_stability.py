"""Small changes of a model leave a tuned copy of its project without conflicts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.diagnostics import Source
from ttcodegen.project.rendering import project_files
from ttcodegen.project.writer import write_project

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "transformer"))

from make import module_text

MODEL = Path(__file__).parents[2] / "examples" / "transformer" / "transformer.mlir"
BLOCK = "tensor<32x128xbf16>"
RETURN = f"  return %block_output : {BLOCK}"


def wider(text: str) -> str:
    return text.replace("x256xbf16", "x512xbf16").replace("256x128", "512x128")


def other_epsilon(text: str) -> str:
    return text.replace("1.000000e-05", "1.000000e-06")


def other_activation(text: str) -> str:
    return text.replace("ttir.silu", "ttir.gelu")


def one_op_more(text: str) -> str:
    last = f'  %last = "ttir.relu"(%block_output) : ({BLOCK}) -> {BLOCK}\n'
    return text.replace(RETURN, last + RETURN.replace("%block_output", "%last"))


def one_layer_more(text: str) -> str:
    weight = (
        "    %head_weight: tensor<128x128xbf16> {ttcore.argument_type = "
        '#ttcore.argument_type<parameter>, ttir.name = "head.weight"}\n) -> ('
    )
    matmul = (
        f'  %head = "ttir.matmul"(%block_output, %head_weight) : '
        f"({BLOCK}, tensor<128x128xbf16>) -> {BLOCK}\n"
    )
    text = text.replace(
        '"feed_forward.down.weight"}\n) -> (', f'"feed_forward.down.weight"}},\n{weight}'
    )
    return text.replace(RETURN, matmul + RETURN.replace("%block_output", "%head"))


EDITS = (
    (
        "weights.attention_key_weight)",
        "weights.attention_key_weight, false, false, ttnn::L1_MEMORY_CONFIG)",
    ),
    ("false, 0.17677669f)", "false, 0.17677669f, std::nullopt, ttnn::L1_MEMORY_CONFIG)"),
    ("    // feed_forward.up\n", "    // feed_forward.up, to be joined with the gate\n"),
    ("namespace transformer {\n", "namespace transformer {\n\nconstexpr bool kTuned = true;\n"),
)


def write(text: str, out: Path) -> int:
    """Writes the project of a model; the number of files with conflicts."""
    compiled = compile_module(Source("transformer.mlir", text), CompileOptions("transformer"))
    return len(write_project(compiled.description, out, project_files(compiled, formatted=True)))


@pytest.mark.parametrize(
    "change", [wider, other_epsilon, other_activation, one_op_more, one_layer_more]
)
def test_a_tuned_copy_has_no_conflicts(change, tmp_path: Path) -> None:
    check_merge(MODEL.read_text(), change(MODEL.read_text()), EDITS, tmp_path)


def check_merge(text: str, changed: str, edits, tmp_path: Path) -> None:
    """Tunes the project of a model, generates that of a changed one into it, and looks for the
    edits in what would have been generated afresh."""
    assert changed != text
    out = tmp_path / "out"
    write(text, out)
    source = out / "src" / "transformer.cpp"
    tuned = source.read_text()
    for old, new in edits:
        assert old in tuned, old
        tuned = tuned.replace(old, new, 1)
    source.write_text(tuned)
    assert write(changed, out) == 0
    merged = source.read_text()
    assert all(new in merged for _, new in edits)
    fresh = tmp_path / "fresh"
    write(changed, fresh)
    untuned = merged
    for old, new in edits:
        untuned = untuned.replace(new, old, 1)
    assert untuned == (fresh / "src" / "transformer.cpp").read_text()


LAYER_EDITS = (
    (
        "weights.attention_key_weight)",
        "weights.attention_key_weight, false, false, ttnn::L1_MEMORY_CONFIG)",
    ),
    ("    // feed_forward.up\n", "    // feed_forward.up, to be joined with the gate\n"),
    ("namespace transformer {\n", "namespace transformer {\n\nconstexpr bool kTuned = true;\n"),
    ("    // layers.1\n", "    // layers.1, whose activations are large\n"),
)


@pytest.mark.parametrize(
    "change",
    [wider, other_epsilon, other_activation, lambda _: module_text(4), lambda _: module_text(6)],
)
def test_a_tuned_copy_of_layers_has_no_conflicts(change, tmp_path: Path) -> None:
    text = module_text(3)
    check_merge(text, change(text), LAYER_EDITS, tmp_path)
