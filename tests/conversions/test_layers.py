"""Equal layers are one function, called with different weights."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.conversions.host_functions.layer_analysis import (
    Run,
    primitive_lengths,
    repeated_runs,
)
from ttcodegen.emission.templates import clang_format_style
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.runtime.library import load

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples" / "transformer"))

from make import module_text  # noqa: E402

PARAMETER = "ttcore.argument_type = #ttcore.argument_type<parameter>"


def sources(text: str) -> tuple[str, str]:
    """The header and the source of a module."""
    options = CompileOptions("model", style=clang_format_style())
    files = compile_module(Source("model.mlir", text), options).files
    return files["src/model.hpp"], files["src/model.cpp"]


def chain(widths: list[int], activation: str = "gelu") -> str:
    """Norm, linear layer and activation for each width but the first, with residual connections
    where the width stays."""
    arguments = [f"%x: tensor<32x{widths[0]}xbf16>"]
    lines: list[str] = []
    value = "%x"
    for index, (before, after) in enumerate(pairwise(widths)):
        path = f"blocks.{index}"
        for name, shape in (("norm", f"{before}"), ("linear", f"{before}x{after}")):
            arguments.append(
                f"%{name}{index}: tensor<{shape}xbf16> "
                f'{{{PARAMETER}, ttir.name = "{path}.{name}.weight"}}'
            )
        wide, narrow = f"tensor<32x{after}xbf16>", f"tensor<32x{before}xbf16>"
        lines += [
            f'%n{index} = "ttir.rms_norm"({value}, %norm{index}) <{{normalized_shape = '
            f"array<i64: {before}>, epsilon = 1.0e-05 : f32, operandSegmentSizes = "
            f"array<i32: 1, 1, 0>}}> : ({narrow}, tensor<{before}xbf16>) -> {narrow}",
            f'%m{index} = "ttir.matmul"(%n{index}, %linear{index}) : '
            f"({narrow}, tensor<{before}x{after}xbf16>) -> {wide}",
            f'%a{index} = "ttir.{activation}"(%m{index}) : ({wide}) -> {wide}',
            f'%s{index} = "ttir.sin"(%a{index}) : ({wide}) -> {wide}',
            f'%e{index} = "ttir.exp"(%s{index}) : ({wide}) -> {wide}',
        ]
        result = f"%e{index}"
        if before == after:
            result = f"%r{index}"
            lines.append(f'{result} = "ttir.add"({value}, %e{index}) : ({wide}, {wide}) -> {wide}')
        value = result
    type_ = f"tensor<32x{widths[-1]}xbf16>"
    body = "\n".join([*lines, f"return {value} : {type_}"])
    return f"func.func @f({', '.join(arguments)}) -> {type_} {{\n{body}\n}}"


def test_blocks_of_a_transformer_are_one_function():
    header, cpp = sources(module_text(5))
    assert re.findall(r"^static ttnn::Tensor (\w+)\(", cpp, re.MULTILINE) == [
        *("matmul", "last_use", "layer")
    ]
    assert (
        """
    ttnn::Tensor block_output = last_use(hidden_states);
    for (size_t index = 0; index < weights.layers.size(); ++index) {
        block_output = layer(last_use(block_output), mask, weights.layers[index]);
    }
    return TransformerOutputs{.hidden_states = block_output};
"""
        in cpp
    )
    assert "std::array<LayerWeights, 5> layers;" in header
    # They are held as the model holds them, and nothing is copied.
    assert "Constants" not in header
    assert "weights.attention.query.weight" in cpp
    # What they share is computed before the first.
    assert cpp.index("mask = ttnn::to_layout(inputs.mask") < cpp.index("weights.layers[index])")


def test_a_layer_frees_what_it_is_given_for_the_last_time():
    _, cpp = sources(module_text(2))
    body = cpp.partition("TransformerOutputs transformer(")[2]
    assert "layer(last_use(hidden_states), mask, weights.layers[0])" in body
    assert "last_use(mask), weights.layers[1])" in body
    function = cpp.partition("static ttnn::Tensor layer(")[2]
    assert "ttnn::add(last_use(input), last_use(attention_output))" in function


def test_two_blocks_are_worth_a_function_and_one_is_not():
    assert "static ttnn::Tensor layer(" in sources(module_text(2))[1]
    header, cpp = sources(module_text(1))
    assert "static ttnn::Tensor layer(" not in cpp
    assert "Constants" not in header


def test_layers_of_another_form_stay_apart():
    header, cpp = sources(chain([64, 64, 64, 64, 96, 64, 64, 64]))
    assert "std::array<BlockWeights, 7> blocks;" in header
    # The first loop starts with an input, which stays what it is.
    assert "ttnn::Tensor r = ttnn::Tensor(inputs.x);" in cpp
    assert "for (size_t index = 0; index < 3; ++index) {" in cpp
    assert re.findall(r"block\(last_use\(\w+\), weights.blocks\[(\w+)\]\)", cpp) == [
        *("index", "5", "6")
    ]
    # The residual connection makes the difference, not the width.
    assert cpp.count("ttnn::add(") == 1
    assert cpp.count("ttnn::rms_norm(") == 3


def test_layers_whose_values_go_another_way_stay_apart():
    text = chain([64] * 5)
    # The third block adds what the first one gave.
    assert '"ttir.add"(%r1, %e2)' in text
    header, cpp = sources(text.replace('"ttir.add"(%r1, %e2)', '"ttir.add"(%r0, %e2)'))
    assert "std::array<BlockWeights, 4>" in header
    assert re.findall(r"= block\(.*weights.blocks\[(\w+)\]\)", cpp) == ["0", "1", "3"]
    assert cpp.count("ttnn::add(") == 2


DIFFERENT = """abs neg exp sin cos tanh sqrt rsqrt sigmoid relu tan atan log1p expm1 ceil floor
""".split()


def convolutions(stages: list[tuple[int, int, int]], plain: int = 0) -> str:
    """Residual blocks of two convolutions: for each stage channels, size and number of blocks; a
    convolution with stride 2 is before each stage but the first. If there are `plain` activated
    convolutions in each stage, all others are activated as well."""
    channels, size, _ = stages[0]
    arguments = [f"%x: tensor<1x{size}x{size}x{channels}xbf16>"]
    lines: list[str] = []

    def convolve(value: str, name: str, before: tuple[int, int], after: tuple[int, int]) -> str:
        old = f"tensor<1x{before[1]}x{before[1]}x{before[0]}xbf16>"
        new = f"tensor<1x{after[1]}x{after[1]}x{after[0]}xbf16>"
        weight = f"tensor<{after[0]}x{before[0]}x3x3xbf16>"
        made = f"%v{len(lines)}"
        arguments.append(f'%w{len(lines)}: {weight} {{{PARAMETER}, ttir.name = "{name}.weight"}}')
        lines.append(
            f'{made} = "ttir.conv2d"({value}, %w{len(lines)}) <{{stride = '
            f"{before[1] // after[1]} : i32, padding = 1 : i32, dilation = 1 : i32, "
            f"groups = 1 : i32}}> : ({old}, {weight}) -> {new}"
        )
        return made

    def apply(op: str, type_: str, *values: str) -> str:
        made = f"%v{len(lines)}"
        types = ", ".join([type_] * len(values))
        lines.append(f'{made} = "ttir.{op}"({", ".join(values)}) : ({types}) -> {type_}')
        return made

    value, last = "%x", (channels, size)
    for stage, (channels, size, blocks) in enumerate(stages):
        here = (channels, size)
        if here != last:
            value = convolve(value, f"down.{stage}", last, here)
        last = here
        type_ = f"tensor<1x{size}x{size}x{channels}xbf16>"
        for index in range(plain):
            made = apply("gelu", type_, convolve(value, f"plain.{stage}.{index}", here, here))
            value = apply(DIFFERENT[stage * plain + index], type_, made)
        for block in range(blocks):
            path = f"stages.{stage}.blocks.{block}"
            first = apply("gelu", type_, convolve(value, f"{path}.first", here, here))
            second = convolve(first, f"{path}.second", here, here)
            if plain:
                value = apply("add", type_, value, apply("gelu", type_, second))
            else:
                value = apply("gelu", type_, apply("add", type_, value, second))
    body = "\n".join(lines)
    return (
        f"func.func @f({', '.join(arguments)}) -> {type_} {{\n{body}\nreturn {value} : {type_}\n}}"
    )


def test_sizes_that_differ_are_given_by_constants_of_the_file():
    header, cpp = sources(convolutions([(32, 16, 2), (64, 8, 3)]))
    # Stages of different lengths are members of their own, of blocks of one type.
    assert re.findall(r"std::array<BlockConstants, (\d)> blocks;\n    } (\w+);", header) == [
        *(("2", "stages_0"), ("3", "stages_1"))
    ]
    assert cpp.count("ttnn::conv2d(") == 3
    names = re.findall(r"^const ResidualBlockSizes (\w+)\{", cpp, re.MULTILINE)
    assert names == ["stages_0_blocks_sizes", "stages_1_blocks_sizes"]
    assert re.findall(r"\[(\w+)\],\s+(stages_\d)_blocks_sizes,\s+device\)", cpp) == [
        *(("0", "stages_0"), ("1", "stages_0"), ("index", "stages_1"))
    ]
    assert "index < constants.stages_1.blocks.size(); ++index) {" in cpp
    assert "/*in_channels=*/sizes.in_channels" in cpp


def test_blocks_of_calls_take_the_sizes_of_what_they_call():
    # The paths say nothing of blocks: what repeats most is a function, and blocks call it.
    text = convolutions([(32, 16, 2), (64, 8, 3)], plain=8)
    text = re.sub(r"(stages|plain)\.(\d)\.(?:blocks\.)?(\d)\.?", r"\1\2x\3", text)
    _, cpp = sources(text)
    assert cpp.count("ttnn::add(") == 1
    head = cpp[cpp.index("residual_block(") :].partition("{")[0]
    assert "const ResidualBlockSizes& sizes" in head
    assert "sizes.convolution_block_sizes, device)" in cpp


def test_blocks_that_the_source_names_stay_whole():
    """... although a part of them is repeated more often."""
    _, cpp = sources(convolutions([(32, 16, 2), (64, 8, 3)], plain=8))
    assert re.findall(r"^static ttnn::Tensor (residual_block|plain)\(", cpp, re.M) == [
        *("residual_block", "plain")
    ]
    sizes = re.findall(r"\.blocks\[(\w+)\],\s+(stages_\d)_blocks_sizes,\s+device", cpp)
    assert sizes == [("0", "stages_0"), ("1", "stages_0"), ("index", "stages_1")]


def test_a_mask_that_is_written_in_place_is_not_brought_forward():
    """The contents of a cache before its update differ from those after."""
    _, cpp = sources(f"""
func.func @f(%cache: tensor<1x4x64x32xbf16> {{{PARAMETER}}}, %x: tensor<1x4x32x32xbf16>)
    -> tensor<1x4x64x32xbf16> {{
  "ttir.fill_cache"(%cache, %x) <{{batch_offset = 0 : i32}}>
    : (tensor<1x4x64x32xbf16>, tensor<1x4x32x32xbf16>) -> ()
  %0 = "ttir.exp"(%cache) : (tensor<1x4x64x32xbf16>) -> tensor<1x4x64x32xbf16>
  return %0 : tensor<1x4x64x32xbf16>
}}""")
    assert cpp.index("fill_cache(") < cpp.index("ttnn::exp(")


def test_rows_of_a_cache_are_overwritten_by_a_function():
    """It gives nothing, and takes what calls differ in: the bounds of a slice and a number."""
    slices = "".join(
        f'  %s{i} = "ttir.slice_static"(%v) <{{begins = [{i} : i32, 0 : i32, 0 : i32, 0 : i32], '
        f"ends = [{i + 1} : i32, 4 : i32, 32 : i32, 32 : i32], "
        f"step = [1 : i32, 1 : i32, 1 : i32, 1 : i32]}}> "
        f": (tensor<12x4x32x32xbf16>) -> tensor<1x4x32x32xbf16>\n"
        f'  %e{i} = "ttir.exp"(%s{i}) : (tensor<1x4x32x32xbf16>) -> tensor<1x4x32x32xbf16>\n'
        f'  %n{i} = "ttir.sin"(%e{i}) : (tensor<1x4x32x32xbf16>) -> tensor<1x4x32x32xbf16>\n'
        f'  "ttir.fill_cache"(%cache, %n{i}) <{{batch_offset = {i} : i32}}> '
        f": (tensor<12x4x64x32xbf16>, tensor<1x4x32x32xbf16>) -> ()\n"
        for i in range(12)
    )
    _, cpp = sources(
        "func.func @f(%cache: tensor<12x4x64x32xbf16>, %x: tensor<12x4x32x32xbf16>) "
        f"-> tensor<12x4x64x32xbf16> {{\n"
        f'  %v = "ttir.cos"(%x) : (tensor<12x4x32x32xbf16>) -> tensor<12x4x32x32xbf16>\n'
        f"{slices}  return %cache : tensor<12x4x64x32xbf16>\n}}"
    )
    (head,) = re.findall(r"^static void fill_cache_rows\((.*?)\) \{", cpp, re.DOTALL | re.MULTILINE)
    assert re.findall(r"(\w+)(?:,|$)", head) == ["cosine", "cache", "begins", "ends", "batch_idx"]
    loop = cpp[cpp.index("for (") :]
    assert loop.startswith("for (int32_t batch_idx = 0; batch_idx < 12; ++batch_idx) {")
    assert "ttsl::SmallVector<int32_t>{batch_idx + 1, 4, 32, 32}, batch_idx);" in loop
    assert cpp.count("    fill_cache_rows(") == 1
    assert cpp.count("ttnn::slice(") == 1


@pytest.mark.parametrize(
    ("text", "run"),
    [
        ("eabcdabcdabcdz", Run((1, 5, 9), 4)),
        ("xabcyabczabc", Run((1, 5, 9), 3)),
        ("aaaaaa", Run((0, 1, 2, 3, 4, 5), 1)),
        ("xababababy", Run((1, 3, 5, 7), 2)),
        ("abxab", Run((0, 3), 2)),
    ],
)
def test_runs_that_repeat(text, run):
    assert run in repeated_runs([ord(character) for character in text])


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("aaaa", [1]),
        ("ababab", [1, 2]),
        ("abcab", [1, 2, 3, 4, 5]),
        ("abcabcabx", [1, 2, 3, 9]),
        ("", []),
    ],
)
def test_lengths_that_are_no_repetition(text, lengths):
    assert list(primitive_lengths([ord(character) for character in text], len(text))) == lengths


@pytest.mark.parametrize("text", ["", "a", "abc"])
def test_nothing_repeats(text):
    assert not repeated_runs([ord(character) for character in text])


@pytest.mark.slow
def test_layers_compute_what_they_did(tmp_path):
    """The C++ of three blocks, against the flatbuffer and the source."""
    from ttcodegen.cli.ttcodegen import main

    model = tmp_path / "transformer.mlir"
    model.write_text(module_text(3))
    assert main([str(model), "-o", str(tmp_path / "out"), "--check", "-q"]) == 0
    with load(tmp_path / "out", seed=0) as module:
        assert module.transformer.outputs


def test_a_setting_is_of_what_it_is_named_after() -> None:
    text = chain([1024, 1024, 512, 1024, 1024, 1024])
    files = compile_module(Source("m.mlir", text), CompileOptions("m", optimize=2)).files
    cpp = files["src/m.cpp"]
    used = re.findall(r"ttnn::Tensor (\w+) = .*settings\.(\w+)_memory", cpp)
    assert len(used) == 3
    assert all(result == field for result, field in used)
    # A layer with settings of its own gives them its name; those of several have no name of one.
    layers: dict[str, list[str]] = {}
    for layer, settings in re.findall(r"block\(.*?blocks\[(\d)\].*?(\w+_settings)\)", cpp):
        layers.setdefault(settings, []).append(layer)
    assert sorted(map(len, layers.values()))[-1] > 1
    for settings, indices in layers.items():
        assert settings == (
            f"blocks_{indices[0]}_settings" if len(indices) == 1 else "block_settings"
        )


def test_structures_of_parts_have_other_names_than_those_of_elements() -> None:
    """Both parts of each element of `layer` are one function, named after the array too."""
    ops = ("multiply", "add", "maximum", "subtract", "minimum", "add")
    tensor, row = "tensor<32x64xbf16>", "tensor<1x64xbf16>"
    arguments, lines, value = [f"%x: {tensor}"], list[str](), "%x"
    for path in (f"layer.{index}.{part}" for index in range(3) for part in ("first", "second")):
        for number, op in enumerate(ops):
            name = f"{path.replace('.', '_')}_{number}"
            arguments.append(
                f'%w_{name}: {row} {{{PARAMETER}, ttir.name = "{path}.w{number}.weight"}}'
            )
            lines += [
                f'%v_{name} = "ttir.{op}"({value}, %w_{name}) : ({tensor}, {row}) -> {tensor}',
                f'%s_{name} = "ttir.sin"(%v_{name}) : ({tensor}) -> {tensor}',
            ]
            value = f"%s_{name}"
    body = "\n".join((*lines, f"return {value} : {tensor}"))
    header, source = sources(
        f"func.func @forward({', '.join(arguments)}) -> {tensor} {{\n{body}\n}}\n"
    )
    structs = re.findall(r"^struct (\w+)", header + source, re.MULTILINE)
    assert {"LayerWeights", "LayerArguments"} <= {*structs}
    assert len({*structs}) == len(structs)
    assert "ttnn::Tensor layer(ttnn::Tensor input, const LayerArguments& weights)" in source
