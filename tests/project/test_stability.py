"""Small changes of a model leave a tuned copy of its project without conflicts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.project.sources import project_files
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
        "weights.attention.key.weight)",
        # As clang-format breaks the line.
        "weights.attention.key.weight,\n" + 46 * " " + "{.memory_config = ttnn::L1_MEMORY_CONFIG})",
    ),
    ("false, 0.17677669f)", "false, 0.17677669f, std::nullopt, ttnn::L1_MEMORY_CONFIG)"),
    ("    // feed_forward.up\n", "    // feed_forward.up, to be joined with the gate\n"),
    ("namespace transformer {\n", "namespace transformer {\n\nconstexpr bool kTuned = true;\n"),
)


def write(text: str, out: Path, name: str) -> int:
    """Writes the project of a model; the number of files with conflicts."""
    compiled = compile_module(Source(f"{name}.mlir", text), CompileOptions(name))
    return len(write_project(compiled.description, out, project_files(compiled, formatted=True)))


@pytest.mark.parametrize(
    "change", [wider, other_epsilon, other_activation, one_op_more, one_layer_more]
)
def test_a_tuned_copy_has_no_conflicts(change, tmp_path: Path) -> None:
    check_merge(MODEL.read_text(), change(MODEL.read_text()), EDITS, tmp_path)


def check_merge(text: str, changed: str, edits, tmp_path: Path, name: str = "transformer") -> None:
    """Tunes the project of a model, generates that of a changed one into it, and looks for the
    edits in what would have been generated afresh."""
    assert changed != text
    out = tmp_path / "out"
    write(text, out, name)
    source = out / "src" / f"{name}.cpp"
    tuned = source.read_text()
    for old, new in edits:
        assert old in tuned, old
        tuned = tuned.replace(old, new, 1)
    source.write_text(tuned)
    assert write(changed, out, name) == 0
    merged = source.read_text()
    assert all(new in merged for _, new in edits)
    fresh = tmp_path / "fresh"
    write(changed, fresh, name)
    untuned = merged
    for old, new in edits:
        untuned = untuned.replace(new, old, 1)
    assert untuned == (fresh / "src" / f"{name}.cpp").read_text()


LAYER_EDITS = (
    (
        "weights.attention.key.weight)",
        # As clang-format breaks the line.
        "weights.attention.key.weight,\n" + 46 * " " + "{.memory_config = ttnn::L1_MEMORY_CONFIG})",
    ),
    ("    // feed_forward.up\n", "    // feed_forward.up, to be joined with the gate\n"),
    ("namespace transformer {\n", "namespace transformer {\n\nconstexpr bool kTuned = true;\n"),
    ("    // layers\n", "    // layers, whose activations are large\n"),
    ("        block_output = layer(", "        // In L1.\n        block_output = layer("),
)


@pytest.mark.parametrize(
    "change",
    [wider, other_epsilon, other_activation, lambda _: module_text(4), lambda _: module_text(6)],
)
def test_a_tuned_copy_of_layers_has_no_conflicts(change, tmp_path: Path) -> None:
    text = module_text(3)
    check_merge(text, change(text), LAYER_EDITS, tmp_path)


EXAMPLES = Path(__file__).parents[2] / "examples"


def more_classes(text: str) -> str:
    return text.replace("x10x", "x12x").replace("<10x", "<12x")


def larger_images(text: str) -> str:
    return text.replace("360x", "720x").replace("<360", "<720")


def padded_windows(text: str) -> str:
    return text.replace(
        "dilation = 1 : i32, ceil_mode = false", "dilation = 1 : i32, ceil_mode = true"
    )


def other_activations(text: str) -> str:
    return text.replace("ttir.relu", "ttir.gelu")


def without_classes(text: str) -> str:
    """The probabilities alone."""
    text = text.replace(', tensor<360xi32> {ttir.name = "digits"}', "")
    kept = [line for line in text.splitlines() if "ttir.argmax" not in line]
    return "\n".join(kept).replace("%scores, %digits : tensor<360x10xf32>, tensor<360xi32>",
                                   "%scores : tensor<360x10xf32>")  # fmt: skip


def named_otherwise(text: str) -> str:
    return text.replace("layer2", "head").replace("%scores", "%chances")


DIGITS_EDITS = (
    ("result = ttnn::to_layout(result, ttnn::Layout::TILE);", "result = tiled(result);"),
    ("    // layer1\n", "    // layer1, which is the widest\n"),
    ("namespace digits {\n", "namespace digits {\n\nconstexpr bool kTuned = true;\n"),
)
CNN_EDITS = (
    ("    // conv0.norm\n", "    // conv0.norm, folded\n"),
    ("/*groups=*/1,", "/*groups=*/1 /* dense */,"),
    ("namespace cnn {\n", "namespace cnn {\n\nconstexpr bool kTuned = true;\n"),
)


@pytest.mark.parametrize(
    ("name", "change", "edits"),
    [
        ("digits", larger_images, DIGITS_EDITS),
        ("digits", other_activations, DIGITS_EDITS),
        ("digits", without_classes, DIGITS_EDITS),
        ("digits", named_otherwise, DIGITS_EDITS),
        ("cnn", other_activations, CNN_EDITS),
        ("cnn", other_epsilon, CNN_EDITS),
        ("cnn", more_classes, CNN_EDITS),
        ("cnn", padded_windows, CNN_EDITS),
    ],
)
def test_tuned_copies_of_other_examples_have_no_conflicts(
    name: str, change, edits, tmp_path: Path
) -> None:
    text = (EXAMPLES / name / f"{name}.mlir").read_text()
    check_merge(text, change(text), edits, tmp_path, name)
